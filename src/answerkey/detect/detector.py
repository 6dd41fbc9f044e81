"""Whether a reply is a failure instead of an answer, seen from its text alone.

A reply fails if it *is* an error message, not if it speaks of one: so a notice counts where the reply begins, and what is
quoted, fenced as code or answered after it does not. Only the beginning of a long reply is read, and the time is linear.
Kinds are those of the scoring standard: `empty`, `null`, `malformed`, `trace`, `error_text`, and where the notice says so
`timeout`, `rate_limit`, `connection`, `memory`, `http` or `tool`.
"""

# ruff: noqa: E501 — lists of phrases.

import re
from functools import reduce
from operator import or_

from answerkey.detect.bodies import failing_body
from answerkey.detect.detected import DetectedFailure
from answerkey.detect.explained import (
    advises,
    beside_fences,
    explains_at_once,
    has_no_data,
    is_explaining_prose,
    words_around,
)
from answerkey.detect.fragments import failing_fragment
from answerkey.detect.leaks import leaked
from answerkey.detect.learned.features import may_tell
from answerkey.detect.learned.model import explains, failing_reply, fails_at_once, refutes
from answerkey.detect.learned.plain_words import speaks_figuratively
from answerkey.detect.learned.roles import APOLOGY, FOREIGN, RETRY, SELF
from answerkey.detect.learned.words import is_sign, roles_of
from answerkey.detect.messages import program_message
from answerkey.detect.nothing import says_nothing
from answerkey.detect.sentences import answers_besides, failing_sentence
from answerkey.detect.signs import (
    FOREIGN_NOTICES,
    MESSAGES,
    NOTICES,
    TRACES,
    kind_of,
)
from answerkey.text.lazy import lazy

__all__ = ["DetectedFailure", "detect_failure", "is_prose"]


