"""Every address of the application, tried by everybody."""

import itertools
from pathlib import Path
from urllib.parse import urlencode

import pytest

from answerkey.config import Settings
from answerkey.server.app import create_app
from answerkey.store import open_store
from answerkey.store.feedback import ROLES, Users
from store.filling import add_run, golden

from .serving import golden_file, serving

NAMES = {"run": "r1", "question": "q1", "reply": "prod-1", "name": "production"}
# Who may, by method and address as the routes write it; what is missing here is for viewers to get and admins to do.
ANYONE = {"GET /static/{name}", "GET /healthz", "GET /login", "POST /login", "POST /theme"}
LEAST = {
    "POST /logout": "viewer",
    "POST /views": "viewer",
    "POST /api/feedback": "reviewer",
    "POST /api/feedback/batch": "reviewer",
    "POST /api/review": "reviewer",
    "POST /review": "reviewer",
    "POST /golden": "reviewer",
    "POST /replies/{reply}": "reviewer",
}
SITES = {
    "POST /api/feedback",
    "POST /api/feedback/batch",
    "POST /api/replies",
    "POST /v1/traces",
    "POST /v1/logs",
}


def addresses():
    app = create_app(lambda: open_store(":memory:"))
    for route in app.routes:
        for method in sorted(route.methods - {"HEAD"}):
            yield method, route.path.replace(":id", "")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("roles") / "s.db")
    with open_store(path) as store:
        add_run(store, "r1", name="secret run")
        # Not even an admin deletes it by the way.
        store.set_baseline("kept", "r1")
        secrets = {role: Users(store).add(role, role) for role in ROLES}
        secrets["site"] = Users(store).add("shop", "site")
    settings = {"require_token": True, "rate_per_minute": 1e6, "burst": 10_000, "requests_per_minute": 1e6}
    with serving(lambda: open_store(path), **settings) as client:
        yield client, secrets


def test_there_are_addresses():
    found = {f"{method} {path}" for method, path in addresses()}
    assert found >= ANYONE | set(LEAST) | SITES
    assert len(found) > 30


@pytest.mark.parametrize("role", ["nobody", "site", *ROLES])
def test_everybody_gets_what_is_theirs_and_nothing_else(guarded, role):
    client, secrets = guarded
    sent = {} if role == "nobody" else {"authorization": f"Bearer {secrets[role]}"}
    for (method, path), body in itertools.product(addresses(), (None, {})):
        named = f"{method} {path}"
        # Guessing is slowed down; that is tried elsewhere.
        if named == "POST /login" or (body is not None and method != "POST"):
            continue
        least = LEAST.get(named, "viewer" if method == "GET" else "admin")
        if named in ANYONE:
            allowed = True
        elif role == "site":
            allowed = named in SITES
        else:
            allowed = role in ROLES and ROLES.index(role) >= ROLES.index(least)
        answer = client.request(
            method, path.format(**{"name": "x", "ending": "csv", **NAMES}), body=body, **sent
        )
        refused = answer.status in (401, 403) or answer.headers.get("location", "").startswith("/login?")
        assert refused != allowed, (role, named, answer.status)
        assert answer.status < 500, (role, named)
        if not allowed:
            assert "secret run" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "post"])
def test_a_method_that_no_address_knows_does_nothing(guarded, method):
    client, secrets = guarded
    for role in ("viewer", "reviewer", "site"):
        answer = client.request(method, "/api/runs", authorization=f"Bearer {secrets[role]}")
        assert answer.status in (400, 403, 405)


@pytest.mark.parametrize("role", ["nobody", "site", *ROLES])
def test_only_admins_start_runs_and_save_golden_questions(tmp_path, role):
    """Also on a server that may act, with forms that are valid."""
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "r1", questions=golden(2))
        secret = "" if role == "nobody" else Users(store).add("ann", role)
    file = golden_file(tmp_path, golden(2))
    before = Path(file).read_bytes()
    # Nothing listens there.
    settings = Settings(
        path=str(tmp_path / "answerkey.toml"),
        questions=file,
        target="mine",
        targets={"mine": {"url": "http://127.0.0.1:9/"}},
    )
    served = {"store_url": path, "allow_run": True, "require_token": True}
    with serving(lambda: open_store(path), settings, **served) as client:
        sent = {"authorization": f"Bearer {secret}"} if secret else {}

        def post(address, **fields):
            kind = "application/x-www-form-urlencoded"
            return client.post(
                address, urlencode(fields), content_type=kind, origin=client.url, **sent
            ).status

        page = client.get("/golden?id=q0", **sent).text
        line, digest = (
            page.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("line", "digest")
        )
        edit = {"text": '{"id": "q0", "question": "Edited?"}', "line": line or "1", "digest": digest}
        rank = ROLES.index(role) if role in ROLES else -1
        refused = 401 if role == "nobody" else 403
        assert post("/golden", action="try", **edit) == (200 if rank >= ROLES.index("reviewer") else refused)
        assert post("/golden", action="save", **edit) == (303 if role == "admin" else refused)
        assert (Path(file).read_bytes() == before) == (role != "admin")
        assert post("/jobs", action="run", target="mine") == (303 if role == "admin" else refused)
        assert post("/jobs", action="cancel", job="x") == (404 if role == "admin" else refused)
        jobs = client.get("/jobs", **sent).text
        assert ("Start the run" in jobs) == (role == "admin")
        assert ("Save to the file" in page) == (role == "admin")
        assert ("<bdi>run mine" in jobs) == (role == "admin")
