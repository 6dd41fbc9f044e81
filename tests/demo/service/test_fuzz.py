"""Requests made up from the service's own OpenAPI document: it answers each as described and never breaks."""

from typing import Any

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is a development dependency")


@pytest.mark.slow
def test_made_up_requests_are_answered_as_described(service: Any) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    seen: list[int] = []

    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.given(case=operation.as_strategy())
        @hypothesis.settings(
            max_examples=40,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        def check(case: Any) -> None:
            response = case.call()
            case.validate_response(response)
            seen.append(response.status_code)
            assert response.status_code < 500

        check()
    assert 200 in seen
