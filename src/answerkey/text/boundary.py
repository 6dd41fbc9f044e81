"""The boundary that outside text crosses once: bytes become text by an allowed charset, and text what every store takes.

Charsets are those that web servers really use. Python knows many more codecs, some of them quadratic or able to make
text that cannot be written again (utf-7, punycode, idna, unicode_escape); a reply must not choose one of those.
"""

import codecs
import re

__all__ = ["clean_text", "decode_text"]

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
