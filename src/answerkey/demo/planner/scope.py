"""What the assistant is not for: small talk, other subjects, other languages, attempts to change data."""

import re

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.language.vocabulary import Vocabulary
from answerkey.demo.language.words import STOPWORDS, normalise

__all__ = ["decline", "is_foreign", "off_topic", "small_talk"]

_HOSTILE = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:rules?|instructions?|prompts?|"
    r"guidelines|above|previous)\b|"
    r"\b(?:drop|truncate|alter|wipe|erase|destroy|corrupt)\b.{0,30}\b(?:table|database|records?|"
    r"data|tables|properties|transactions)\b|"
    r"\b(?:delete|remove|insert|update|modify|edit|overwrite)\b.{0,40}\b(?:rows?|records?|tables?|"
    r"database|entry|entries|transactions?|ledger|into|set)\b|"
    r"^(?:please |now |can you |could you )*(?:change|add|set|raise|lower|increase) (?:the|a|an|my|our) |"
    r"\b(?:system prompt|jailbreak|developer mode|act as|pretend (?:to be|you))\b"
)
_PAYMENTS = re.compile(
    r"\b(?:transfer|wire|send|pay|move)\b \$?[\d,.]+|\b(?:transfer|wire|send) (?:the )?(?:money|"
    r"funds|payment)\b|\b(?:book|schedule|email|call) (?:a|an|the) (?:plumber|meeting|"
    r"appointment|tenant|contractor)\b"
)
_TOPICS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(rf"\b(?:{words})\b"), reply)
    for words, reply in [
        (
            r"weather|temperature|snow(?:fall)? (?:today|tomorrow|forecast)|raining|sunny|storm",
            "I have no forecast; a meteorological service will have one",
        ),
        (
            r"recipes?|cook(?:ing)?|bake|baking|lasagna|dinner|cake",
            "Cooking is outside what I do; a cookbook serves you better",
        ),
        (
            r"poems?|haiku|limericks?|song lyrics|short story|novel|joke|jokes|riddle",
            "Creative writing and entertainment are a job for somebody else",
        ),
        (
            r"football|soccer|super bowl|world cup|basketball|nba|nfl|olympics?|baseball|world series|hockey",
            "I follow no sports results; a sports desk has the score",
        ),
        (
            (
                r"python (?:function|script|code|program)|javascript|write (?:me )?(?:a |some "
                r")?(?:code|script|program|function)|debug|regex|sort a list|programming"
            ),
            "Programming help is not my job; a developer assistant is the place for it",
        ),
        (
            (
                r"bitcoin|crypto\w*|stock (?:market|price|tip)s?|nasdaq|dow jones|shares? of|s&p|"
                r"invest in|ethereum"
            ),
            "I give no investment advice and see no market quotes; ask a licensed broker",
        ),
        (
            r"headache|fever|symptoms?|medicine|doctor|diagnos\w+|ibuprofen|vaccine|dosage",
            "I give no medical advice; please ask a physician or a pharmacist",
        ),
        (
            r"president|prime minister|election|senator|congress|politic\w+|vote for",
            "I do not cover politics; a newspaper does",
        ),
        (
            r"translate|translation|how do you say",
            "Translation is not something I offer; a dictionary or an interpreter can",
        ),
        (
            r"movies?|films?|netflix|tv (?:show|series)|actor|actress|celebrity|music|band",
            "I know nothing about films or entertainment; a film guide does",
        ),
        (
            r"flights?|hotels?|vacation|holiday trip|travel (?:to|plans?)|airport|sightseeing",
            "I cannot plan journeys; a travel agency can",
        ),
        (
            (
                r"capital of|population of|tallest|mount everest|how far is|planet|moon|dinosaurs?|"
                r"history of|square root|derivative of|solve for|photosynthesis"
            ),
            "General knowledge is beyond my files; an encyclopedia has it",
        ),
        (
            r"evict (?:my|a|the) neighbou?r|sue|lawsuit advice|legal advice|divorce|custody|immigration",
            "I give no legal opinions; please ask an attorney",
        ),
        (
            r"dating|girlfriend|boyfriend|horoscope|zodiac|love life|lottery numbers|tarot",
            "I cannot help with private matters or predictions",
        ),
    ]
]
_SMALL_TALK = [
    (
        re.compile(r"^(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|howdy)[\s!.,a-z]{0,20}$"),
        "Hello! ",
    ),
    (
        re.compile(r"^(?:thanks?|thank you|thx|cheers|great|perfect|ok|okay)[\s!.,a-z]{0,30}$"),
        "You are welcome. ",
    ),
    (
        re.compile(
            r"^(?:who|what) are you\b|^what can (?:you|i) (?:do|ask|help)|^how can you help|"
            r"^help\b|^what do you (?:do|know)|\byour (?:capabilities|purpose|name)\b"
        ),
        "",
    ),
    (re.compile(r"^(?:bye|goodbye|see you|good night)\b"), "Goodbye. "),
]
_DOMAIN = re.compile(
    r"\b(?:we|our|ours|us|my|mine|llc|compan(?:y|ies)|propert(?:y|ies)|building|tenants?|"
    r"leases?|rent\w*|members?|manager|agreement|polic(?:y|ies)|insurance|tax\w*|"
    r"depreciation|basis|mortgage|loan|documents?|minutes|articles|ein|irs|filing|licen[cs]e|"
    r"deposit|units?|owner\w*|landlord|operating|registered|agent|form \d+|1065|1099\w*|contractors?|k-1|cpa|"
    r"meeting|apartments?|partners?|shares?|manager|insurer|vot\w+|quorum|distributions?|"
    r"contribut\w+|expenses?|income|repairs?|obligations?|"
    r"deductible|coverage|inspection|radon|septic)\b"
)
# Frequent small words of other languages that English does not have.
_FOREIGN = frozenset(
    """
        el la los las una qué que cuál cual cuánto cuanto nuestro nuestra dónde donde está fue por para
        der die das und ist nicht wie viel unser unsere wann wo le les des une est quel quelle combien
        notre nous où était avec pour il lo gli della quanto nostro nostra dove è era com nosso qual
        quanto onde
    """.split()
)
_ENGLISH = frozenset(
    """
        the is are what which who when where how was were do does did of in on for to our we my much
        many and have has can list show tell give please us about
    """.split()
)


