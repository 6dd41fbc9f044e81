"""The planner: cuts a question into clauses and gives each to the skill that explains it best."""

import re

from answerkey.demo.knowledge import Knowledge
from answerkey.demo.language.understanding import Understanding, understand
from answerkey.demo.language.vocabulary import load_vocabulary
from answerkey.demo.language.words import normalise
from answerkey.demo.planner.catalogue import DocumentDates, DocumentList
from answerkey.demo.planner.context import Context, Skill
from answerkey.demo.planner.conversation import Conversation, complete
from answerkey.demo.planner.obligations import Obligations
from answerkey.demo.planner.properties import PropertyFacts
from answerkey.demo.planner.quotes import Quotes
from answerkey.demo.planner.scope import decline, is_foreign, off_topic, small_talk
from answerkey.demo.planner.tenancy import Tenancy
from answerkey.demo.planner.transactions import Transactions
from answerkey.demo.tools.toolbox import Turn

__all__ = ["Planner"]

_SPLIT = re.compile(
    r"\?\s+(?=\w)|;\s+|,?\s+(?:and|but|plus)\s+(?:also\s+)?(?=(?:what|which|who|whose|how|when|"
    r"where|does|do|is|are|did|was|were|can|tell|list|show)\b)|"
    r",\s+(?=(?:what|which|who|how|when|where)\b)",
    re.IGNORECASE,
)
_MAX_CLAUSES = 6
# In order of preference where two explain a question equally well.
_SKILLS: list[Skill] = [
    DocumentList(),
    DocumentDates(),
    Obligations(),
    Tenancy(),
    PropertyFacts(),
    Transactions(),
]
# Asks for what a paper says, where a table may have the same word.
_CONTENT = re.compile(
    r"\b(?:say|says|said|state[sd]?|according to|mention\w*|clause|provision|cover(?:s|ed|age)?|"
    r"exclu\w+|allowed|permitted|prohibit\w*|forbidden|terms of|require\w*|"
    r"describe[sd]?|explain\w*|decide[d]?|approve[d]?|discuss\w*|resolve[d]?|vot\w+|agreement|"
    r"minutes|articles|checklist|memo|house rules|purpose|why)\b"
)
# "Hi, I'm the new accountant." says nothing about what is asked.
_PREAMBLE = re.compile(
    r"^\s*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^.!?,]{0,30}[.!,]\s+)?"
    r"(?:(?:i'm|i am|this is) [^.!?]{0,60}[.!]\s+)?(?=.*\w)",
    re.IGNORECASE,
)
# Asks for rules and reasons, which only the documents have.
_RULES = re.compile(
    r"\b(?:what happens|happens (?:if|when)|what if|why|are (?:\w+ )?allowed|"
    r"(?:is|are) (?:\w+ )+(?:allowed|permitted)|(?:may|can) (?:the|a|an|i|tenants?|guests?|members?|rent) |"
    r"(?:when|how) (?:can|may) |how often |how do i |does (?:the|a) (?:landlord|tenant|owner|manager) |"
    r"how (?:are|is) (?:the )?(?:profits?|losses|decisions|votes) )"
)


class Planner:
    """The brain of the reference chatbot."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._vocabulary = load_vocabulary(knowledge)
        self._as_of = knowledge.as_of
        self._company = knowledge.company

    def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer from the tools, or say what is not on record or not in scope."""
        context = Context(self._vocabulary, self._as_of, self._company, turn)
        question = _PREAMBLE.sub("", question) or question
        normal = normalise(question)
        if reply := small_talk(normal, self._company):
            return reply
        if is_foreign(question):
            return decline("I understand English only", self._company)
        whole = understand(question, self._vocabulary, self._as_of)
        understood = any(skill.fit(whole) == [] for skill in _SKILLS)
        reason = off_topic(whole, self._vocabulary, understood=understood or conversation.last is not None)
        if reason:
            return decline(reason, self._company)
        answers = []
        for number, clause in enumerate(_clauses(question)):
            u = complete(clause, conversation, self._vocabulary, self._as_of, same_question=number > 0)
            skill, sure = self._choose(u)
            text = skill.answer(u, context)
            if not sure and text.startswith("Not on record"):
                other = Quotes().answer(u, context)
                text = text if other.startswith("Not on record") else other
            if text not in answers:
                answers.append(text)
            conversation.last, conversation.skill = u, type(skill).__name__
        return "\n\n".join(answers)

    def _choose(self, u: Understanding) -> tuple[Skill, bool]:
        """The skill that leaves the fewest words unexplained, and whether it explains all of them."""
        fits = [
            (len(left), order, skill)
            for order, skill in enumerate(_SKILLS)
            if (left := skill.fit(u)) is not None
        ]
        fits.sort(key=lambda fit: fit[:2])
        if not fits or _RULES.search(u.text):
            return Quotes(), True
        unexplained, _, skill = fits[0]
        if isinstance(skill, Transactions) and not (u.kind or u.categories or u.parties):
            # only words that stand in some description speak for it
            return (skill, False) if unexplained == 0 else (Quotes(), True)
        if unexplained == 0 and not (
            _CONTENT.search(u.text) and not isinstance(skill, DocumentList | DocumentDates | Transactions)
        ):
            return skill, True
        # "spend on solar panels": what the money was for may stand in a description, or nowhere
        if unexplained <= 2 and isinstance(skill, Transactions) and u.kind and not u.document_types:
            return skill, _CONTENT.search(u.text) is None and unexplained == 0
        return Quotes(), True


def _clauses(question: str) -> list[str]:
    parts = [p.strip() for p in _SPLIT.split(question) if p and p.strip()]
    if not parts or any(len(p.split()) < 2 for p in parts):
        return [question]
    # nobody asks more at once in earnest, and every clause may cost several tool calls
    return parts[:_MAX_CLAUSES]
