import pytest

from answerkey.errors import ConfigError
from answerkey.server.access import RateLimit, ServerSettings
from answerkey.store import open_store
from answerkey.store.feedback import ROLES, Users
from store.filling import add_run

from .serving import serving

GOOD = {"value": "up", "response_id": "resp-q0-1"}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1:1",
        "127.0.0.1",
        "localhost.evil.example:{port}",
        "",
        "[::1",
    ],
)
def test_only_its_own_name_is_answered(client, host):
    answer = client.get("/", host=host.replace("{port}", str(client.port)))
    assert answer.status in (400, 421)
    assert "before" not in answer.text


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}"])
def test_its_own_names_are(client, host):
    assert client.get("/", host=host.replace("{port}", str(client.port))).status == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://chat.example.com.evil.org"]
)
@pytest.mark.parametrize(
    "path",
    ["/api/feedback", "/api/replies", "/review", "/theme", "/api/review", "/api/baselines", "/baselines"],
)
def test_other_sites_cannot_change_anything(client, origin, path):
    answer = client.post(path, GOOD, origin=origin)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_cross_site_request_without_origin_is_refused_by_its_fetch_metadata(client):
    assert client.post("/api/feedback", GOOD, sec_fetch_site="cross-site").status == 403


def test_an_allowed_chat_page_may_send_feedback_and_nothing_else(client):
    origin = "https://chat.example.com"
    asked = client.request("OPTIONS", "/api/feedback", origin=origin, access_control_request_method="POST")
    assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, origin)
    sent = client.post("/api/feedback", GOOD, origin=origin)
    assert (sent.status, sent.headers["access-control-allow-origin"]) == (201, origin)
    assert client.post("/api/review", GOOD, origin=origin).status == 403
    assert "access-control-allow-origin" not in client.get("/api/runs", origin=origin).headers
    refused = client.request("OPTIONS", "/api/feedback", origin="https://evil.example")
    assert refused.status == 403


@pytest.fixture
def guarded(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "r1", name="secret run")
        tokens = {role: Users(store).add(role, role) for role in ROLES}
        tokens["site"] = Users(store).add("shop", "site")
    with serving(lambda: open_store(path), require_token=True) as client:
        yield client, {role: f"Bearer {token}" for role, token in tokens.items()}


def test_without_a_token_nothing_is_shown(guarded):
    client, _ = guarded
    page = client.get("/runs/r1?page=1")
    assert (page.status, page.headers["location"]) == (303, "/login?next=%2Fruns%2Fr1%3Fpage%3D1")
    answer = client.get("/api/runs")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert client.get("/api/runs", authorization="Bearer wrong").status == 401
    assert client.get("/api/runs", cookie="answerkey=wrong").status == 401
    assert client.post("/api/feedback", GOOD).status == 401
    assert client.get("/compare.csv").status == 303
    assert client.get("/static/dashboard.css").status == 200


def test_signing_in_and_out(guarded):
    client, tokens = guarded
    form = {"content_type": "application/x-www-form-urlencoded", "origin": client.url}
    assert client.post("/login", "token=wrong", **form).status == 401
    # A key that stands in a public page must not open the dashboard.
    assert client.post("/login", f"token={tokens['site'][7:]}", **form).status == 401
    token = tokens["viewer"][7:]
    answer = client.post("/login", f"token={token}&next=/runs/r1", **form)
    cookie = answer.headers["set-cookie"]
    assert (answer.status, answer.headers["location"]) == (303, "/runs/r1")
    assert {"HttpOnly", "Path=/"} < set(cookie.split("; "))
    assert "samesite=lax" in cookie.lower()
    assert "Secure" not in cookie, "on this machine it is plain http"
    assert token not in cookie
    session = cookie.partition(";")[0]
    assert "secret run" in client.get("/", cookie=session).text
    assert client.get("/api/runs", authorization=f"Bearer {session.partition('=')[2]}").status == 401
    assert client.get("/api/runs", cookie=f"answerkey={token}").status == 401
    gone = client.post("/logout", "", cookie=session, **form)
    assert "Max-Age=0" in gone.headers["set-cookie"]
    assert client.get("/api/runs", cookie=session).status == 401, "the session itself has ended"


def test_who_is_removed_is_out_at_once(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store, serving(lambda: open_store(path), require_token=True) as client:
        token = Users(store).add("ann", "viewer")
        session = Users(store).sign_in(Users(store).find_by_secret(token))
        assert client.get("/api/runs", cookie=f"answerkey={session}").status == 200
        Users(store).remove("ann")
        assert client.get("/api/runs", cookie=f"answerkey={session}").status == 401
        assert client.get("/api/runs", authorization=f"Bearer {token}").status == 401


def test_guessing_tokens_is_slow(stopped_clock, guarded):
    client, _ = guarded
    form = {"content_type": "application/x-www-form-urlencoded", "origin": client.url}
    assert 429 in [client.post("/login", f"token=guess{n}", **form).status for n in range(15)]


def test_a_sender_that_hurries_is_told_to_wait(stopped_clock, tmp_path):
    path = str(tmp_path / "s.db")
    with serving(lambda: open_store(path), rate_per_minute=60, burst=3) as client:
        statuses = [
            client.post("/api/feedback", {"value": "up", "response_id": "x"}).status for _ in range(6)
        ]
        assert statuses[:3] == [202, 202, 202]
        assert 429 in statuses[3:]


def test_the_bucket_fills_again(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("answerkey.server.access.time.monotonic", lambda: clock[0])
    limit = RateLimit(60, 2)
    assert [limit.wait("a") for _ in range(3)] == [0, 0, 1]
    assert limit.wait("b") == 0
    clock[0] = 1.5
    assert [limit.wait("a"), limit.wait("a")] == [0, pytest.approx(0.5)]


def test_every_other_address_than_loopback_needs_a_token():
    assert not ServerSettings(host="127.0.0.1").needs_token
    assert not ServerSettings(host="::1").needs_token
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.com"):
        assert ServerSettings(host=host).needs_token


def test_a_server_on_every_address_answers_to_addresses_and_allowed_names_only():
    settings = ServerSettings(host="0.0.0.0", port=8765, allow_hosts=("dash.example.com",))
    assert settings.host_allowed("192.168.1.5:8765")
    assert settings.host_allowed("dash.example.com:8765")
    assert settings.host_allowed("dash.example.com")
    assert not settings.host_allowed("evil.example:8765")
    assert not settings.host_allowed("evil.example")


def test_an_origin_with_a_path_is_a_mistake():
    with pytest.raises(ConfigError, match="scheme and host only"):
        ServerSettings(allow_origins=("https://chat.example.com/page",))
