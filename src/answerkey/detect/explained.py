"""Whether a reply puts an error to use instead of being one: it explains a message, answers around a trace or code, lists codes.

An explanation is known by its build, not by its subject: what is shown stands in quotation marks, in a fence or in a paragraph of its
own, and sentences about it follow ("… means …", "Raise the limit …"); a notice is followed by regret, another try or nothing.
"""

# ruff: noqa: E501 — lists of phrases.

import re

from answerkey.text.lazy import lazy

__all__ = [
    "advises",
    "beside_fences",
    "explains_at_once",
    "has_no_data",
    "is_explaining_prose",
    "words_around",
]

_FENCE = lazy(r"```.*?(?:```|\Z)", re.DOTALL)
_INLINE = lazy(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|`[^`\n]{1,300}`")
# "ETIMEDOUT, that is errno 110", "`Out of memory` is written by the kernel", "OOMKilled with exit code 137 is Kubernetes telling you …":
# a name without a colon or full stop, then what it is. "… which means that" draws a conclusion instead.
_DEFINED = lazy(
    r"(?!\W*(?:i|we|it|this|that|there|sorry|unfortunately|oops|your|our|my|something)\b)[^\n:.!?]{2,90}?(?<!which)(?<!that)(?<!this)(?<!, it)"
    r"(?:[\"”`*)]?,? (?:just |simply |only |usually |typically |normally )?"
    r"(?:means?|stands? for|tells? (?:you|us|me)|says? (?:that|so|no more)|refers? to|denotes?|signals? that|indicates?)"
    r"|[\"”`*)]?,? (?:that )?(?:is|was|are) (?:just |simply |usually |typically )?(?:the (?:[\w-]+ ){0,3}(?:errno|code|name|status|signal|message|error|exception|return|answer|kernel|exit|http)|"
    r"an? (?:[\w-]+ ){0,3}(?:errno|code|status|signal|message|error|exception|class|subclass|answer|way|sign)|errno|signal|what|how|not a|written|sent|returned by|raised (?:by|when|if)|thrown (?:by|when|if)|shown (?:by|when|if)|issued|caused by|[A-Z]\w+ telling))\b",
    re.IGNORECASE,
)
# What another reply said: "Reply 17 reads: …", "The bot's answer was …".
_REPORTED = lazy(
    r"[^\n.:]{0,60}\b(?:answer|reply|response|message|notice)\b[^.\n:]{0,40} (?:was|reads?|is|said|says)[:,]? QUOTED\W*\s\w",
    re.IGNORECASE,
)
# What somebody said: "He replied: '…'"; what a tool answered is a failure.
_QUOTES_SOMEBODY = lazy(
    r"(?!(?:i|we|it)\b)(?!.{0,30}\b(?:tool|server|api|system|search|database|service|bot|model)\b)(?:[\w'’.]+ ){1,4}(?:said|replied|wrote|answered|says|texted|responded|told \w+)[:,]? (?:QUOTED|['‘])",
    re.IGNORECASE,
)
# Sentences that begin with what the asker is to do about something of theirs; "please", "check", "try" and "contact" are in notices too.
_ADVICE = lazy(
    r"(?:[.:;!]|\n)\s+(?:(?:So|Then|Either|First,?|Just|To \w+[^.,\n]{0,40},) (?i:(?!wait|try|contact|ask|reach|the |an? |your |there )[a-z]+ )|"
    r"(?:Add|Reset|Restart|Use|Split|Strip|Define|Increase|Lower|Raise|Set|Install|Make sure|Free|Fix|Replace|Change|Rename|Move|Pass|Cast|Delete|Remove|Turn|Clean|Convert|Wrap|Give (?!it|me|us)|Compare|Correct|Reuse|Renew it|Rewrite|Run it|Start (?:it|the)|Put|Close|Declare|Import|Initiali[sz]e|Grant|Unplug|Rinse|Compile|Upgrade (?:to (?!continue|pro\b|plus|keep|get|unlock|a )|it|the)|Ask the|Pin|Swap|Clear (?!your)|Deploy)\b"
    r"|(?:This (?:happens|means|is because)|It means|To (?:fix|solve|avoid|resolve)|You (?:can|should|need to) (?!try|wait|retry|find|see|do this|ask|contact|reach|also|reload|refresh|still|send)|In your)\b|Check (?:that|whether|if) )"
)
# Two codes that are each said something about are a glossary.
_CODE_ENTRY = lazy(
    r"(?:^\s*(?:[-*•]|\d\.) +\W*(?P<name>[A-Z]\w+(?:Error|Exception)))\b|"
    r"(?:\A|[.;,]\s+|\n)\W*(E[A-Z]{4,14}|[1-5]\d\d|[A-Z]{1,5}-?\d{2,5})(?: [A-Z][\w ]{2,30}?)?(?::| =| –| —| -| means| is) (?=[a-z])",
    re.MULTILINE,
)
# A text that the asker ordered: "Sample apology email: …", a letter with its subject.
_DRAFT = lazy(
    r"\A[^\n:]{0,80}\b(?:sample|draft|template|wording|e-?mail|letter|text for|message (?:you|for)|reply for)\b[^\n:]{0,60}:"
    r"|\A(?:(?:sure|of course|certainly|gladly)\b[!,.]? )?here(?:['’]s| is) an? (?!error)[^\n:]{3,80}:\s*\n"
    r"|^\W*(?:Subject|Betreff|Asunto|Objet): ",
    re.IGNORECASE | re.MULTILINE,
)
# "isn't available in the database", "was never recorded in our books": what is not in a place is not there, which is an answer ...
_NOT_IN = lazy(
    r"\b(?:not|never|no|cannot|can['’]t|(?:is|are|was|were|do|does|did)n['’]t)\b (?:\w+ ){0,3}?"
    r"(?:available|recorded|stored|listed|kept|found|find|included|contained|mentioned|tracked|see|exist|on file)\b[^.\n]{0,25}? (?:in|among|on) "
    r"(?:the|our|your|my|any|this|these|those) (?:[\w-]+ ){0,3}?(?:database|records?|documents?|files?|index|ledger|books?|data|archive|leases?|contracts?|list)\b",
    re.IGNORECASE,
)
# ... unless something keeps it from being seen now.
_FOR_NOW = lazy(
    r"\b(?:right now|currently|at the moment|at this (?:time|moment)|temporar\w*|due to|because|again|later|error|errors|fail\w*|issues?|problems?|trouble|"
    r"time[ds]?[- ]?out|outage|down|offline|unable|unavailable|connect\w*|reach\w*|access\w*|respond\w*|crash\w*)\b",
    re.IGNORECASE,
)
_MACHINE_LINE = lazy(r"[{}<>=\\]|\w\.\w+\(|:\d+\b|\w/\w+/|::|^\s|\w(?:Error|Exception)\b")
_SENTENCE_END = (".", "!", "?", ".)", ".”", '."', "`", "。")


