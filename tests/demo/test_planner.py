"""What the planner understands, asked in words that are not in the golden set."""

import asyncio

import pytest

from answerkey_demo import Chatbot, open_chatbot

DATABASE, SEARCH, LIST = "query_database", "search_document_content", "list_business_documents"


@pytest.mark.parametrize(
    ("question", "tool", "expected"),
    [
        ("Where is our property located?", DATABASE, ["900 S 9th St", "81401"]),
        ("Can you tell me the cost basis of the house at 900 South Ninth Street?", DATABASE, ["$442,300"]),
        ("How much rent came in during Aug 2024?", DATABASE, ["$16,144"]),
        ("rental revenue for 2024-08 please", DATABASE, ["$16,144"]),
        ("Total rents from July through September 2024?", DATABASE, ["$48,432"]),
        ("What did plumbing by Redcliff cost us in 2023?", DATABASE, ["$952"]),
        ("How much did we spend on electricity between March and June 2024?", DATABASE, ["$1,052.04"]),
        ("What were management fees in the first half of 2025?", DATABASE, ["$8,364"]),
        ("Which quarter of 2025 had the highest rental income?", DATABASE, ["2025 Q3", "$57,075"]),
        ("What was our profit in Q3 2024?", DATABASE, ["$32,059.14"]),
        ("How much mortgage interest did we pay on the duplex in 2024?", DATABASE, ["$14,268.77"]),
        ("When did we last pay Spruce & Son Roofing?", DATABASE, ["May 14, 2025"]),
        ("What is the smallest property?", DATABASE, ["57 Amelia St", "1,180"]),
        ("How many units does the building on Cascade have?", DATABASE, ["2 units"]),
        ("Who rents Unit B?", DATABASE, ["Gordon Applewhite"]),
        ("Whose lease runs out next?", DATABASE, ["December 31, 2025"]),
        ("Which tax filings are due in March 2026?", DATABASE, ["Form 1065", "Schedule K-1"]),
        ("When do we have to renew the cabin insurance?", DATABASE, ["April 2, 2026"]),
        ("How many pages does the operating agreement have?", DATABASE, ["14 pages"]),
        ("What paperwork is on file for 57 Amelia St?", LIST, ["Residential Lease, 57 Amelia St"]),
        ("Show me all tax documents", LIST, ["Tax Notes for 2023", "Depreciation and Basis Memo"]),
        ("What number did the IRS give us?", SEARCH, ["83-4567890"]),
        ("Why does the company exist according to its operating agreement?", SEARCH, ["residential rental"]),
        ("Is smoking permitted inside the apartments?", SEARCH, ["25 feet"]),
        ("May the tenant of the cabin use the wood stove?", SEARCH, ["seasoned wood"]),
        ("What happens if a loan payment is late?", SEARCH, ["15 days"]),
        ("Who was the seller of 900 S 9th St?", SEARCH, ["Harlan Voss"]),
        ("How much liability does the umbrella add?", SEARCH, ["$3,000,000"]),
        ("Which tenant rules apply to grills?", SEARCH, ["propane"]),
        ("What's the remaining mortgage on 900 S 9th?", DATABASE, ["$292,028.93"]),
        ("Which property has the biggest loan?", DATABASE, ["900 S 9th St", "$292,028.93"]),
        ("How much money did we make last year?", DATABASE, ["$112,270"]),
        ("Who fixed the Unit C shower valve?", DATABASE, ["Redcliff Plumbing", "$684"]),
        ("What deposits did we receive in 2024?", DATABASE, ["$6,100"]),
        ("How much has Warren Yazzie paid us so far?", DATABASE, ["$19,200"]),
        ("What did we pay the county treasurer in 2023?", DATABASE, ["$2,369"]),
        ("Compare rental income of the fourplex and the duplex in 2024", DATABASE, ["$142,985", "$44,688"]),
        ("Did our electricity costs increase between 2023 and 2025?", DATABASE, ["$995.07 more"]),
        ("Rental income Q1 2025 vs Q1 2024", DATABASE, ["$45,452", "$49,875"]),
        ("Show rental income by month for 2023", DATABASE, ["April 2023 $11,890", "Total $151,250"]),
        ("Which vendor did we pay the most in 2024?", DATABASE, ["Grand Mesa Credit Union"]),
        ("Which leases expire in 2026?", DATABASE, ["Marisol Quintana", "Warren Yazzie"]),
        ("Is the city rental licence for Cascade renewed?", DATABASE, ["November 18, 2025"]),
        ("Hi, I'm the new accountant. How much interest did we pay in 2024?", DATABASE, ["$31,902.32"]),
        ("Do we have any loan documents?", LIST, ["Promissory Note"]),
        ("Who owns the company?", SEARCH, ["55%", "30%", "15%"]),
        ("How are profits split?", SEARCH, ["allocated in these proportions"]),
        ("When was the company formed?", SEARCH, ["September 14, 2022"]),
        ("What did Teo report at the 2023 meeting?", SEARCH, ["inspection"]),
        ("Does the landlord pay for water at Cascade?", SEARCH, ["landlord pays water"]),
        ("How do I break my lease early?", SEARCH, ["45 days"]),
        ("Can I have a barbecue on my balcony?", SEARCH, ["Charcoal grills are forbidden"]),
        ("When can rent be increased for Hattie Lindqvist?", SEARCH, ["60 days"]),
    ],
)
def test_understands_paraphrases(bot: Chatbot, question: str, tool: str, expected: list[str]) -> None:
    reply = bot.ask_sync(question)
    assert reply["tools_used"] == [tool], reply["answer"]
    for part in expected:
        assert part in reply["answer"], reply["answer"]


