import pytest
from starlette.datastructures import Headers

from answerkey.errors import ConfigError
from answerkey.server.access import (
    ServerSettings,
    client_address,
    forwarded_scheme,
    limit_name,
    read_network,
)
from answerkey.store import open_store
from answerkey.store.feedback import Users

from .serving import serving

PROXY = (read_network("127.0.0.1"), read_network("10.0.0.0/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("127.0.0.1", "203.0.113.7:4711", "203.0.113.7"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "10.1.2.3", "10.1.2.3"),
        # Whoever is no trusted proxy may say what they like.
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),
        ("203.0.113.9", "127.0.0.1", "203.0.113.9"),
    ],
)
def test_the_client_is_whom_a_trusted_proxy_saw(peer, forwarded, found):
    headers = Headers({"x-forwarded-for": forwarded, "x-forwarded-proto": "https"})
    scope = {"client": (peer, 1), "scheme": "http"}
    assert client_address(scope, headers, PROXY) == found
    assert forwarded_scheme(scope, headers, PROXY) == ("http" if peer.startswith("203") else "https")
    assert client_address(scope, headers, ()) == peer


def test_a_client_is_counted_by_its_network():
    assert limit_name("2001:db8:1:2:3:4:5:6") == limit_name("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert limit_name("::ffff:203.0.113.7") == limit_name("203.0.113.7") == "203.0.113.7"
    assert limit_name("unknown") == "unknown"


@pytest.fixture
def proxied(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        token = Users(store).add("ann", "admin")
    settings = {"public_url": "https://Dash.example.com:443/", "trust_proxy": ("127.0.0.1",)}
    with serving(lambda: open_store(path), **settings) as client:
        yield client, token


FORM = {"content_type": "application/x-www-form-urlencoded", "host": "dash.example.com"}


def test_behind_a_proxy_people_sign_in_under_the_public_address(proxied):
    client, token = proxied
    body = f"token={token}"
    answer = client.post("/login", body, origin="https://dash.example.com", **FORM)
    assert answer.status == 303
    assert answer.headers["set-cookie"].startswith("__Host-answerkey=")
    assert "; Secure" in answer.headers["set-cookie"]
    for origin in ("http://dash.example.com", "https://evil.example", client.url, "null"):
        assert client.post("/login", body, origin=origin, **FORM).status == 403, origin
    # A proxy that does not pass the name on works too.
    direct = {"content_type": FORM["content_type"], "origin": "https://dash.example.com"}
    assert client.post("/login", body, **direct).status == 303
    assert client.get("/", host="evil.example").status == 421


def test_a_proxy_on_this_machine_lets_nobody_in_as_its_owner(proxied):
    client, _ = proxied
    assert client.get("/api/runs").status == 401
    assert client.get("/api/runs", x_forwarded_for="127.0.0.1").status == 401


def test_ten_bad_sign_ins_lock_out_only_whoever_made_them(stopped_clock, proxied):
    client, token = proxied
    from_public = {**FORM, "origin": "https://dash.example.com"}

    def sign_in(given, address):
        return client.post("/login", f"token={given}", x_forwarded_for=address, **from_public).status

    assert 429 in [sign_in(f"guess{n}", "203.0.113.66") for n in range(15)]
    # Another address in front of it does not help.
    assert sign_in("guess", "198.51.100.1, 203.0.113.66") == 429
    assert sign_in(token, "203.0.113.7") == 303


def test_forwarded_headers_of_others_are_not_believed(stopped_clock, tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        Users(store).add("ann", "admin")
    with serving(lambda: open_store(path), require_token=True, trust_proxy=("192.0.2.1",)) as client:
        form = {"content_type": FORM["content_type"], "origin": client.url}
        statuses = [
            client.post("/login", "token=x", x_forwarded_for=f"203.0.113.{n}", **form).status
            for n in range(15)
        ]
        assert 429 in statuses
        secure = {"content_type": FORM["content_type"], "origin": client.url.replace("http:", "https:")}
        assert client.post("/login", "token=x", x_forwarded_proto="https", **secure).status == 403


def test_an_address_with_a_path_is_no_public_url():
    for url in ("https://example.com/dash", "dash.example.com", "ftp://example.com", "https://u@example.com"):
        with pytest.raises(ConfigError, match="cannot share a host name"):
            ServerSettings(public_url=url)
    assert ServerSettings(public_url="https://dash.example.com/").needs_token
    assert ServerSettings(trust_proxy=("127.0.0.1",)).needs_token


def test_pages_are_compressed_for_those_who_can_read_that(tmp_path):
    path = str(tmp_path / "s.db")
    with serving(lambda: open_store(path)) as client:
        plain, small = client.get("/"), client.get("/", accept_encoding="gzip")
        assert "content-encoding" not in plain.headers
        assert small.headers["content-encoding"] == "gzip"
        assert len(small.body) < len(plain.body) / 2
        assert "content-security-policy" in small.headers


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "via", "x_real_ip"])
def test_a_proxy_in_front_of_a_server_without_sign_in_is_refused_with_the_advice(tmp_path, header):
    path = str(tmp_path / "s.db")
    with serving(lambda: open_store(path)) as client:
        refused = client.get("/", **{header: "203.0.113.7"})
        assert refused.status == 403
        assert "--public-url" in refused.text
        assert client.get("/").status == 200
        assert client.get("/healthz", **{header: "203.0.113.7"}).status == 200