def beside_fences(text: str) -> str | None:
    """What is said outside of the fenced code where it is a sentence at least, else None: no fence, or nothing beside it."""
    if "```" not in text:
        return None
    said = _FENCE.sub("\n", text).strip()
    return said if len(said.split()) > 6 else None


def words_around(text: str, start: int, end: int) -> int | None:
    """How many words are said beside the quotation or fence that holds a span; None where it is in none."""
    for pattern in (_FENCE, _INLINE):
        for quoted in pattern.finditer(text):
            if quoted.start() <= start and end <= quoted.end():
                return len(pattern.sub(" ", text).split())
    return None


def explains_at_once(text: str) -> bool:
    """Whether a reply says what an error is (in its first sentence, or of several codes), or is a text that the asker ordered."""
    head = text[:600]
    said = _INLINE.sub("QUOTED", head)
    if (
        _DEFINED.match(said)
        or _REPORTED.match(said)
        or _QUOTES_SOMEBODY.match(said)
        or (":" in head and _DRAFT.search(head))
    ):
        return True
    return len(set(_CODE_ENTRY.findall(head))) >= 2


def has_no_data(text: str) -> bool:
    """Whether a reply says that something is not in a place, and nothing of why it could not be seen there."""
    head = text[:600]
    return _NOT_IN.search(head) is not None and _FOR_NOW.search(head) is None


def advises(rest: str) -> bool:
    """Whether what follows a message tells the asker how to mend something of theirs."""
    return _ADVICE.search(rest[:600]) is not None


def is_explaining_prose(paragraph: str) -> bool:
    """Whether a paragraph beside a trace is written by hand: ten words or more in sentences, without a machine's marks at each step."""
    words = paragraph.split()
    if len(words) < 10 or not paragraph.rstrip().endswith(_SENTENCE_END):
        return False
    return len(_MACHINE_LINE.findall(paragraph)) * 8 <= len(words)
