"""Which pages there are: each is a path, the same thing under /api/, a query, what it reads and how it looks."""

from collections.abc import Callable
from typing import Any

import msgspec

from answerkey.server.query import Address
from answerkey.server.views.compare import CompareQuery, CompareView, load_compare
from answerkey.server.views.feedback import FeedbackQuery, FeedbackView, load_feedback
from answerkey.server.views.question import QuestionQuery, QuestionView, load_question
from answerkey.server.views.replies import (
    RepliesQuery,
    RepliesView,
    ReplyQuery,
    ReplyView,
    load_replies,
    load_reply,
)
from answerkey.server.views.review import ReviewQuery, ReviewView, load_review
from answerkey.server.views.run import RunQuery, RunView, load_run
from answerkey.server.views.runs import RunsQuery, RunsView, load_runs
from answerkey.store.sql import SqlStore

__all__ = ["PAGES", "Page"]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page and its data."""

    path: str
    api: str
    template: str
    # What it is, for the API's description.
    summary: str
    query: type[Any]
    view: type[Any]
    load: Callable[[SqlStore, Address, Any], Any]


PAGES = (
    Page(
        path="/",
        api="/api/runs",
        template="runs.html.j2",
        summary="Runs, newest first, and their trend",
        query=RunsQuery,
        view=RunsView,
        load=lambda store, _, query: load_runs(store, query),
    ),
    Page(
        path="/runs/{run}",
        api="/api/runs/{run}",
        template="run.html.j2",
        summary="A run: its summary and a page of its questions",
        query=RunQuery,
        view=RunView,
        load=lambda store, at, query: load_run(store, at.run, query),
    ),
    Page(
        path="/runs/{run}/questions/{question:path}",
        api="/api/runs/{run}/questions/{question:path}",
        template="question.html.j2",
        summary="A question in a run: every trial in full, and its history over runs",
        query=QuestionQuery,
        view=QuestionView,
        load=lambda store, at, query: load_question(store, at.run, at.question, query),
    ),
    Page(
        path="/compare",
        api="/api/compare",
        template="compare.html.j2",
        summary="Runs side by side: verdict, differences and replies",
        query=CompareQuery,
        view=CompareView,
        load=lambda store, _, query: load_compare(store, query),
    ),
    Page(
        path="/review",
        api="/api/review",
        template="review.html.j2",
        summary="The next reply that a person should judge",
        query=ReviewQuery,
        view=ReviewView,
        load=lambda store, _, query: load_review(store, query),
    ),
    Page(
        path="/replies",
        api="/api/replies",
        template="replies.html.j2",
        summary="Production replies in figures, and a page of them",
        query=RepliesQuery,
        view=RepliesView,
        load=lambda store, _, query: load_replies(store, query),
    ),
    Page(
        path="/replies/{reply:path}",
        api="/api/replies/{reply:path}",
        template="reply.html.j2",
        summary="A production reply in full, with its feedback",
        query=ReplyQuery,
        view=ReplyView,
        load=lambda store, at, _: load_reply(store, at.reply),
    ),
    Page(
        path="/feedback",
        api="/api/feedback",
        template="feedback.html.j2",
        summary="Feedback in figures, and a page of verdicts",
        query=FeedbackQuery,
        view=FeedbackView,
        load=lambda store, _, query: load_feedback(store, query),
    ),
)