# White space, control and format characters, and the marks that leave nothing on the screen.
_INVISIBLE = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
# A quotation and what is said about it.
_QUOTED_FIRST = lazy(
    r"(?:\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」]{1,80}」|«[^»]{1,200}»|`[^`\n]{1,200}`)[^\n]{12,}"
)
_UNDECODABLE = lazy("[\ufffd\ud800-\udfff\x00-\x08\x0e-\x1a]")
_MOJIBAKE = lazy("Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|Â[\xa0-\xbf]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}")
# Written without spaces between words: the model of sentences does not read it.
_CJK = lazy("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FENCED = lazy(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
# "chat.reply.success_message": the name of a text instead of the text.
_MESSAGE_KEY = lazy(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*){1,6}\.[a-z0-9]*_[a-z0-9_]+")
# Characters that hide inside words, and letters that are spaced out.
_HIDDEN = lazy("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_SPACED = lazy(r"\b(?:[A-Z] ){3,}[A-Z]\b")
# Lines of a program without a fence around them: they handle errors and are none.
_PROGRAM_CODE = lazy(
    r"raise \w+\(|throw new |try:\s*\n|try \{|\}? ?catch ?\(|except \w+.{0,40}:\s*\n|if err != nil|def \w+\(|class \w+[(:{]|(?:async )?function \w*\(|"
    r"(?:const|let|var) \w+ =|import \w+$|from [\w.]+ import |#include|@\w+\n|=[A-Z]+\(",
    re.MULTILINE,
)
# "503 The model is overloaded."
_STATUS_FIRST = lazy(r"(?:HTTP )?[45]\d\d[ :–-]+(?=[A-Z])")
_HEAD = 3000
_NOTICE = 400
_LONGEST_NOTICE = 1500
_FIRST_WORDS = 12
# After these a notice turns into an answer, unless what follows is more of the same.
_BUT = lazy(
    r"[,.;!]? (?:but|however|nevertheless|still|that said|in the meantime|fortunately)\b,?", re.IGNORECASE
)
_GOES_ON_FAILING = lazy(
    r"try again|retry|contact|support|administrator|later|unable|could(?:n['’]t| not)|"
    r"cannot|can['’]t|apologi|sorry|looking into|"
    r"working on|rephrase|let me know|patience|inconvenience|you requested|tokens|failed|error|i (?:was|am) not able|feel free",
    re.IGNORECASE,
)
# The name of an exception first: what a program wrote, advice and all.
_NAMED = lazy(r"\W*[\w.]*(?:Error|Exception)\b")
# Machine output may hold dates and figures and is no answer for that.
_MACHINE_OUTPUT = lazy(
    r"\w(?:Error|Exception)\b|^\W*(?:\w+ )?(?:ERROR|FATAL|[Ee]rror)\b[^a-z]{0,12}|\d{4}-\d\d-\d\d|"
    r"[{}<>_]|^\W*[A-Z]{3,}[-\[]|\b(?:TPM|RPM)\b|::"
)
# Cheap looks before the costly patterns: a log is mostly answers, and an answer mostly has none of these.
_TRACE_SIGNS = (
    "Traceback", "line ", "\tat ", "  at ", "goroutine", "panic", ".rb:", "Fatal", "Parse error", "#0 ", "tack trace",
    "Last few GCs", "FATAL ERROR", "Whitelabel", "Segmentation", "smashing", "Caused by", "Unhandled",
    "node:internal", "Exception in", "At line:", "==ERROR", "Stacktrace:", "Require stack",
    "** ", " lib/", "CallStack", "terminate called", "Error in ", "Fatal error", "#1 ", "tack traceback", "+0x",
)  # fmt: skip
# Searching for one character takes a tenth of the time that a word takes; nearly every sign has one of these in it.
_TRACE_MARKS = "\n:(*"


def detect_failure(text: str | None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer."""
    if text is None:
        return DetectedFailure("null", "there is no reply")
    lead = _INVISIBLE.match(text)
    skip = lead.end() if lead else 0
    if skip == len(text):
        return DetectedFailure("empty", "the reply is empty or invisible", 0, len(text))
    head = text[skip : skip + _HEAD]
    found = _detect(text, head, whole=skip + _HEAD >= len(text))
    if found is None or not skip or found.kind in {"empty", "null"}:
        return found
    return DetectedFailure(found.kind, found.message, found.start + skip, found.end + skip)


def _detect(text: str, head: str, *, whole: bool) -> DetectedFailure | None:
    """The failure in the visible beginning of a reply, with its span there."""
    stripped = head.strip()
    if whole:
        nothing = says_nothing(stripped, len(text))
        if nothing:
            return nothing
        if _MESSAGE_KEY.fullmatch(stripped):
            return DetectedFailure("malformed", stripped, 0, len(text))
    start = head.find(stripped)
    return (
        _undecodable(head)
        or failing_body(stripped, start, whole, _notice)
        or _trace(head)
        or leaked(head)
        or failing_fragment(stripped, start, whole, lambda body: failing_body(body, 0, True, _notice), _told)
        or (_program(stripped, start) if whole else None)
        or _notice(stripped, start)
    )


def is_prose(text: str) -> bool:
    """Whether only what its sentences say can decide about a reply: no body, trace, leak or message of a program."""
    stripped = _INVISIBLE.sub(" ", text).strip()
    if not any(map(str.isalnum, stripped)) or says_nothing(stripped, 0) or _CJK.search(stripped):
        return False
    decided = (
        _undecodable(text) or failing_body(stripped, 0, True, _notice) or _trace(stripped) or leaked(stripped)
    )
    if decided or program_message(stripped):
        return False
    return MESSAGES.match(stripped[:_NOTICE]) is None


def _undecodable(head: str) -> DetectedFailure | None:
    """Undecodable text: one character in ten or more is lost or garbled."""
    if head.isascii() and "\x00" not in head and "\x01" not in head:
        return None
    lost = len(_UNDECODABLE.findall(head)) + 2 * len(_MOJIBAKE.findall(head))
    if lost >= 3 and lost * 10 >= len(head):
        return DetectedFailure("malformed", "the text is garbled or was not decoded", 0, len(head))
    return None


def _trace(head: str) -> DetectedFailure | None:
    """A trace that stands for itself: not quoted as code beside an explanation, not after a long answer."""
    if not any(map(head.__contains__, _TRACE_MARKS)) and "Segmentation" not in head and " line " not in head:
        return None
    if not any(map(head.__contains__, _TRACE_SIGNS)):
        return None
    found = TRACES.search(head)
    if found is None:
        return None
    around = words_around(head, *found.span())
    if around is not None:
        # Quoted: a failure only if nothing is said beside it.
        if around > 8:
            return None
    elif found.start() > _NOTICE:
        return None
    else:
        before, after = head[: found.start()].strip(), head.rpartition("\n\n")[2]
        if is_explaining_prose(after) and not TRACES.search(after) and _notice(after, 0) is None:
            return None
        if (
            len(before.split()) > 8
            and _notice(before, 0) is None
            and not re.search(r"(?:Error|Exception)\b|:\d+:|^[\w-]+ : ", before)
        ):
            return None
    return DetectedFailure("trace", found.group().strip()[:200] or "trace", found.start(), found.end())


def _told(text: str) -> DetectedFailure | None:
    """A message or notice that is all of a text."""
    return _program(text, 0) or _notice(text, 0) if text else None


def _program(stripped: str, start: int) -> DetectedFailure | None:
    """A message whose wording a program fixes."""
    span = program_message(stripped)
    if span is None:
        return None
    told = stripped[span[0] : span[1]]
    return DetectedFailure(kind_of(stripped), told[:200], start + span[0], start + span[1])


def _notice(stripped: str, start: int) -> DetectedFailure | None:
    """An error message at the beginning of the reply that no answer follows, or a reply that says only that it failed."""
    if not stripped.isascii() and _HIDDEN.search(stripped):
        stripped = _HIDDEN.sub("", stripped)
    if " R " in stripped and _SPACED.search(stripped):
        stripped = _SPACED.sub(lambda spaced: spaced.group().replace(" ", ""), stripped)
    status = _STATUS_FIRST.match(stripped) if stripped[:1] in {"4", "5", "H"} else None
    if status:
        told = _notice(stripped[status.end() :], start + status.end())
        if told:
            return told
    unspaced = not stripped.isascii() and _CJK.search(stripped) is not None
    words = stripped[:_LONGEST_NOTICE].split()
    if not unspaced and not any(map(is_sign, words)):
        return None
    roles = reduce(or_, map(roles_of, words), 0)
    foreign = unspaced or bool(roles & FOREIGN)
    span = None
    # A message stands at the beginning, and hardly ever without one of its words among the first.
    if foreign or any(map(is_sign, words[:_FIRST_WORDS])):
        span = _message(stripped, foreign)
    if (
        span is None
        and not unspaced
        and (may_tell(roles) or (roles & (RETRY | APOLOGY) and speaks_figuratively(stripped)))
    ):
        beside = beside_fences(stripped)
        if beside is None or fails_at_once(beside, begins=stripped[0] != "`"):
            span = failing_reply(stripped)
    if span is None and foreign:
        span = failing_sentence(stripped)
    if span is None or _PROGRAM_CODE.match(stripped) or explains_at_once(stripped) or has_no_data(stripped):
        return None
    if (
        not roles & (SELF | APOLOGY)
        and not _NAMED.match(stripped)
        and advises(stripped[max(0, span[1] - 1) :])
    ):
        # "The job failed because the disk was full. Delete the old backups …": the asker's job, and an answer.
        return None
    telling = stripped[span[0] : span[1]].strip()
    # What follows the words of a message may name the kind: "Error: … timed out".
    kind = kind_of(stripped if span[0] == 0 else telling)
    return DetectedFailure(kind, telling[:200], start + span[0], start + span[1])


def _message(stripped: str, foreign: bool) -> tuple[int, int] | None:
    """The span of an error message with which the reply begins, unless it is explained, quoted or answered."""
    notice = stripped[:_NOTICE]
    if _QUOTED_FIRST.match(notice):
        return None
    written = MESSAGES.match(notice)
    found = written or NOTICES.match(notice) or (FOREIGN_NOTICES.match(notice) if foreign else None)
    if found is None or explains(stripped) or advises(stripped[found.end() :]):
        return None
    if written is None and not foreign and refutes(stripped):
        # What people say; what programs write stays decided.
        return None
    if not _MACHINE_OUTPUT.search(notice) and answers_besides(stripped):
        return None
    if stripped.startswith("```") and len(_FENCED.sub(" ", stripped).split()) > 6:
        return None
    rest = stripped[found.end() :]
    turn = _BUT.search(rest[:600])
    if (
        turn
        and not _GOES_ON_FAILING.search(rest[turn.end() : turn.end() + 200])
        and len(rest[turn.end() :].split()) >= 4
    ):
        return None
    # A notice is short. A long text that begins like one is an explanation, unless it looks like machine output.
    if len(stripped) > 900 and stripped.count("\n") < 5 and not _NAMED.match(stripped):
        return None
    return 0, found.end()
