"""Which language a text is in, as far as reading its claims depends on it: capitals of nouns, commas and points in numbers."""

import re
from functools import lru_cache

__all__ = ["FUNCTION_WORDS", "comma_decimals", "language_of"]

# Frequent words that say which language a text is in and that no name begins with.
_WORDS = {
    "de": """der die das den dem des ein eine einen einem einer eines und oder nicht ist sind war waren wird werden wurde
    wurden hat haben hatte mit von vom zum zur zu auf für im am bei beim nach aus über unter vor bis durch gegen ohne um
    ihr ihre ihren ihrem ihrer sie wir ich er es uns unser unsere unseren unserer mein meine auch noch nur schon sehr als
    wie wenn weil dass daher damit dann also sowie bzw kein keine keinen beträgt kostet insgesamt davon dazu diese dieser
    dieses diesen diesem jede jeder jedes alle beide laut seit ab zwei drei vier fünf sechs sieben acht neun zehn ja nein
    in hier dort bitte zusammen pro je was wann wer wo wie viel wieviel welche welcher gibt""",
    "fr": """le la les un une des du de et ou est sont était a ont avec sur dans par pour au aux ce cette ces cet votre vos
    notre nos il elle ils elles vous nous je que qui dont mais donc ne pas plus moins soit être été chaque tous toutes tout
    toute sans sous entre jusqu depuis selon ainsi aussi quels quelle quelles quel combien quand où oui non voici deux trois
    quatre cinq sept huit neuf dix leur leurs son sa ses en""",
    "es": """el la los las un una unos unas de del y o es son era fue fueron con por para en al su sus nuestro nuestra este
    esta estos estas ese esa que quien pero no se lo le más menos cada todos todas todo toda sin sobre entre hasta desde
    según también así cuál cuánto cuánta cuántos cuándo dónde sí aquí hay tiene tienen total dos tres cuatro cinco seis
    siete ocho nueve diez usted ustedes""",
    "it": """il lo la i gli le un uno una di del della dei delle e o è sono era con per su da dal nel nella che chi ma non
    si più meno ogni tutti tutte senza tra fino secondo anche così quale quanto quando dove sì ecco due tre quattro cinque
    sei sette otto nove dieci vostro nostra""",
    "pt": """o a os as um uma de do da dos das e ou é são foi foram com por para em no na nos nas ao seu sua seus este esta
    que quem mas não se mais menos cada todos todas sem sobre entre até desde segundo também assim qual quanto quando onde
    sim há tem dois duas três quatro cinco seis sete oito nove dez""",
    "nl": """de het een en of is zijn was waren met van voor op in aan bij naar uit over onder tot door tegen zonder om uw u
    wij we ik hij zij ze ons onze ook nog maar al zeer als dat die deze dit geen niet wordt worden heeft hebben elke alle
    per twee drie vier vijf zes zeven acht negen tien wat wanneer wie waar hoeveel""",
}  # fmt: skip
_SETS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
_ENGLISH_TEXT = """
the a an and or of to in on is are was were be been has have had with for from by at as that this these those it its your
you our we they their not no but so which who what when where how there each per all more less than only also into out up
"""
_ENGLISH = frozenset(_ENGLISH_TEXT.split())
# What may begin a sentence in one of these languages, small.
_ADDRESSES = "herr herrn frau familie firma señor señora sr sra monsieur madame mme signor signora senhor senhora meneer mevrouw"
FUNCTION_WORDS = frozenset(_ADDRESSES.split()).union(*_SETS.values()) - _ENGLISH
_WORD = re.compile(r"[^\W\d_]+")
# "Casa de la Luna" in an English text.
_NAME_PARTS = re.compile(
    r"(?<=\w )(?:de|del|la|las|los|le|du|des|van|von|der|den|di|da|do|dos|das)(?= (?:\w+ )?[A-ZÀ-Þ])"
    r"|(?<![.!?] )(?<!^)\b(?:La|Las|Los|Le|El|De|Du|Van|Von|Da)\b"
)
_LEAST = 2
_MOST_LOOKED_AT = 600


@lru_cache(maxsize=2048)
def _language(text: str) -> str:
    words = [word.lower() for word in _WORD.findall(_NAME_PARTS.sub(" ", text))]
    english = sum(word in _ENGLISH for word in words)
    counts = {name: sum(word in known for word in words) for name, known in _SETS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= _LEAST and counts[best] > english else "en"


def language_of(text: str) -> str:
    """ "de", "fr", "es", "it", "pt" or "nl" by a text's frequent words, else "en"."""
    return _language(text[:_MOST_LOOKED_AT])


# "12,50 €", "17,5 %", "EUR 88,50", "3,5 kg": one or two digits after a comma, beside what a number is of.
_BESIDE = (
    r"(?:€|EUR\b|Euros?\b|euros?\b|CHF\b|kr\b|zł|%|Prozent\b|(?:kg|km|cm|mm|ml|ha|kWh|MWh|GB|MB|TB|Mio|Mrd)\b|m[²³]"
    r"|(?:g|l|m|t|h)\b)"
)
_DECIMAL_COMMA = re.compile(
    rf"(?<![\d.,])\d{{1,6}},\d\d?(?=[ \u00a0\u202f]?{_BESIDE})|(?<=€)\d{{1,6}},\d\d?(?![\d,])"
    r"|(?<=[€R][ \u00a0])\d{1,6},\d\d?(?![\d,])"
)
_GROUP_POINT = re.compile(
    r"(?<![\d.,])\d{1,3}\.\d{3}(?=[ \u00a0\u202f]?(?:€|EUR\b|Euros?\b|euros?\b))(?!\.\d)"
)
# The same anywhere in a text of such a language.
_ANY_DECIMAL_COMMA = re.compile(
    r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})*,\d{1,2}(?![\d]|,\d)|(?<![\d.,])\d{4,9},\d{1,2}(?![\d]|,\d)"
)
_ANY_GROUP_POINT = re.compile(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d]|[.,]\d)")
_SIGN = re.compile(r"\d,\d\d?(?!\d)|\d\.\d{3}(?!\d)")


def comma_decimals(text: str) -> str:
    """A text with its continental numbers as English writes them, at the same places: "1.350 €" and "17,5" as 1,350 and 17.5."""
    if _SIGN.search(text) is None:
        return text
    text = _DECIMAL_COMMA.sub(_to_point, text)
    text = _GROUP_POINT.sub(_to_comma, text)
    if language_of(text) != "en":
        text = _ANY_DECIMAL_COMMA.sub(_to_point, text)
        text = _ANY_GROUP_POINT.sub(_to_comma, text)
    return text


def _to_point(found: re.Match[str]) -> str:
    return found[0].replace(",", ".")


def _to_comma(found: re.Match[str]) -> str:
    return found[0].replace(".", ",")
