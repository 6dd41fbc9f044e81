"""Replies per CPU second of each match mode, and whether time stays linear in the length: `python benchmarks/matching_speed.py`.

Replies are made of English business words with amounts and dates, as logs have them. Each has four or five keywords, one of them
a number and one of two words, of which about two thirds are there. `shared`: 50 keyword sets for all; `own`: each reply its own.
"""

import random
import sys
import time

from answerkey.match.keywords import MatchMode, find_keywords

MODES: list[MatchMode] = ["literal", "standard", "smart"]
_WORDS = """
account address agreement amount annual asset audit August balance bank basis board budget building business
buyer capital cash charge city closing company contract cost county credit customer damage date deadline debt
deduction delivery deposit depreciation document dollar due employee equipment equity escrow estate estimate
expense filing fund gain guarantee heating history improvement income increase insurance interest inventory
invoice issue January journal judge kitchen labor land landlord lawyer lease ledger lender liability license
limit loan location loss maintenance manager market member minimum Montrose month mortgage notice number
occupancy office operating option order owner parking partner payment penalty percent permit policy premium
president price principal profit property purchase quarter rate receipt record refund rental repair report
reserve return revenue review roof salary schedule security seller service share statement storage street
supplier tax tenant term title total transaction transfer unit utility vacancy value vendor wage warranty
water window year yield zoning reported received located included remaining approved recorded estimated signed
extended renewed increased changed purchased paid owned
""".split()  # noqa: SIM905


def make_replies(count: int, length: int, words: list[str], chance: random.Random) -> list[str]:
    replies = []
    for _ in range(count):
        parts: list[str] = []
        size = 0
        while size < length:
            pick = chance.random()
            if pick < 0.04:
                part = f"${chance.randint(1, 999)},{chance.randint(100, 999)}.00"
            elif pick < 0.06:
                part = str(chance.randint(1990, 2026))
            elif pick < 0.4:
                part = chance.choice(["the", "of", "and", "for", "is", "in", "your"])
            else:
                part = chance.choice(words) + chance.choice(["", "", "", "", ",", "."])
            parts.append(part)
            size += len(part) + 1
        replies.append(" ".join(parts)[:length])
    return replies


def make_keywords(reply: str, words: list[str], chance: random.Random) -> tuple[str, ...]:
    """Keywords of which about two thirds are in the reply."""
    said = [word.strip(",.") for word in reply.split()]
    amounts = [word[1:-3].replace(",", "") for word in said if word.startswith("$") and word.endswith(".00")]
    plain = [word for word in said if word.isalpha() and len(word) > 3]
    chosen = [chance.choice(plain if chance.random() < 0.67 else words) for _ in range(chance.randint(2, 3))]
    at = chance.randrange(len(said) - 2)
    pair = (
        " ".join(said[at : at + 2])
        if chance.random() < 0.67
        else f"{chance.choice(words)} {chance.choice(words)}"
    )
    return (*chosen, chance.choice(amounts) if amounts else str(chance.randint(1000, 999999)), pair)


def rate(mode: MatchMode, replies: list[str], keywords: list[tuple[str, ...]]) -> float:
    question = "What is the total basis of our property?"
    start = time.process_time()
    for index, reply in enumerate(replies):
        find_keywords(keywords[index % len(keywords)], reply, mode, question=question)
    return len(replies) / (time.process_time() - start)


def main() -> None:
    chance = random.Random(7)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(
        f"{'mode':<10}{'length':>7}{'shared keywords':>18}{'own keywords':>15}{'found':>8}   replies per CPU second"
    )
    for length in (300, 500):
        replies = make_replies(count, length, _WORDS, chance)
        own = [make_keywords(reply, _WORDS, chance) for reply in replies]
        shared = own[:50]
        alike = [replies[index % 50] + reply[:1] for index, reply in enumerate(replies)]
        for mode in MODES:
            rate(mode, alike[:200], shared)
            matches = [
                m.found for r, k in zip(replies[:300], own, strict=False) for m in find_keywords(k, r, mode)
            ]
            figures = f"{rate(mode, alike, shared):>18,.0f}{rate(mode, replies, own):>15,.0f}"
            print(f"{mode:<10}{length:>7}{figures}{sum(matches) / len(matches):>8.0%}")
    print("seconds for one reply of 1, 2, 4 and 8 MB (linear: each about twice the one before)")
    big = make_replies(1, 8_000_000, _WORDS, chance)[0]
    keywords = (*own[0], "never there", "123,456.70", "August 15, 2024", "Misspeltt Naame")
    for mode in MODES:
        seconds = []
        for megabytes in (1, 2, 4, 8):
            start = time.process_time()
            find_keywords(keywords, big[: megabytes * 1_000_000], mode)
            seconds.append(time.process_time() - start)
        print(f"{mode:<10}" + "".join(f"{value:>9.3f}" for value in seconds))


if __name__ == "__main__":
    main()
