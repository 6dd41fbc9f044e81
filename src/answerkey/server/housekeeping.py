"""What the server does by itself while nobody waits: it warms up once, and then puts things in order now and then."""

import sys
from threading import Event
from typing import TYPE_CHECKING, Any

from answerkey.errors import AnswerkeyError
from answerkey.server.pages import PAGES, Page
from answerkey.server.rendering import render
from answerkey.server.views.compare import CompareQuery
from answerkey.store.deleting import delete_production
from answerkey.store.question_list import QuestionList
from answerkey.store.row_filter import RowFilter

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from answerkey.store.sql import SqlStore

# Between two looks at the golden set's file.
_SECONDS = 20.0


def keep_house(app: "Starlette", stopped: Event) -> None:
    """Put things in order until the server stops."""
    said = None
    while not stopped.is_set():
        problem = put_in_order(app)
        if problem is not None and problem != said:
            sys.stderr.write(f"answerkey: production replies could not be put in order: {problem}\n")
        said = problem
        stopped.wait(_SECONDS)


def put_in_order(app: "Starlette") -> str | None:
    """Delete production replies that are too old and grade the others by the golden set as it is now; what stood in the
    way, if anything did."""
    days = app.state.settings.production_days
    try:
        store = app.state.holder.get()
        if days is not None:
            delete_production(store, older_than_days=days)
        app.state.grading.regrade(store)
    except AnswerkeyError as error:
        return str(error)
    problem: str | None = app.state.grading.problem
    return problem


_SMALL = 20_000


def warm_up(app: "Starlette") -> None:
    """Read every page of the newest run once: imports, templates and statements are ready afterwards."""
    try:
        store = app.state.holder.get()
        latest = store.list_infos(limit=1)
        run = latest[0].id if latest else ""
        rows = QuestionList(store).rows(latest[0], RowFilter(), limit=1)[0] if latest else []
        question = rows[0].id if rows else ""
        for page in PAGES:
            _visit(store, page, page.query(), run, question)
            if page.query is CompareQuery and _is_small(store):
                _visit(store, page, CompareQuery(run=("latest~1", "latest")), run, question)
    except AnswerkeyError:
        # A store that cannot be read now is told to the visitor who asks for it.
        return


def _is_small(store: "SqlStore") -> bool:
    """Whether comparing the newest two runs costs little; readers of larger ones wait for their own."""
    return all(store.count_questions(info.question_set_hash) <= _SMALL for info in store.list_infos(limit=2))


def _visit(store: "SqlStore", page: Page, query: Any, run: str, question: str) -> None:
    known = {"run": run, "question": question, "reply": ""}
    try:
        view = page.load(store, query, **{name: known[name] for name in page.path_names})
    except AnswerkeyError:
        # An empty store has no run to show.
        return
    if page.template is not None:
        render(
            page.template, {"type": "http", "path": page.path, "query_string": b"", "headers": []}, view=view
        )
