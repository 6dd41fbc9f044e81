import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from schemathesis.checks import not_a_server_error

from answerkey.store import open_store
from store.filling import add_run

from .serving import serving


def test_the_description_names_every_path_of_the_api(client):
    document = client.get("/api/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/api/runs",
        "/api/runs/{run}",
        "/api/runs/{run}/progress",
        "/api/runs/{run}/faults",
        "/api/runs/{run}/judge",
        "/api/runs/{run}/questions/{question}",
        "/api/compare",
        "/api/review",
        "/api/feedback",
        "/api/feedback/batch",
        "/api/replies",
        "/api/replies/{reply}",
        "/api/baselines",
        "/api/baselines/{name}",
    }


def test_made_up_requests_find_no_server_error(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        add_run(store, "r1")
        add_run(store, "r2", day=1)
        store.set_baseline("kept", "r1")
    with serving(lambda: open_store(path), rate_per_minute=1e6, burst=100_000) as client:
        schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json)
        tried = [attempts_at(result.ok(), client.url) for result in schema.get_all_operations()]
    assert len(tried) == 19
    assert min(tried) >= 10


def attempts_at(operation, url) -> int:
    """Send made-up requests, half of which name things that exist; how many."""
    statuses = []

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(), known=booleans())
    def attempt(case, known):
        if known and "run" in (case.path_parameters or {}):
            case.path_parameters["run"] = "r1"
        if known and "question" in (case.path_parameters or {}):
            case.path_parameters["question"] = "q1"
        response = case.call(base_url=url)
        case.validate_response(response, checks=(not_a_server_error,))
        statuses.append(response.status_code)
        # Every answer, the refusals too, is JSON.
        response.json()

    attempt()
    return len(statuses)
