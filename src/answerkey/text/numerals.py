"""Digits of other scripts, and numbers and hours in words of German, Dutch, French, Spanish, Italian and Portuguese, looked for
where one is expected.

Words that mean also something else ("once", "due", "onze") are numbers behind a verb such as "have" in the same language.
Articles ("ein", "une") are none at all.
"""

import re
import unicodedata
from collections.abc import Iterator

import msgspec

from answerkey.text.patterns import lazy

# Full-width, Arabic-Indic, Persian, Devanagari, Bengali and Thai digits, with the Arabic decimal and thousands marks.
_DIGIT_BLOCKS = "\uff10-\uff19\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59"
_OTHER_DIGITS = lazy(f"[{_DIGIT_BLOCKS}](?:[\u066b\u066c](?=[{_DIGIT_BLOCKS}])|[{_DIGIT_BLOCKS}])*")
_ARABIC_MARKS = str.maketrans("\u066b\u066c", ".,")


def western_digits(text: str) -> str:
    """A text with 0 to 9 for the digits of other scripts, each at its place."""
    return text if text.isascii() else _OTHER_DIGITS.sub(_western, text)


def _western(number: re.Match[str]) -> str:
    marked = number[0].translate(_ARABIC_MARKS)
    return "".join(mark if mark in ".," else str(unicodedata.digit(mark)) for mark in marked)


class _Language(msgspec.Struct, frozen=True):
    # From 0 on; "-" for an article.
    units: str
    # From 20 on.
    tens: str
    # A number of tens and units, and the first of its tens.
    joined: str
    first_joined: int
    # Words of this language that are also other words.
    ambiguous: str
    # What says that a number follows.
    having: str
    # The patterns of what precedes and follows an hour; its halves of the day.
    hour: str
    morning: str
    later: str


_LANGUAGES = (
    _Language(
        "null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
        " achtzehn neunzehn",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "{unit}und{tens}",
        20,
        "null elf",
        "haben|hat|habe|sind|gibt|es|insgesamt|genau|etwa|rund|derzeit|nur",
        "(?:um|bis|ab|gegen|von|vor|nach) {}(?: uhr)?|{} uhr",
        "morgens|früh|vormittags|am (?:morgen|vormittag)",
        "abends|nachmittags|nachts|mittags|am (?:abend|nachmittag)",
    ),
    _Language(
        "nul - twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien"
        " achttien negentien",
        "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
        "{unit}en{tens}",
        20,
        "nul elf negen",
        "hebben|heeft|heb|zijn|er|ongeveer|precies",
        "(?:om|tot|vanaf|rond|van) {}(?: uur)?|{} uur",
        "['’]s (?:morgens|ochtends)",
        "['’]s (?:avonds|middags|nachts)",
    ),
    _Language(
        "zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit"
        " dix-neuf",
        "vingt trente quarante cinquante soixante - quatre-vingts -",
        "{tens}-{unit}",
        20,
        "six sept neuf dix onze",
        "avons|ont|avez|ai|y a|y en a|sont|est|de",
        "(?:à|vers|dès|jusqu['’]à|de|avant|après) {} heures|{} heures",
        "du matin",
        "du soir|de l['’]après-midi",
    ),
    _Language(
        "cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete"
        " dieciocho diecinueve",
        "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        "{tens} y {unit}",
        30,
        "dos once",
        "tenemos|tiene|tienen|hay|son|tengo|unos|unas",
        "(?:a|hasta|desde|sobre) las? {}",
        "de la mañana",
        "de la (?:tarde|noche)",
    ),
    _Language(
        "zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette"
        " diciotto diciannove",
        "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
        "{tens}{unit}",
        20,
        "zero due sei otto venti",
        "abbiamo|ha|hanno|sono|ho|circa",
        "(?:alle|dalle|verso le|fino alle) {}",
        "di mattina|del mattino",
        "di sera|del pomeriggio|di notte",
    ),
    _Language(
        "zero - dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito"
        " dezenove",
        "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
        "{tens} e {unit}",
        20,
        "zero dez onze doze",
        "temos|tem|têm|há|são|tenho|cerca de",
        "(?:às|até as|até às|das|desde as) {}(?: horas)?|{} horas",
        "da manhã",
        "da (?:tarde|noite)",
    ),
)
# Other spellings.
_MORE = {
    "dreissig": 30, "fuenf": 5, "zwoelf": 12, "fuenfzig": 50, "soixante-dix": 70, "quatre-vingt-dix": 90, "septante": 70,
    "nonante": 90, "vingt et un": 21, "trente et un": 31, "veintiuno": 21, "veintidós": 22, "veintitrés": 23, "veinticuatro": 24,
    "veinticinco": 25, "veintiséis": 26, "veintisiete": 27, "veintiocho": 28, "veintinueve": 29, "ventuno": 21, "ventotto": 28,
    "einundzwanzig": 21, "einunddreißig": 31, "eenentwintig": 21, "tweeëntwintig": 22, "drieëntwintig": 23, "duas": 2,
    "dezasseis": 16, "dezassete": 17, "dezanove": 19, "quatorze": 14,
}  # fmt: skip


def _numerals(language: _Language) -> dict[str, int]:
    """The words of a language and their values."""
    units = {name: value for value, name in enumerate(language.units.split()) if name != "-"}
    tens = {name: 10 * count for count, name in enumerate(language.tens.split(), 2) if name != "-"}
    joined = {
        language.joined.format(unit=unit, tens=ten): high + low
        for ten, high in tens.items()
        for unit, low in units.items()
        if low < 10 and low and high >= language.first_joined
    }
    return units | tens | joined


