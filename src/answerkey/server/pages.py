"""Which pages there are: each has a path, the same thing under /api/, a template, and a function that reads it."""

import re
from collections.abc import Callable
from typing import Any, get_type_hints

from answerkey.server.views.compare import load_compare
from answerkey.server.views.feedback import load_feedback
from answerkey.server.views.question import load_question
from answerkey.server.views.replies import load_replies, load_reply
from answerkey.server.views.review import load_review
from answerkey.server.views.run import load_progress, load_run
from answerkey.server.views.runs import load_runs


class Page:
    """A page and its data; `load` takes the store, the query, and the parts of the path by their names."""

    def __init__(self, path: str, template: str | None, load: Callable[..., Any], summary: str) -> None:
        self.path = path
        self.api = "/api/runs" if path == "/" else f"/api{path}"
        # None: only programs ask for it.
        self.template = template
        self.load = load
        # What it is, for the API's description.
        self.summary = summary
        types = get_type_hints(load)
        # What its query string is read as, and what it shows.
        self.query: type[Any] = types["query"]
        self.view: type[Any] = types["return"]

    @property
    def path_names(self) -> list[str]:
        """The parts of the path that vary."""
        return re.findall(r"\{(\w+)", self.path)


PAGES = (
    Page("/", "runs.html.j2", load_runs, "Runs, newest first, and their trend"),
    Page("/runs/{run}", "run.html.j2", load_run, "A run: its summary and a page of its questions"),
    Page("/runs/{run}/progress", None, load_progress, "How far a run is"),
    Page(
        "/runs/{run}/questions/{question:id}",
        "question.html.j2",
        load_question,
        "A question in a run: every trial in full, and its history over runs",
    ),
    Page("/compare", "compare.html.j2", load_compare, "Runs side by side: verdict, differences and replies"),
    Page("/review", "review.html.j2", load_review, "The next reply that a person should judge"),
    Page("/replies", "replies.html.j2", load_replies, "Production replies in figures, and a page of them"),
    Page("/replies/{reply:id}", "reply.html.j2", load_reply, "A production reply in full, with its feedback"),
    Page("/feedback", "feedback.html.j2", load_feedback, "Feedback in figures, and a page of verdicts"),
)
