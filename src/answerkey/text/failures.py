"""Whether a reply is a failure instead of an answer, seen from its text alone.

A reply fails if it *is* an error message, not if it speaks of one: so a notice counts where the reply begins, and what is
quoted, fenced as code or answered after it does not. Only the beginning of a long reply is read, and the time is linear.
Kinds are those of the scoring standard: `empty`, `null`, `malformed`, `trace`, `error_text`, and where the notice says so
`timeout`, `rate_limit`, `connection`, `memory`, `http` or `tool`.
"""

# ruff: noqa: E501 — lists of phrases.

import json
import re

import msgspec

from answerkey.text.failure_sentences import answers_besides, failing_sentence
from answerkey.text.failure_signs import (
    FAILURE_SENTENCES,
    KIND_SIGNS,
    LEAKS,
    TEMPLATE_TALK,
    TEMPLATES,
    TRACES,
)

__all__ = ["DetectedFailure", "detect_failure"]


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error."""

    # A kind of the scoring standard: empty, null, error_text, trace, malformed, timeout, rate_limit, …
    kind: str
    # The telling part of the reply, or what is wrong with it.
    message: str
    # Span of the telling part in the reply.
    start: int = 0
    end: int = 0


# "none" in small letters is an answer ("How many are late? none").
_NULLS = frozenset(
    {"null", "NULL", "Null", "None", "undefined", "NaN", "nan", "nil", "<null>", "(null)", "<nil>", "nullptr",
     "[]", "{}", '""', "''", "[null]", "None None"}
)  # fmt: skip
# White space, control and format characters, and the marks that leave nothing on the screen.
_INVISIBLE = re.compile(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_ONLY_MARKS = re.compile(r"[.…·\-–—_*#`\"'~|>]+")
_UNDECODABLE = re.compile("[\ufffd\ud800-\udfff\x00-\x08\x0e-\x1a]")
_MOJIBAKE = re.compile("Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|Â[\xa0-\xbf]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}")
_FENCED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_HEAD = 3000
_NOTICE = 400
# After these a notice turns into an answer, unless what follows is more of the same.
_BUT = re.compile(
    r"[,.;!]? (?:but|however|nevertheless|still|that said|in the meantime|fortunately)\b,?", re.IGNORECASE
)
_GOES_ON_FAILING = re.compile(
    r"try again|retry|contact|support|administrator|later|unable|could(?:n['’]t| not)|cannot|can['’]t|apologi|sorry|looking into|"
    r"working on|rephrase|let me know|patience|inconvenience|you requested|tokens|failed|error|i (?:was|am) not able|feel free",
    re.IGNORECASE,
)
# Advice after the name of an error explains it: the asker's error, not the bot's.
_ADVICE = re.compile(
    r"[.:;]\s+(?:(?:Add|Reset|Restart|Use|Split|Strip|Define|Increase|Lower|Raise|Set|Install|Make sure|Free|Fix|Replace|Change|Rename|Move|This (?:happens|means|is because)|It means|To fix|You (?:can|should|need))\b|Check (?:that|whether|if) )"
)
# Machine output may hold dates and figures and is no answer for that.
_MACHINE_OUTPUT = re.compile(
    r"\w(?:Error|Exception)\b|^\W*(?:\w+ )?(?:ERROR|FATAL|[Ee]rror)\b[^a-z]{0,12}|\d{4}-\d\d-\d\d|[{}<>_]|^\W*[A-Z]{3,}[-\[]|\b(?:TPM|RPM)\b|::"
)
_HTML_ERROR = re.compile(
    r"<(?:title|h1|h2|center|p)[^>]*>\s*(?:<\w+>)?\s*(?:error\b|\d{3} |[45]\d\d\b|bad gateway|internal server error|service (?:temporarily )?unavailable|"
    r"gateway time-?out|access denied|forbidden|not found|application error|something went wrong|whitelabel error|just a moment|"
    r"server error|request rejected|attention required)",
    re.IGNORECASE,
)
_XML_ERROR = re.compile(
    r"(?:<\?xml[^>]{0,100}>\s*)?(?:<[\w:]*(?:Envelope|Body|Response)\b[^>]{0,200}>\s*){0,3}<(?:\w{1,20}:)?(?:\w{0,20}(?:error|fault|exception)s?|ErrorResponse)\b(?![^>]{0,100}/>)",
    re.IGNORECASE,
)
_FAILING_STATUS = {
    "error",
    "failed",
    "failure",
    "fail",
    "timeout",
    "unavailable",
    "denied",
    "exception",
    "crashed",
    "aborted",
}
# What a body with only a message says if it is an error.
_BODY_SIGNS = re.compile(
    r"\bnot (?:found|auth|allowed|valid|support|available|permitted|implemented)|internal|denied|forbidden|invalid|endpoint|unauthori|exceed|missing|required|"
    r"timed? ?out|failed|failure|unavailable|expired|too many|throttl|error|exception|bad request|credential|refused|unsupported|went wrong|overload",
    re.IGNORECASE,
)
_ERROR_KEYS = (
    "error",
    "errors",
    "exception",
    "fault",
    "errorMessage",
    "error_message",
    "Error",
    "stackTrace",
    "traceback",
    "error_code",
    "errorCode",
    "error_description",
    "exceptionMessage",
    "faultstring",
    "is_error",
    "isError",
    "err",
    "errno",
)
_CALL_KEYS = (
    {"name", "arguments"}, {"tool_calls"}, {"function_call"}, {"tool", "tool_input"}, {"action", "action_input"}, {"tool", "arguments"},
    {"tool", "args"}, {"name", "parameters"}, {"function", "arguments"}, {"recipient_name", "parameters"}, {"tool_name", "tool_input"},
    {"tool_name", "arguments"}, {"type", "function"}, {"tool", "input"}, {"name", "input", "type"}, {"tool_use_id"},
)  # fmt: skip
_ANSWER_KEYS = (
    "answer",
    "response",
    "text",
    "output",
    "message",
    "content",
    "result",
    "data",
    "results",
    "value",
)


# Cheap looks before the costly patterns: a log is mostly answers, and an answer mostly has none of these.
_TRACE_SIGNS = (
    "Traceback", "line ", "\tat ", "  at ", "goroutine", "panic", ".rb:", "Fatal", "Parse error", "#0 ", "tack trace",
    "Segmentation", "smashing", "Caused by", "Unhandled", "node:internal", "Exception in",
    "** ", " lib/", "CallStack", "terminate called", "Error in ", "Fatal error", "#1 ", "tack traceback", "+0x",
)  # fmt: skip
_LEAK_SIGNS = (
    "[object", "<", "@", "Message", "Completion", "Block(", "RunResult(", "Action:", "[TOOL", "System.", "Promise {", "functions.",
    "undefined", "NaN", "$null", "$None", "INST]", "[native", "=", "Ok(", "Err(", "Some(", "map[", "%!", "#<", "Stream {",
)  # fmt: skip
_TEMPLATE_SIGNS = ("{", "[", "<", "%(", "__", "%s", "%d")
_SHORT = 200
_NOTICE_SIGNS = (
    "err", "fail", "exceed", "died", "excep", "wrong", "broke", "unable", "could", "can't", "can’t", "cannot", "not able", "timed", "limit",
    "unavail", "refus", "trouble", "issue", "problem", "crash", "again", "denied", "memory", "gateway", "not found", "abort",
    "overload", "respon", "invalid", "max", "quota", "unsuccess", "difficult", "hiccup", "glitch", "snag", "fault",     "offline", "unreach", "down", "lost", "closed", "reset", "expected", "missing", "no such", "not exist", "undefined", "nil ",
    "uncaught", "out of range", "division", "heap", "killed", "econn", "getaddr", "token", "indices", "operand", "requests",
    "filtered", "blocked", "truncat", "cancel", "experienc", "capacity", "wait", "retries", "stopped", "unauthor", "forbidden", "expired",
    "erreur", "impossible", "délai", "delai", "connexion", "réessayer", "requêtes", "fehler", "schief", "fehlgeschlagen", "verbindung",
    "zeitü", "zeitu", "anfrage", "erreichbar", "verfügbar", "störung", "salió", "salio", "pudo", "pude", "puedo", "disponible", "tiempo",
    "solicitudes", "conex", "echou", "échou", "エラー", "問題", "接続", "失敗", "タイムアウト", "しばらく", "もう一度", "できません",
    "ダウン", "リクエスト", "利用", "障害", "不具合", "混", "メンテナンス", "時間切れ", "うまくい", "応答", "つなが", "繋が",
    "oops", "uh-oh", "uh oh", "yikes", "not work", "n't work", "n’t work", "go through", "too long", "demand", "traffic", "trying to", "tried",
    "attempt", "hung", "froze", "stuck", "busy", "throttl", "interrupt", "kept", "keeps", "not load", "n't load", "maintenance", "bump",
    "n't manage", "no answer", "awry", "n't seem", "outage", "possible", "problème", "souci", "arrive", "parvien", "échec", "panne", "indispon",
    "surcharg", "fallo", "fallado", "caído", "problema", "dificultad", "mantenimiento", "konnte", "kann", "problem", "überlast",
    "gescheitert", "abgebrochen", "ora-", "sqlstate", "fatal", "too many", "lock", "expir", "too l", "tool", "connection", "unstable", "flaky", "drop",
    "cooperat", "errno", "enoent", "rpc ", "tns", "undefinedt", "errors.", "msg ", "e_", "exhaust", "internal", "npm ", "does not", "n't respond", "permission",
    "read propert", "timeout", "time-out", "time out", "time limit", "timing", "status code", "ido mal", "mal pass", "n't up", "deadline", "no output", "halted", "not avail", "n't avail", "schwierig", "cut off", "n't loaded", "having a", "not get", "n't get", "いただけ", "使用でき", "techni", "técnic", "terminated", "not valid", "revoked", "rejected",
)  # fmt: skip


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
        if stripped in _NULLS or stripped.strip("`\"'") in {"null", "undefined"}:
            return DetectedFailure("null", stripped, 0, len(text))
        if _ONLY_MARKS.fullmatch(stripped):
            return DetectedFailure("empty", "the reply is only punctuation", 0, len(text))
    start = head.find(stripped)
    return (
        _undecodable(head)
        or _structured(stripped, start, whole)
        or _trace(head)
        or _leak(head)
        or _notice(stripped, start)
    )


def _undecodable(head: str) -> DetectedFailure | None:
    """Undecodable text: one character in ten or more is lost or garbled."""
    if head.isascii() and "\x00" not in head and "\x01" not in head:
        return None
    lost = len(_UNDECODABLE.findall(head)) + 2 * len(_MOJIBAKE.findall(head))
    if lost >= 3 and lost * 10 >= len(head):
        return DetectedFailure("malformed", "the text is garbled or was not decoded", 0, len(head))
    return None


def _structured(stripped: str, start: int, whole: bool) -> DetectedFailure | None:
    """JSON bodies and HTML pages instead of an answer."""
    if stripped[0] == "<":
        fault = _XML_ERROR.match(stripped)
        if fault:
            return DetectedFailure(_kind(stripped), fault.group()[-200:], start, start + fault.end())
        page = _HTML_ERROR.search(stripped)
        if page:
            return DetectedFailure(_kind(page.group()) if _kind(page.group()) != "error_text" else "http",
                                   page.group(), start + page.start(), start + page.end())  # fmt: skip
        return None
    body = stripped.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if body[:1] not in {"{", "["}:
        return None
    if not whole:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        if re.match(r"[\[{]\s*[{\[]?\s*\"[\w$ -]+\"\s*:", body) and body[-1:] not in {"}", "]"}:
            return DetectedFailure("malformed", "JSON that breaks off", start, start + len(stripped))
        if re.match(r"\{'(?:error|role|content|type|id|tool|name)'\s*:", body):
            kind = _kind(body) if re.match(r"\{'error'", body) else "malformed"
            return DetectedFailure(kind, "a raw object", start, start + len(stripped))
        return None
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    keys = set(first)
    says = " ".join(
        str(first.get(key, "")) for key in ("error", "message", "detail", "title", "status", "code", "type")
    )
    if any(first.get(key) for key in _ERROR_KEYS):
        return DetectedFailure(_kind(body), body[:200], start, start + len(stripped))
    status = first.get("status", first.get("statusCode", first.get("status_code", first.get("code"))))
    failing = (isinstance(status, str) and status.lower() in _FAILING_STATUS) or (
        isinstance(status, int) and 400 <= status <= 599
    )
    if failing or first.get("success") is False or first.get("ok") is False or first.get("type") == "error":
        return DetectedFailure(_kind(body), body[:200], start, start + len(stripped))
    if (keys <= {"detail", "message", "timestamp", "path", "requestId", "trace_id", "title"}) and _notice(
        says.strip() or " ", 0
    ):
        return DetectedFailure(_kind(says), body[:200], start, start + len(stripped))
    if keys <= {"detail", "message", "Message", "msg", "code", "reason", "__type", "statusText", "request_id", "requestId"} and _BODY_SIGNS.search(body):  # fmt: skip
        return DetectedFailure(_kind(says), body[:200], start, start + len(stripped))
    if len(first) == 1:
        only = next(iter(first))
        if only in _ANSWER_KEYS and first[only] in (None, ""):
            return DetectedFailure("null", body[:200], start, start + len(stripped))
        if only in _ANSWER_KEYS and isinstance(first[only], str) and _notice(first[only].strip() or " ", 0):
            return DetectedFailure(_kind(first[only]), body[:200], start, start + len(stripped))
    if any(call <= keys for call in _CALL_KEYS) and not any(key in keys for key in ("answer", "response")):
        return DetectedFailure("malformed", "a tool call instead of an answer", start, start + len(stripped))
    if (
        keys >= {"role", "content"}
        or keys >= {"choices"}
        or keys >= {"candidates"}
        or (keys >= {"id", "object", "model"})
    ):
        return DetectedFailure("malformed", "a raw message object", start, start + len(stripped))
    return None


def _trace(head: str) -> DetectedFailure | None:
    """A trace that stands for itself: not quoted as code beside an explanation, not after a long answer."""
    if not any(map(head.__contains__, _TRACE_SIGNS)):
        return None
    found = TRACES.search(head)
    if found is None:
        return None
    prose = _FENCED.sub(" ", head)
    if len(prose) < len(head) and not TRACES.search(prose):
        # Quoted: a failure only if nothing is said beside it.
        if len(prose.split()) > 8:
            return None
    elif found.start() > _NOTICE:
        return None
    else:
        before = head[: found.start()].strip()
        if (
            len(before.split()) > 8
            and _notice(before, 0) is None
            and not re.search(r"(?:Error|Exception)\b|:\d+:", before)
        ):
            return None
    return DetectedFailure("trace", found.group().strip()[:200] or "trace", found.start(), found.end())


def _leak(head: str) -> DetectedFailure | None:
    """Raw objects, tool calls and unfilled placeholders, outside of what is shown as code."""
    leaky = any(map(head.__contains__, _LEAK_SIGNS))
    if not leaky and not any(map(head.__contains__, _TEMPLATE_SIGNS)):
        return None
    prose = _FENCED.sub(lambda code: " " * len(code.group()), head) if "`" in head else head
    found = LEAKS.search(prose) if leaky else None
    if found:
        around = len(prose.split())
        quoted = prose[found.start() - 1 : found.start()] in {'"', "“", "'"}
        if around > (8 if quoted else 25) and re.search(
            r"\b(?:means|javascript|because|python|prints?|shows?|fix|token|you)\b", prose, re.IGNORECASE
        ):
            return None
        return DetectedFailure("malformed", found.group()[:200], found.start(), found.end())
    found = TEMPLATES.search(prose)
    if found and not TEMPLATE_TALK.search(prose[: found.start()] + prose[found.end() :]):
        return DetectedFailure("malformed", found.group()[:200], found.start(), found.end())
    return None


def _notice(stripped: str, start: int) -> DetectedFailure | None:
    """An error message at the beginning of the reply that no answer follows."""
    notice = stripped[:_NOTICE]
    lowered = notice.lower()
    # A short reply is read whole whatever its words: notices have more of them than any list.
    long = len(stripped) > _SHORT
    if long and not lowered[:3].isdigit() and not any(map(lowered.__contains__, _NOTICE_SIGNS)):
        return None
    for sentence in FAILURE_SENTENCES:
        found = sentence.match(notice)
        if found:
            break
    else:
        span = failing_sentence(stripped)
        if span is None:
            return None
        said = stripped[span[0] : span[1]].strip()
        return DetectedFailure(_kind(said), said[:200], start + span[0], start + span[1])
    if not _MACHINE_OUTPUT.search(notice) and (
        answers_besides(stripped) or _ADVICE.search(stripped[found.end() :][:600])
    ):
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
    if (
        len(stripped) > 900
        and stripped.count("\n") < 5
        and not re.match(r"\W*[\w.]*(?:Error|Exception)\b", stripped)
    ):
        return None
    return DetectedFailure(_kind(notice), found.group().strip()[:200], start, start + found.end())


def _kind(notice: str) -> str:
    for kind, sign in KIND_SIGNS:
        if sign.search(notice[:_NOTICE]):
            return kind
    return "error_text"