def small_talk(text: str, company: str) -> str | None:
    """A reply to a greeting, to thanks, or to "what can you do"."""
    for pattern, opening in _SMALL_TALK:
        if pattern.search(text):
            return opening + _offer(company)
    return None


def is_foreign(question: str) -> bool:
    """Whether the question is clearly not in English."""
    letters = [c for c in question if c.isalpha()]
    if letters and sum(1 for c in letters if ord(c) > 0x24F) > 0.4 * len(letters):
        return True
    words = re.findall(r"[^\W\d_]+", question.lower())
    foreign = sum(w in _FOREIGN for w in words)
    return foreign >= 2 and foreign > sum(w in _ENGLISH for w in words)


def off_topic(u: Understanding, vocabulary: Vocabulary, *, understood: bool) -> str | None:
    """Why a question is none of the assistant's business, or None. `understood`: a skill can explain it."""
    if _HOSTILE.search(u.text):
        return (
            "I only read: the database is read-only for me, and nothing in a question changes my "
            "rules or the data"
        )
    if _PAYMENTS.search(u.text):
        return "I cannot move money, book appointments or act for you; I only look things up"
    named = u.properties or u.parties or u.units or u.documents
    for pattern, reply in _TOPICS:
        if pattern.search(u.text) and not named and not _owns(u.text):
            return reply
    if understood or named or u.categories or _DOMAIN.search(u.text):
        return None
    unknown = [t for t in u.tokens if t.text not in STOPWORDS and t.stem not in vocabulary.corpus]
    content = [t for t in u.tokens if t.text not in STOPWORDS and any(c.isalpha() for c in t.text)]
    if not content or len(unknown) * 2 > len(content):
        return "That is outside what I have on file"
    return None


def decline(reason: str, company: str) -> str:
    """A polite refusal that says what the assistant is for."""
    return f"Sorry, I can't help with that. {reason}. {_offer(company)}"


def _owns(text: str) -> bool:
    return (
        re.search(
            r"\b(?:our|we|us|tenants?|leases?|polic(?:y|ies)|agreement|minutes|property)\b", normalise(text)
        )
        is not None
    )


def _offer(company: str) -> str:
    return (
        f"I answer questions about {company}: its properties, transactions, obligations and "
        "business documents."
    )
