"""Finds wording that CONTRIBUTING.md rules out: `python tools/check_words.py`.

Reads comments, docstrings, strings and definitions in src, templates and documentation. Each finding fails, except
legitimate uses, which words_allowed.toml lists with a reason.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_name("words_allowed.toml")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md")
SOURCES = ("src/**/*.py", "src/**/*.html", "src/**/*.j2", "src/**/*.js", "src/**/*.css")

# Phrase → what to write instead.
PHRASES = {
    r"anew": "again, new",
    r"stands?(?!-| (alone|behind|out|by)\b)": "is",
    r"told": "reported, given",
    r"tells?(?! (apart|whether|the difference))": "says, reports",
    r"so (many|much|often|long)(?! (as|that|better)\b)": "N; a limit; how many",
    r"(go(es)?|gone|went|going) on (with|from|until|after|at|where|in)": "continue",
    r"go(es)? on[.;:,]": "continue",
    r"under way": "running, in flight, concurrent",
    r"whoever|nobody|somebody": "name the actor",
    r"of one's own": "own",
    r"(?<!there )(is|are) no (?!longer|more|different|doubt|such)[a-z]+": "is not a, are not",
    r"by lot": "at random",
    r"as it was|as they were": "unchanged",
    r"in the place of": "instead of",
    r"what (it|they) (is|are) of": "its",
    r"be done with": "close, finish",
    r"without (it|that|them) being asked": "unasked",
}
TEXT = re.compile(r"\b(?:" + "|".join(f"(?:{phrase})" for phrase in PHRASES) + r")(?!\w)", re.IGNORECASE)
# Bare participles and puns as the name of a function, class, parameter or field.
NAMES = frozenset(
    "asked begun brought carried found given gone kept let_go meant met named patience place places said shown spoken "
    "stood taken told wanted worth worths".split()
)
# Parts of names.
PARTS = frozenset("anew told tells whoever nobody patience house doors".split())
BRACES = re.compile(r"\{[^{}]*\}")
FENCE = re.compile(r"^(`{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)


class Finding(NamedTuple):
    """A phrase or name and where it is."""

    path: str
    line: int
    text: str
    around: str


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """(first line, text) of everything that a person reads in a file."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        blank = (
            FENCE.sub(lambda block: "\n" * block[0].count("\n"), content) if path.suffix == ".md" else content
        )
        yield 1, blank
        return
    comment: list[str] = []
    comment_line = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            if not comment:
                comment_line = token.start[0]
            comment.append(token.string.lstrip("# "))
        elif token.type not in {tokenize.NL, tokenize.INDENT, tokenize.DEDENT}:
            if comment:
                yield comment_line, "\n".join(comment)
                comment = []
            if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
                # The code inside an f-string is not prose.
                is_format = re.match(r"[rR]?[fF]", token.string)
                yield token.start[0], BRACES.sub("", token.string) if is_format else token.string


def names_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, name) of every function, class, parameter and field that a Python file defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.lineno, inner.target.id


def findings_in(path: Path) -> Iterator[Finding]:
    """Everything in a file that is not plain."""
    shown = path.relative_to(ROOT).as_posix()
    for first, text in texts_of(path):
        joined = re.sub(r"\s", " ", text)
        for match in TEXT.finditer(joined):
            # An alternative in a regular expression is data.
            if "|" in joined[max(0, match.start() - 1) : match.end() + 1]:
                continue
            line = first + text.count("\n", 0, match.start())
            around = joined[max(0, match.start() - 40) : match.end() + 40].strip()
            yield Finding(shown, line, match[0].lower(), around)
    if path.suffix == ".py":
        for line, name in names_of(path):
            parts = re.findall(r"[A-Z]?[a-z]+", name)
            if name.strip("_").lower() in NAMES or PARTS & {part.lower() for part in parts}:
                yield Finding(shown, line, name, f"name {name}")


def is_legitimate(finding: Finding, rules: list[dict[str, str]]) -> bool:
    """Whether a rule of words_allowed.toml covers a finding: `path` is a pattern, `text` a regular expression."""
    return any(
        Path(finding.path).match(rule["path"]) and re.search(rule["text"], finding.around, re.IGNORECASE)
        for rule in rules
    )


def main() -> int:
    rules = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["legitimate"]
    findings = [
        finding
        for pattern in (*PAGES, *SOURCES)
        for path in sorted(ROOT.glob(pattern))
        for finding in findings_in(path)
        if not is_legitimate(finding, rules)
    ]
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.text!r} in: {finding.around}")
    print(f"words: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
