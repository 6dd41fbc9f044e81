"""The API's own description (OpenAPI 3.1), made from the types that the server reads and writes."""

import re
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from answerkey.model.feedback import Feedback
from answerkey.server.actions import GivenBaseline
from answerkey.server.intake import FeedbackReceipt, GivenFeedback, GivenReplies, RepliesReceipt
from answerkey.server.pages import PAGES
from answerkey.server.views.review import ReviewVerdict
from answerkey.store.deleting import Deleted


class Problem(msgspec.Struct, frozen=True):
    """What went wrong."""

    # A word for programs.
    code: str
    # A sentence for people.
    message: str


class ProblemReport(msgspec.Struct, frozen=True):
    """Every error has this shape."""

    error: Problem


class NamedBaseline(msgspec.Struct, frozen=True):
    """A baseline as it is kept."""

    name: str
    run: str


# (path, what it does, what it takes, what it gives, the statuses of success)
_ACTIONS: tuple[tuple[str, str, Any, Any, tuple[str, ...]], ...] = (
    ("/api/feedback", "Send a verdict on a reply", GivenFeedback, FeedbackReceipt, ("200", "201", "202")),
    (
        "/api/replies",
        "Send replies that the chatbot gave in production",
        GivenReplies,
        RepliesReceipt,
        ("201",),
    ),
    ("/api/review", "Say whether a borderline reply can be trusted", ReviewVerdict, Feedback, ("201",)),
    ("/api/baselines", "Give a run a name to compare with", GivenBaseline, NamedBaseline, ("201",)),
)
_DELETED = {
    "/api/runs/{run}": "Delete a run, named by its whole id, with its replies, scores and verdicts",
    "/api/replies/{reply}": "Delete a production reply and what people said of it",
}
_ERRORS = {
    "400": "the request cannot be read as what it should be",
    "401": "a token is needed",
    "403": "the token or the origin does not allow it",
    "404": "no such run, question, reply or baseline",
    "409": "the sender used the idempotency key for another verdict",
    "413": "the body is too large",
    "429": "too many requests",
    "503": "the store cannot be used right now",
}
_PARAMETER = re.compile(r"\{(\w+)(?::id)?\}")


@cache
def openapi_document() -> dict[str, Any]:
    """The document under /api/openapi.json."""
    models = [page.view for page in PAGES] + [ProblemReport, Deleted]
    models += [model for _, _, taken, given, _ in _ACTIONS for model in (taken, given)]
    schemas, components = msgspec.json.schema_components(models, ref_template="#/components/schemas/{name}")
    known = dict(zip(models, schemas, strict=True))
    problems = {status: _answer(words, known[ProblemReport]) for status, words in _ERRORS.items()}
    paths: dict[str, dict[str, Any]] = {}
    for page in PAGES:
        paths.setdefault(_PARAMETER.sub(r"{\1}", page.api), {})["get"] = {
            "summary": page.summary,
            "parameters": _path_parameters(page.api) + _query_parameters(page.query),
            "responses": {"200": _answer("done", known[page.view])} | problems,
        }
    for path, summary, taken, given, statuses in _ACTIONS:
        paths.setdefault(path, {})["post"] = {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": known[taken]}}},
            "responses": dict.fromkeys(statuses, _answer("done", known[given])) | problems,
        }
    for path, summary in _DELETED.items():
        gone = _answer("done", known[Deleted])
        paths.setdefault(path, {})["delete"] = {
            "summary": summary,
            "parameters": _path_parameters(path),
            "responses": {"200": gone} | problems,
        }
    paths["/api/baselines/{name}"] = {
        "delete": {
            "summary": "Forget a baseline's name; the run stays",
            "parameters": _path_parameters("/api/baselines/{name}"),
            "responses": {"204": {"description": "done"}} | problems,
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "answerkey",
            "version": version("answerkey"),
            "description": "Everything that the dashboard shows, and where chat pages send feedback and replies.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # On loopback no token is needed; elsewhere one is.
        "security": [{}, {"token": []}],
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    words = {
        "run": "an id, a unique prefix of one, a name, `latest` or `latest~1`",
        "question": "a question's id",
        "name": "a baseline's name",
        "reply": "a production reply's id",
    }
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": words[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PARAMETER.findall(path)
    ]


def _query_parameters(model: type[Any]) -> list[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([model], ref_template="#/{name}")
    return [
        {"name": name, "in": "query", "required": False, "schema": _not_null(schema)}
        for name, schema in components[model.__name__]["properties"].items()
    ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is given or not; it cannot be null."""
    plain = {key: value for key, value in schema.items() if key != "default"}
    if "anyOf" in plain:
        options = [option for option in plain["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            plain.pop("anyOf")
            plain |= options[0]
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    return plain


def _answer(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}