_WORDS = [_numerals(language) for language in _LANGUAGES]
_VALUES = {name: value for words in reversed(_WORDS) for name, value in words.items()} | _MORE
_AMBIGUOUS = {name for language in _LANGUAGES for name in language.ambiguous.split()}
# What follows makes it a time, a share or a sum, which are found otherwise.
_ALONE = r"(?![\w-]| (?:uhr|uur|heures?|horas?|prozent|procent|pour cent|por ciento|per cento|euros?|y media|et demie)\b)"


# Numbers in words of German, French, Spanish, Portuguese, Italian, Dutch, Swedish and Polish. Many are also other words ("due",
# "sept"): they count only before a unit.
_OTHER_NUMERALS = """
2 zwei deux dos dois duas due twee två dwa dwie
3 drei trois tres três tre drie trzy
4 vier quatre cuatro quatro quattro fyra cztery
5 fünf cinq cinco cinque vijf fem pięć
6 sechs six seis sei zes sex sześć
7 sieben sept siete sete sette zeven sju siedem
8 acht huit ocho oito otto åtta osiem
9 neun neuf nueve nove negen nio dziewięć
10 zehn dix diez dez dieci tien tio dziesięć
11 elf onze once undici elva
12 zwölf douze doce doze dodici twaalf tolv
14 vierzehn quatorze catorce quattordici veertien fjorton czternaście
15 fünfzehn quinze quince quindici vijftien femton piętnaście
20 zwanzig vingt veinte vinte venti twintig tjugo dwadzieścia
24 vierundzwanzig vingt-quatre veinticuatro ventiquattro vierentwintig tjugofyra
30 dreißig dreissig trente treinta trinta trenta dertig trettio trzydzieści
40 vierzig quarante cuarenta quarenta quaranta veertig fyrtio
50 fünfzig cinquante cincuenta cinquenta cinquanta vijftig femtio
60 sechzig soixante sesenta sessenta sessanta zestig sextio
90 neunzig quatre-vingt-dix noventa novanta negentig nittio
100 hundert cent cien cem cento honderd hundra sto
"""
OTHER_NUMERALS = {
    name: int(value)
    for value, *names in map(str.split, _OTHER_NUMERALS.strip().splitlines())
    for name in names
}


def _any_of(names: set[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_NUMERAL = lazy(
    rf"(?<![\w-])(?<!\bum )(?!(?<=\bin )acht\b)(?:(?P<clear>{_any_of(set(_VALUES) - _AMBIGUOUS)})|"
    + "|".join(
        rf"(?:{language.having}) (?P<numeral{at}>{_any_of(set(language.ambiguous.split()))})"
        for at, language in enumerate(_LANGUAGES)
    )
    + ")"
    + _ALONE,
    re.IGNORECASE,
)
_ONE_O_CLOCK = ("eins|ein", "een", "une", "una", "una", "uma")
_HOURS = [
    _any_of({name for name, value in words.items() if 1 < value <= 12}) + f"|{one}"
    for words, one in zip(_WORDS, _ONE_O_CLOCK, strict=True)
]
_HOUR = [
    lazy(
        rf"(?<!\w)(?:{language.hour.format(f'(?P<h>{hours})', f'(?P<h2>{hours})')})(?!\w| (?:y|et|e) )"
        rf"(?: (?:(?P<morning>{language.morning})|(?P<later>{language.later}))\b)?"
        # "Von sechs Filialen" has no hour.
        r"(?! (?!bis\b|[a-z]+tags\b)[^\W\d_]+(?:en|er|s)\b)",
        re.IGNORECASE,
    )
    if language.hour.count("{}") == 2
    else lazy(
        rf"(?<!\w)(?:{language.hour.format(f'(?P<h>{hours})')})(?P<h2>)(?!\w| (?:y|et|e) )"
        rf"(?: (?:(?P<morning>{language.morning})|(?P<later>{language.later}))\b)?",
        re.IGNORECASE,
    )
    for language, hours in zip(_LANGUAGES, _HOURS, strict=True)
]


_FIRST_WORDS = {re.split("[ -]", name)[0] for name in _VALUES} | {
    word for one in _ONE_O_CLOCK for word in one.split("|")
}
_WORD = lazy(r"[^\W\d_]+")


def _has_numeral(text: str) -> bool:
    """A quick test: most texts have none of these words."""
    return not _FIRST_WORDS.isdisjoint(_WORD.findall(text.lower()))


def numeral_value(word: str) -> int | None:
    """The value of a word of another language than English."""
    return _VALUES.get(word.lower())


def find_numerals(text: str) -> Iterator[tuple[int, int, int]]:
    """Every whole number from 0 to 99 in words of another language than English, as (value, start, end)."""
    for found in _NUMERAL.finditer(text) if _has_numeral(text) else ():
        name = found.lastgroup or "clear"
        yield _VALUES[found[name].lower()], *found.span(name)


def find_hour_words(text: str) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Every hour of the day in words of another language than English, as (the hours it may be, start, end)."""
    for pattern, words in zip(_HOUR, _WORDS, strict=True) if _has_numeral(text) else ():
        for found in pattern.finditer(text):
            hour = words.get((found["h"] or found["h2"]).lower(), 1) % 12
            hours = (hour,) if found["morning"] else (hour + 12,) if found["later"] else (hour, hour + 12)
            yield hours, *found.span()
