"""What `smart` accepts and rejects: one line a case, by the rule that it is about."""

import pytest

from answerkey.match.keywords import find_keywords

ADDRESS = "Your property is located at 900 S 9th St, Montrose, CO 81401"
BASIS = "The total basis for your property is $442,300, which includes the land and building components."

# (what it shows, question, keyword, reply, found)
CASES = [
    # Word boundaries
    ("boundary", "", "CO", "Your rental income was high.", False),
    ("boundary", "", "CO", ADDRESS, True),
    ("boundary", "", "MI", "We could not determine it.", False),
    ("boundary", "", "MI", "It is in Ann Arbor, MI.", True),
    ("boundary", "", "land", "The island is for sale.", False),
    ("boundary", "", "land", BASIS, True),
    ("boundary", "", "LLC", "Acme, L.L.C. owns it.", True),
    ("boundary", "", "90", "You owe $900.", False),
    ("boundary", "", "900", "You owe $9,000.", False),
    ("boundary", "", "rent", "Your parent company paid.", False),
    ("boundary", "", "IRA", "The pirate sailed.", False),
    ("boundary", "", "EIN", "Caffeine is a stimulant.", False),
    ("boundary", "", "EIN", "Your EIN is 83-4567890.", True),
    ("boundary", "", "83-4567890", "Your EIN is 83-4567890.", True),
    ("boundary", "", "83-4567890", "Your EIN is 83-4567891.", False),
    ("boundary", "", "in", "Montana", False),
    # Case, accents and Unicode forms
    ("unicode", "", "José Muñoz", "The tenant is Jose Munoz.", True),
    ("unicode", "", "Malaga", "She lives in Málaga.", True),
    ("unicode", "", "Straße", "Hauptstrasse and Strasse", True),
    ("unicode", "", "O'Brien", "Mr. O’Brien signed.", True),
    ("unicode", "", "café", "The cafe\u0301 opens at nine.", True),
    ("unicode", "", "MONTROSE", "montrose", True),
    ("unicode", "", "ﬁle", "The file is there.", True),
    # Thousands separators and currency
    ("number", "", "442300", BASIS, True),
    ("number", "", "442300", "It is 442 300 in total.", True),
    ("number", "", "442300", "It is 442.300,00 €.", True),
    ("number", "", "$442,300.00", "The basis is 442300 dollars.", True),
    ("number", "", "442300", "It is $442.3K.", True),
    ("number", "", "442300", "It is about $442,310.", False),
    ("number", "", "1250000", "They paid 1.25 million.", True),
    ("number", "", "1.25 million", "They paid $1,250,000.", True),
    ("number", "", "$50m", "It sold for $50 million.", True),
    ("number", "", "£186k", "The salary was £186,000.", True),
    ("number", "", "16144", "Rental income was $16,144.00 in August.", True),
    ("number", "", "16144", "Rental income was $16,114.00 in August.", False),
    ("number", "", "-500", "The balance is -$500.", True),
    ("number", "", "0.5", "It is .50", True),
    ("number", "", "2024", "In 2023 and 2025.", False),
    # Number words and ordinals
    ("words", "", "900", "Nine hundred South Ninth Street", True),
    ("words", "", "nine hundred", "It is 900.", True),
    ("words", "", "9th", "on Ninth Street", True),
    ("words", "", "ninth", "on 9th Street", True),
    ("words", "", "21", "There are twenty-one units.", True),
    ("words", "", "twenty-one", "There are 21 units.", True),
    ("words", "", "3", "There are three bedrooms.", True),
    ("words", "", "three", "3 bedrooms", True),
    ("words", "", "1984", "It was nineteen eighty-four.", True),
    ("words", "", "two thousand and five", "It happened in 2005.", True),
    ("words", "", "12th century", "It was in the twelfth century.", True),
    ("words", "", "Elizabeth II", "Queen Elizabeth the Second", True),
    ("words", "", "Henry VIII", "King Henry VII", False),
    ("words", "", "seven", "There are eight.", False),
    # Dates in any order
    ("date", "", "August 15, 2024", "It was filed on 2024-08-15.", True),
    ("date", "", "2024-08-15", "It was filed on August 15th, 2024.", True),
    ("date", "", "15 August 2024", "It was filed on 8/15/2024.", True),
    ("date", "", "August 15, 2024", "It was filed on 15.08.2024.", True),
    ("date", "", "August 15, 2024", "It was filed on August 16, 2024.", False),
    ("date", "", "August 15, 2024", "It was filed on 2024-08-16.", False),
    ("date", "", "August", "It was filed on 2024-08-15.", True),
    ("date", "", "August", "It was filed in Aug. 2024.", True),
    ("date", "", "August", "It was filed on 2024-07-15.", False),
    ("date", "", "August 2024", "on 08/15/2024", True),
    ("date", "", "March 3", "on the 3rd of March", True),
    # Units and percent
    ("unit", "", "12%", "The rate is 12 percent.", True),
    ("unit", "", "12 percent", "The rate is 12%.", True),
    ("unit", "", "90%", "It wastes 0.9 of its energy.", True),
    ("unit", "", "12%", "The rate is 13%.", False),
    ("unit", "", "5 km", "It is 5 kilometers away.", True),
    ("unit", "", "5.97 m", "He cleared 5.97 metres.", True),
    ("unit", "", "800m", "the 800 meter race", True),
    ("unit", "", "30 days", "Notice of thirty days is needed.", True),
    ("unit", "", "30 days", "Notice of sixty days is needed.", False),
    ("unit", "", "1,200 sq ft", "The unit has 1200 sq ft.", True),
    # Inflection
    ("inflection", "", "depreciation", "It was depreciated over 27.5 years.", True),
    ("inflection", "", "tenant", "There are two tenants.", True),
    ("inflection", "", "buildings", BASIS, True),
    ("inflection", "", "deductible", "You can deduct it.", True),
    ("inflection", "", "depreciation", BASIS, False),
    ("inflection", "", "rental income", "Your income from rentals was high.", True),
    # Names, parts and initials
    ("name", "Who signed the lease?", "Robert F. Kennedy", "Robert Kennedy signed it.", True),
    ("name", "Who painted it?", "Joseph Turner", "It was J. M. W. Turner.", True),
    ("name", "Who painted it?", "Joseph Mallord William Turner", "Turner", True),
    ("name", "Who is the manager?", "Ms. Jane Smith", "Jane Smith", True),
    ("name", "Who is the manager?", "Jane Smith", "John Smithers", False),
    ("name", "Who is the manager?", "Jane Smith", "Maria Lopez is the manager.", False),
    ("name", "Who wrote it?", "Rowling, J.K.", "J. K. Rowling", True),
    ("name", "Who is the pope?", "Nicholas Breakspear, who was Adrian IV", "Nicholas Breakspear", True),
    ("name", "Which body controls whaling?", "International Whaling Commission", "The IWC does.", True),
    # Abbreviations
    ("abbreviation", "", "900 South Ninth Street", "It is at 900 S 9th St.", True),
    ("abbreviation", "", "900 S 9th St", "It is at 900 South Ninth Street.", True),
    ("abbreviation", "", "900 South Ninth Street", "It is at 901 S 9th St.", False),
    ("abbreviation", "", "Saint Louis", "It is in St. Louis.", True),
    ("abbreviation", "", "U.S.", "It is in the US.", True),
    ("abbreviation", "", "Main Avenue", "on Main Ave.", True),
    ("abbreviation", "", "Dept. of Revenue", "the Department of Revenue", True),
    ("abbreviation", "", "Mount Everest", "It is Mt Everest.", True),
    ("abbreviation", "", "Wells Fargo & Company", "Wells Fargo and Co.", True),
    # Written together or apart
    ("compound", "", "sea shells", "She sells seashells.", True),
    ("compound", "", "year-end", "at year end", True),
    ("compound", "", "bookkeeping", "Our book keeping is done.", True),
    # Small typos, never in numbers
    ("typo", "", "Shostakovich", "It was Shostakovitch.", True),
    ("typo", "", "depreciation", "The depreciaton was $500.", True),
    ("typo", "", "Montrose", "in Montrosse", True),
    ("typo", "", "81401", "zip 81410", False),
    ("typo", "", "lease", "Please call us.", False),
    ("typo", "", "deduction", "a reduction of rent", False),
    ("typo", "", "increase", "a decrease in rent", False),
    ("typo", "", "approved", "It was improved.", False),
    ("typo", "Who is often confused with Claude Monet?", "Manet", "Claude Monet is confused with Pissarro.", False),
    # Negation
    ("negation", "", "42", "The answer is not 42.", False),
    ("negation", "", "42", "It isn't 42 but 43.", False),
    ("negation", "", "Denver", "It is in Montrose, not in Denver.", False),
    ("negation", "", "Denver", "The office is in Boulder rather than Denver.", False),
    ("negation", "", "Denver", "Not only Denver but also Boulder.", True),
    ("negation", "", "Denver", "It is not Boulder. It is Denver.", True),
    ("negation", "", "42", "It is not 41. The answer is 42.", True),
    ("negation", "Which city is not in Colorado?", "Boston", "The one that is not is Boston.", True),
    ("negation", "", "not deductible", "It is not deductible.", True),
    ("negation", "", "August", "Payment is not due until August.", True),
    # Lists
    ("list", "Which two?", "Chile and Argentina", "It runs between Argentina and Chile.", True),
    ("list", "Which two?", "Chile and Argentina", "It runs through Chile.", False),
    ("list", "Which four?", "China, India, USA, Indonesia", "1. China 2. India 3. USA 4. Indonesia", True),
    ("list", "Which three?", "land, building and equipment", "equipment, land, buildings", True),
    # Nothing of it
    ("absent", "", "August", "I found some transaction data for you.", False),
    ("absent", "", "income", "I found some transaction data for you.", False),
    ("absent", "", "rental", "The central bank raised rates.", False),
    ("absent", "", "Montrose", "", False),
    ("absent", "What is the EIN?", "83-4567890", "I don't have access to that.", False),
    ("absent", "", "operating agreement", "The agreement is silent on this.", False),
    ("absent", "", "net operating income", "Your income was taxed.", False),
    # Odd keywords
    ("odd", "", "A", "You got an A.", True),
    ("odd", "", "A", "You got a B.", False),
    ("odd", "", "???", "What???", True),
    ("odd", "", "???", "What?", False),
    ("odd", "", "C++", "Written in C++.", True),
    ("odd", "", "yes", "Yes, it is.", True),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "question", "keyword", "reply", "expected"), CASES)
def test_case(rule: str, question: str, keyword: str, reply: str, expected: bool) -> None:
    (match,) = find_keywords([keyword], reply, "smart", question=question)
    assert match.found is expected, match
    assert match.why
    if match.start is not None:
        assert reply[match.start : match.end] == match.text


def test_there_are_enough_cases_of_both_kinds() -> None:
    assert len(CASES) >= 120
    assert sum(1 for case in CASES if not case[-1]) >= 40


@pytest.mark.parametrize(
    ("keyword", "reply", "found"),
    [
        ("state tax", "The federal tax was $500.", False),
        ("state tax", "Your state tax was $500.", True),
        ("new roof", "The old roof leaks.", False),
        ("New York City", "It is in New York.", True),
    ],
)
def test_what_qualifies_a_term_is_wanted(keyword: str, reply: str, found: bool) -> None:
    assert find_keywords([keyword], reply, "smart")[0].found is found