def test_a_hybrid_question_uses_both_tools(bot: Chatbot) -> None:
    reply = bot.ask_sync(
        "What did we pay Greenbelt in 2024 and what does Hattie Lindqvist's lease say about mowing?"
    )
    assert set(reply["tools_used"]) == {DATABASE, SEARCH}
    assert "$1,530" in reply["answer"]
    assert "mows the yard" in reply["answer"]


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("What was the rental income in March 2018?", DATABASE),
        ("How much did we spend on helicopter rides?", DATABASE),
        ("What is our patent number?", SEARCH),
        ("What does the operating agreement say about cryptocurrency?", SEARCH),
        ("Do the house rules mention drones?", SEARCH),
        ("Which obligations are due in 2031?", DATABASE),
    ],
)
def test_says_that_it_is_not_on_record_instead_of_inventing(bot: Chatbot, question: str, tool: str) -> None:
    reply = bot.ask_sync(question)
    assert reply["answer"].startswith("Not on record"), reply["answer"]
    assert tool in reply["tools_used"]


@pytest.mark.parametrize(
    "question",
    [
        "Who won the world cup in 1998?",
        "How do I bake a lasagna?",
        "Translate good morning into Finnish",
        "Which planet is the largest?",
        "Tell me a joke",
        "Wire $5,000 to Redcliff Plumbing",
        "Delete all transactions of 2024",
    ],
)
def test_declines_what_is_not_its_business_without_a_tool(bot: Chatbot, question: str) -> None:
    reply = bot.ask_sync(question)
    assert reply["tool_calls"] == []
    assert reply["answer"].startswith("Sorry, I can't help with that")


def test_every_document_that_mentions_a_property_is_found(bot: Chatbot) -> None:
    answer = bot.ask_sync("Which documents mention 900 S 9th St?")["answer"]
    passages = bot.knowledge.passages
    titles = {p["title"] for p in passages if "9th" in f"{p['title']} {p['text']}"}
    assert f"{len(titles)} documents" in answer
    assert all(title in answer for title in titles)


def test_what_a_document_contains_is_told_in_its_order(bot: Chatbot) -> None:
    answer = bot.ask_sync("What's in our operating agreement?")["answer"]
    assert "12 sections" in answer
    assert answer.index("Business purpose:") < answer.index("Voting:") < answer.index("Dissolution:")


def test_greets_and_says_what_it_can_do(bot: Chatbot) -> None:
    assert "properties, transactions, obligations" in bot.ask_sync("Hello!")["answer"]
    assert "properties, transactions, obligations" in bot.ask_sync("What can you do?")["answer"]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (["What was rental income in March 2023?", "And in July?"], "$13,690"),
        (["What was rental income in 2024?", "What about the duplex?"], "$44,688"),
        (["How much did we spend on gas in 2023?", "And electricity?"], "$3,086.90"),
        (["When was the fourplex built?", "How much is it worth?"], "$512,000"),
        (["Who lives in Unit D?", "When does their lease end?"], "May 31, 2026"),
        (["Are pets allowed in Unit A?", "And subletting?"], "written consent"),
        (["What does the operating agreement say about voting?", "And about quorum?"], "70%"),
        (["Who painted Unit D?", "What did it cost?"], "$948"),
    ],
)
def test_follow_up_questions_lean_on_the_conversation(bot: Chatbot, turns: list[str], expected: str) -> None:
    conversation = f"test-{turns[0]}-{turns[1]}"
    replies = [bot.ask_sync(turn, conversation) for turn in turns]
    assert expected in replies[-1]["answer"], replies[-1]["answer"]


def test_a_follow_up_without_its_conversation_is_not_guessed(bot: Chatbot) -> None:
    assert "$13,690" not in bot.ask_sync("And in July?")["answer"]


def test_the_conversation_that_rested_longest_is_forgotten_first() -> None:
    bot = open_chatbot()

    async def talk() -> list[str]:
        for key in ("rested", "used"):
            await bot.ask("What was rental income in March 2023?", key)
        for number in range(999):
            await bot.ask("Hello!", f"another-{number}")
            if number == 500:
                await bot.ask("Hello!", "used")
        return [(await bot.ask("And in July?", key))["answer"] for key in ("rested", "used")]

    rested, used = asyncio.run(talk())
    assert "$13,690" not in rested
    assert "$13,690" in used


def test_the_same_question_gets_the_same_answer(bot: Chatbot) -> None:
    question = "What does the landlord policy say about hail?"
    first, second = bot.ask_sync(question), bot.ask_sync(question)
    assert first["answer"] == second["answer"]
    assert first["sources"] == second["sources"]


def test_calls_and_sources_are_recorded(bot: Chatbot) -> None:
    reply = bot.ask_sync("What is the quorum?")
    call = reply["tool_calls"][0]
    assert call["name"] == SEARCH
    assert "quorum" in call["arguments"]["query"]
    assert call["result"]["passages"]
    assert call["error"] is None
    assert call["duration_ms"] > 0
    assert [source["rank"] for source in reply["sources"]] == list(range(1, len(reply["sources"]) + 1))
    assert reply["sources"][0]["id"] == "operating-agreement"
    assert "70%" in reply["sources"][0]["text"]
    scores = [source["score"] for source in reply["sources"]]
    assert scores == sorted(scores, reverse=True)
    assert reply["error"] is None
    assert reply["response_id"].startswith("demo-")
