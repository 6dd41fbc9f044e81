"""Questions, replies and keywords of which no two are alike, for benchmarks that a repeated text would flatter."""

import random

_TOOLS = ("query_database", "search_documents", "get_lease", "list_payments")
_FIRST = (
    "Ada",
    "Bruno",
    "Chiara",
    "Dmitri",
    "Elena",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Karin",
    "Luca",
)
_LAST = (
    "Abel",
    "Brandt",
    "Conti",
    "Dorn",
    "Egger",
    "Falk",
    "Grieco",
    "Haas",
    "Ivers",
    "Jung",
    "Keller",
    "Lorenz",
)
_STREETS = ("Oak", "Ninth", "Harbour", "Mill", "Station", "Castle", "Meadow", "Bridge", "Church", "Lake")
_SENTENCES = (
    "The lease of {name} runs until {day} {month} and was renewed in {year}.",
    "Rent of {amount} euros was received for {month}, after a reminder on day {day}.",
    "According to the file, {name} lives at {street} Street {number} since {year}.",
    "The deposit came to {amount} and is held by the bank on {street} Street.",
    "In {month} the meter showed {number} units, {day} more than the year before.",
    "A contractor repaired the roof for {amount}; the invoice is dated {day} {month} {year}.",
    "There is no open claim against {name}, and the balance is {amount} as of {month}.",
    "Two payments were booked on {day} {month}: {amount} and a fee of {day}.50.",
)
_MONTHS = ("January", "March", "April", "June", "July", "September", "October", "December")


def question(number: int) -> dict:
    """A golden case."""
    draw = random.Random(number)
    person = f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"
    street = f"{draw.choice(_STREETS)} Street {number}"
    return {
        "id": f"q{number}",
        "question": f"What does {person} pay for {street}, and since when? (case {number})",
        "category": f"category {number % 10}",
        "expected_tools": [_TOOLS[number % len(_TOOLS)]],
        "expected_keywords": [person, street, f"{1000 + 7 * number}", str(1950 + number % 70)],
    }


def reply(asked: str, characters: int = 450) -> dict:
    """The reply to a question of `question`: most keywords, nine times in ten the right tool, and prose of its own."""
    number = int(asked.rpartition("(case ")[2].rstrip(")"))
    case, draw = question(number), random.Random(-1 - number)
    said = [f"That is {word}." for word in case["expected_keywords"] if draw.random() < 0.8]
    while sum(map(len, said)) < characters:
        said.append(
            draw.choice(_SENTENCES).format(
                name=f"{draw.choice(_FIRST)} {draw.choice(_LAST)}",
                day=draw.randint(1, 28),
                month=draw.choice(_MONTHS),
                year=draw.randint(1970, 2025),
                amount=f"{draw.randint(100, 99999) / 10:.2f}",
                street=draw.choice(_STREETS),
                number=draw.randint(1, 9999),
            )
        )
    draw.shuffle(said)
    tools = case["expected_tools"] if draw.random() < 0.9 else [draw.choice(_TOOLS)]
    return {"answer": " ".join(said), "tools_used": tools}
