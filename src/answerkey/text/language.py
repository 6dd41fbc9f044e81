"""Which language a text is in, offline: by its script, and in Latin script by its small words.

It recognises whole sentences of the languages below. A few words, a name or a number are unsure, and so is a mixture,
 unless one language clearly has more of the small words than every other.
"""

from collections import Counter

from answerkey.text.normalise import lazy

# Words that are frequent in one of the languages and rare in the others.
_SMALL_WORDS = {
    "da": "og ikke jeg det af til har med også være blev efter eller vil skal hvad mere fra kan denne",
    "de": "der die das und ist nicht ein eine mit für auf sie wir ich auch von zu den dem sind wird bei oder kein ihre",
    "en": "the and is are was were of to in that it for with you your this have has not be on we our what which there",
    "es": "el la los las y es que en una un por con para su del se más como está son pero no muy este esta",
    "fr": "le la les et est des une un que pour dans vous nous ne pas avec sur ce cette sont du au qui être votre",
    "it": "il lo gli e è di che un una per con non sono della del nel alla questo questa anche più suo come ha",
    "nl": "de het een en is van niet dat voor met zijn op te ik wij ook deze naar worden heeft bij uw onze maar",
    "pl": "i w na nie jest się do że to z jak dla są oraz być jego przez po ale czy może który tego od",
    "pt": "o os as e é que em uma um não para com por seu sua do da dos das mais como está são você também ao",
    "sv": "och att det är inte jag som en ett på för med av till har den vi också eller från kan ska detta efter",
    "tr": "ve bir bu için ile de da çok ne var olan olarak daha değil gibi sizin ancak veya mi sonra kadar en",
}
_WORDS = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
# Script → the language that it settles.
_SCRIPTS = (
    ("ja", lazy("[\u3040-\u30ff]")),
    ("ko", lazy("[\uac00-\ud7af]")),
    ("zh", lazy("[\u4e00-\u9fff]")),
    ("uk", lazy("[іїєґІЇЄҐ]")),
    ("ru", lazy("[ыэъёЫЭЪЁ]")),
    ("el", lazy("[\u0370-\u03ff]")),
    ("ar", lazy("[\u0600-\u06ff]")),
    ("he", lazy("[\u0590-\u05ff]")),
    ("hi", lazy("[\u0900-\u097f]")),
    ("th", lazy("[\u0e00-\u0e7f]")),
)
LANGUAGES = frozenset(_WORDS) | {language for language, _ in _SCRIPTS}

_LETTER = lazy(r"[^\W\d_]")
_WORD = lazy(r"[^\W\d_]+")
_LATIN = lazy("[A-Za-zÀ-ɏ]")
# The least number of small words, and the least ratio to the next language.
_MIN_SMALL_WORDS = 3
_MIN_RATIO = 1.5
_MAX_LENGTH = 20_000  # characters that are inspected


def detect_language(text: str) -> tuple[str | None, str]:
    """The language of a text, or None if it is unsure, and the reason in words."""
    text = text[:_MAX_LENGTH]
    letters = len(_LETTER.findall(text))
    if not letters:
        return None, "the text has no words"
    if 2 * len(_LATIN.findall(text)) < letters:
        return _by_script(text)
    return _by_small_words(text)


def _by_script(text: str) -> tuple[str | None, str]:
    for language, letters in _SCRIPTS:
        found = letters.search(text)
        if found:
            return language, f"written with {found[0]!r}"
    return None, "its script is used by several languages"


def _by_small_words(text: str) -> tuple[str | None, str]:
    counts = Counter(word.lower() for word in _WORD.findall(text))
    found = sorted(
        ((sum(counts[word] for word in words), language) for language, words in _WORDS.items()), reverse=True
    )
    (most, language), (next_most, _) = found[:2]
    if most < _MIN_SMALL_WORDS or most < _MIN_RATIO * next_most:
        return None, "too few small words of one language to be sure"
    return language, f"{most} small words of {language}"
