"""One question, asked to look at: the raw reply, where each part of it was read, what was not, and its score."""

from collections.abc import Mapping
from typing import Any

import msgspec

from answerkey.config import Settings
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Json, Reply
from answerkey.model.run_document import reply_document, scorecard_document
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.runs.assembly import assemble, golden_set
from answerkey.runs.bookkeeping import configuration_error
from answerkey.targets.resolve import TargetLike
from answerkey.transcripts.json_values import as_dict, decode_json
from answerkey.transcripts.payloads import ReplyMapping, find_places, reply_from_payload, watch_raw
from answerkey.transcripts.recorded_rows import propose_mapping


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What came back to one question, and how it was read."""

    target: str
    question: Question
    # As it came, JSON where it is JSON; None: nothing came, or the target does not show it.
    raw: Json = None
    reply: Reply
    # Part → where it stands in the raw reply.
    read: dict[str, str] = {}
    # What holds something and was not read.
    unread: tuple[str, ...] = ()
    # Part → the expression that would find what the usual names do not.
    proposed: dict[str, str] = {}
    # None: the question is in no golden set, so nothing is expected of it.
    scorecard: Scorecard | None = None
    # What must be set up otherwise before the chatbot can be asked; None: nothing.
    misconfigured: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `ask --json`."""
        return {
            "target": self.target,
            "question": self.question.question,
            "raw": self.raw,
            "reply": reply_document((self.reply,), self.scorecard),
            "read": self.read,
            "unread": list(self.unread),
            "proposed": self.proposed,
            "scorecard": None if self.scorecard is None else scorecard_document(self.scorecard),
        }


def find_case(
    text: str, questions: str | None, settings: Settings, fields: Mapping[str, str]
) -> Question | None:
    """The golden case that a text is the question or the id of, in the set given or configured."""
    if questions is None and settings.questions is None:
        return None
    cases = golden_set(questions, settings, fields)
    return next((case for case in cases if text in (case.id, case.question)), None)


async def ask_once(
    question: Question | str, target: TargetLike, options: Options, settings: Settings
) -> Asked:
    """Ask a chatbot one question, a conversation turn by turn; the last reply is the one shown."""
    assembly = assemble(msgspec.structs.replace(options, gates=(), baseline=None), settings)
    case = question if isinstance(question, Question) else Question(id="ask", question=question)
    with watch_raw() as seen:
        async with assembly.target(target) as opened:
            [trial] = [trial async for trial in assembly.engine.ask_all(opened, [Trial(case)])]
        name = opened.name
    raw = _decoded(seen[-1]) if seen else None
    table = settings.targets.get(target, {}) if isinstance(target, str) else {}
    expressions = {part: str(where) for part, where in as_dict(table.get("reply")).items()}
    reply = trial.reply
    places = find_places(raw, reply, expressions)
    found = configuration_error([trial])
    # An error's page is no example of a reply.
    readable = reply.failure is None or reply.failure.kind in ("malformed", "null", "empty")
    card = assembly.grader.grade(case, trial.replies) if isinstance(question, Question) else None
    return Asked(
        target=name,
        question=case,
        raw=raw,
        reply=reply,
        read=places.read,
        unread=places.unread,
        proposed=propose_mapping(raw, case.asks[-1].question) if readable else {},
        scorecard=card,
        misconfigured=None if found is None else found[0],
    )


def read_by(asked: Asked, expressions: Mapping[str, str]) -> Asked:
    """The same raw reply, read by other expressions; nothing is asked."""
    mapped = reply_from_payload(asked.raw, mapping=ReplyMapping(**expressions))
    reply = msgspec.structs.replace(mapped, timings=asked.reply.timings)
    places = find_places(asked.raw, reply, expressions)
    found = configuration_error([Trial(asked.question, replies=(reply,))])
    return msgspec.structs.replace(
        asked,
        reply=reply,
        read=places.read,
        unread=places.unread,
        proposed={},
        misconfigured=None if found is None else found[0],
    )


def _decoded(text: str) -> Json:
    try:
        return decode_json(text)
    except ValueError:
        return text
