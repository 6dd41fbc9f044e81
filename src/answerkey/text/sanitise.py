"""Untrusted text at the edges: bytes become text that every store takes, and text harmless for the place it is shown in.

Questions, replies, tool results and error messages come from outside. What they could use to command a terminal, break
a document or run in a spreadsheet is made visible rather than dropped wherever a reader could otherwise be misled.
Charsets are those that web servers really use. Python knows many more codecs, some of them quadratic or able to make
text that cannot be written again (utf-7, punycode, idna, unicode_escape); a reply must not choose one of those.
"""

import codecs
import re
import unicodedata
from typing import Any

# Codecs by the name that Python gives them, whatever alias was used.
_ALLOWED = re.compile(
    r"utf-8|utf-(?:16|32)(?:-[bl]e)?|ascii|iso8859-\d+|cp(?:125\d|437|85\d|86\d|874|932|949|950)"
    r"|shift_jis\w*|euc_\w+|gb2312|gbk|gb18030|big5\w*|koi8-\w|iso2022_\w+|johab|tis-620|mac-\w+"
)
_LONE_SURROGATE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_REPLACEMENT = "\ufffd"


def decode_text(body: bytes, charset: str | None = None) -> tuple[str, str | None]:
    """The text of a body and, if it is not text in its encoding, what is wrong with it.

    A charset that is not allowed is not used: such bodies are nearly always UTF-8 under a wrong name, and read as that.
    """
    codec = _codec(charset) if charset else "utf-8"
    try:
        return body.decode(codec or "utf-8").removeprefix("\ufeff"), None
    except UnicodeDecodeError:
        text = body.decode("utf-8" if codec is None else codec, "replace")
    wrong = "the reply is not text in its encoding"
    if codec is None:
        wrong = f"the reply is in the charset {charset!r}, which is not read, and it is not UTF-8"
    return clean_text(text), wrong


def clean_text(text: str) -> str:
    """`text` as files and databases take it: no lone surrogate, and no NUL, which PostgreSQL refuses."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub(_REPLACEMENT, text)
        # Two halves that stand together are one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    return text


def _codec(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    return name if _ALLOWED.fullmatch(name) else None


# Characters that reorder or hide what stands around them: a reader would see another text than the one that is there.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))


def _visible_controls() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20)}
    table[0x7F] = "␡"
    table.update({code: f"\\x{code:02x}" for code in range(0x80, 0xA0)})
    table.update({code: f"\\u{code:04x}" for code in _BIDI})
    # Unicode's own line and paragraph separators; U+FFFE and U+FFFF are no characters.
    table.update({0x2028: "\n", 0x2029: "\n", 0xFFFE: "�", 0xFFFF: "�"})
    del table[ord("\n")], table[ord("\t")]
    return table


_VISIBLE = _visible_controls()
_SURROGATES = re.compile("[\ud800-\udfff]")
# Patterns that few commands need are compiled when they are first used.
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_SPACE = re.compile(r"\s+")
# Backslash takes the meaning from these; an underscore inside a word has none (query_database stays readable).
_MARKDOWN = r"[\\`*\[\]{}|~#$!]|(?<![^\W_])_|_(?![^\W_])|^[-+](?=\s)|^(?:\d+)(?=[.)]\s)"
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FORMULA = r"^[\s\x00]*[=+\-@＝＋－＠|%]|^[\t\r\n]"
_PLAIN_NUMBER = r"^[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?$"


def for_terminal(text: str) -> str:
    """Text that cannot command a terminal: escapes, controls and direction overrides become visible signs."""
    return _SURROGATES.sub("�", text.replace("\r\n", "\n").translate(_VISIBLE))


def for_xml(text: str) -> str:
    """Text with only the characters that XML 1.0 allows; escaping `<` and `&` is left to the XML writer."""
    return re.sub(_NOT_XML, "", text)


def one_line(text: str, width: int) -> str:
    """Harmless text on one line of at most `width` terminal cells, cut with an ellipsis."""
    # A long text is cut before any work is done on it: no more than this can survive.
    head = text[: width * 4 + 64]
    flat = _SPACE.sub(" ", for_terminal(head)).strip()
    fits = _cut(flat, width)
    if len(fits) == len(flat) and not text[len(head) :].strip():
        return flat
    return _cut(flat, width - 1).rstrip() + "…"


def _cut(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        if unicodedata.combining(character):
            continue
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > width:
            return text[:index]
    return text


def for_markdown(text: str) -> str:
    """Text for one Markdown line or table cell: no HTML, link, mention, emphasis or column comes out of it."""
    flat = _SPACE.sub(" ", for_terminal(text)).strip()
    safe = re.sub(_MARKDOWN, lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", flat)
    safe = safe.translate(_ENTITIES)
    # Bare addresses would become links, and @name would call somebody.
    safe = re.sub(r"://", ":&#47;&#47;", safe)
    safe = re.sub(r"\bwww\.", "www&#46;", safe, flags=re.IGNORECASE)
    return re.sub(r"(?<!\w)@(?=\w)", "@\u200b", safe)


def for_csv(cell: str) -> str:
    """Text for a spreadsheet's cell: what a spreadsheet would run as a formula gets an apostrophe before it.

    That is text which begins with =, +, - or @ (or a tab or line break) and is not simply a number.
    """
    safe = cell if cell.isascii() else _SURROGATES.sub("�", cell)
    safe = safe.replace("\x00", "")
    if re.match(_FORMULA, safe) and not re.match(_PLAIN_NUMBER, safe.strip()):
        return "'" + safe
    return safe


def without_surrogates(value: Any) -> Any:
    """A JSON-like value whose texts can all be written as UTF-8: lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return _SURROGATES.sub("�", value)
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value
