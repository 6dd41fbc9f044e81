"""A reply in plain words: without what it quotes or shows as code, and with figures of speech for failing and being over replaced."""

# ruff: noqa: E501 — lists of phrases.

import re

from answerkey.text.lazy import lazy

__all__ = ["QUOTATION", "QUOTED", "speaks_figuratively", "without_quotations"]

_QUOTES = '"“„«`'
QUOTED = lazy(r"\"[^\"\n]{8,300}\"|“[^”\n]{8,300}”|„[^“”\"\n]{8,300}[“”\"]|«[^»\n]{8,300}»|`[^`\n]{8,300}`")
# It is still seen that something was quoted.
QUOTATION = ' "quotation" '
_FENCED = lazy(r"```.*?(?:```|\Z)", re.DOTALL)
# How people say that something failed, in several words.
_FAILED = lazy(
    r"\b(?:(?:is|are|was|were|(?:i|you|we|they)(?:['’](?:m|re))|seems? to be|having|['’]s|has) )?(?:having|had|has) a (?:bad (?:day|moment)|moment|meltdown|hiccup|wobble)\b"
    r"|\b(?:gave|gives|giving|given) (?:up|out)\b|\b(?:fell|falls|fallen|falling|tipped|keeled) (?:over|apart)\b|\bfell (?:down|flat|off)\b|\bon the (?:fritz|blink)\b"
    r"|\b(?:acting|acted|playing) up\b|\bnot (?:cooperating|behaving|playing (?:ball|along|nice))\b"
    r"|\b(?:bit the dust|kicked the bucket|packed it in|threw (?:a fit|up)|conked out|pegged out|crapped out|choked up|locked up|froze up|blew up|fell asleep|ran aground)\b"
    r"|\b(?:wasn['’]t|was not) (?:supposed|meant) to happen\b|\bdid(?:n['’]t| not) (?:make it|go (?:through|well|as planned)|work out|pan out)\b|\b(?:hit|ran into) (?:a|an) (?:\w+ )?(?:wall|snag|bump|roadblock|hurdle|dead end)\b",
    re.IGNORECASE,
)
# How people say that it is over.
_OVER = lazy(
    r"\blast (?:night|week|month|year|quarter|spring|summer|fall|autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\b(?:was|is|came|were|are|been|got) back (?:up|online|in service|to normal|on)\b|\b(?:is|are|was|were) (?:working|running|up) (?:again|as usual|normally|fine)\b",
    re.IGNORECASE,
)
# One of these is in each of the above; most replies have none.
_FAILED_FIRST = frozenset(
    [
        "having",
        "gave",
        "gives",
        "giving",
        "given",
        "fell",
        "falls",
        "fallen",
        "falling",
        "tipped",
        "keeled",
        "acting",
        "acted",
        "playing",
        "bit",
        "kicked",
        "packed",
        "threw",
        "conked",
        "pegged",
        "crapped",
        "choked",
        "locked",
        "froze",
        "blew",
        "ran",
        "hit",
        "wasn't",
        "wasn’t",
        "didn't",
        "didn’t",
        "supposed",
        "meant",
        "fritz",
        "fritz.",
        "blink",
        "blink.",
        "cooperating",
        "cooperating.",
        "behaving",
        "behaving.",
    ]
)
_OVER_SIGNS = ("last ", " back ", " again", " as usual", " normally", " fine")
_SINGLE_QUOTED = lazy(r"(?<=[\s:,(])'(?:[^'\n]|'(?=\w)){8,300}'(?!\w)")


def speaks_figuratively(text: str) -> bool:
    """Whether a text may say in several words that something failed: "gave up", "fell over"."""
    return not _FAILED_FIRST.isdisjoint(text.lower().split())


def without_quotations(text: str) -> str:
    """The text without what it quotes or shows as code, unless hardly anything is left; figures of speech in plain words."""
    if speaks_figuratively(text):
        text = _FAILED.sub("failed", text)
    if any(map(text.__contains__, _OVER_SIGNS)):
        text = _OVER.sub(" yesterday ", text)
    said = _FENCED.sub(" \n", text) if "```" in text else text
    if any(map(said.__contains__, _QUOTES)):
        said = QUOTED.sub(QUOTATION, said)
    if " '" in said or "('" in said:
        said = _SINGLE_QUOTED.sub(QUOTATION, said)
    return said if len(said.split()) >= 4 else text
