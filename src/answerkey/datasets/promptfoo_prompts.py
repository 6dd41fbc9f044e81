"""promptfoo's prompts: which of a configuration's is the question, and how it reads with a test's variables."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.conversion import Losses, as_text
from answerkey.transcripts.json_values import as_dict, as_dicts, decode_json
from answerkey.transcripts.yaml_documents import decode_yaml

__all__ = ["Prompts", "fill_variables", "load_variables", "read_prompts"]

# {{ name }}, {{ name.field }} or {{ name | filter }}.
_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*(\|[^{}]*?)?\s*-?\}\}")
_CODE = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_PROGRAMS = (".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".go", ".sh")
_FILE = "file://"
# Variables may contain variables.
_MOST_PASSES = 3


class Prompts(msgspec.Struct, frozen=True):
    """The prompts of a configuration, as far as they are text."""

    templates: tuple[str, ...] = ()
    # What is not used, for the list of losses.
    unused: tuple[str, ...] = ()
    # Whether there are prompts, and none of them is a text here.
    is_missing: bool = False

    def template(self, variables: Mapping[str, Any]) -> str:
        """The template that is rendered: the first whose variables a test has; empty if there is none."""
        lacking = [len(_unfilled(fill_variables(one, variables))) for one in self.templates]
        return self.templates[lacking.index(min(lacking))] if lacking else ""

    def question(self, variables: Mapping[str, Any], losses: Losses) -> str:
        """The user's words in the rendered prompt; empty if no prompt is text, or if a variable of it is missing."""
        for lost in self.unused:
            losses.add(lost)
        template = self.template(variables)
        if not template:
            return ""
        if _CODE.search(template):
            losses.add("template code ({% … %}) in a prompt, which was left out")
        if any(match[2] for match in _VARIABLE.finditer(template)):
            losses.add("a filter ({{ name | filter }}) in a prompt")
        rendered = _user_words(fill_variables(_CODE.sub("", template), variables).strip(), losses)
        if missing := _unfilled(rendered):
            losses.add(
                f"a test whose prompt needs the variable {', '.join(missing)}, which is not in the file"
            )
            return ""
        return rendered


def read_prompts(document: Mapping[str, Any], folder: Path) -> Prompts:
    """The prompts of a configuration in this folder."""
    given = document.get("prompts", document.get("prompt"))
    listed = given if isinstance(given, list) else list(given) if isinstance(given, dict) else [given]
    templates: list[str] = []
    unused: list[str] = []
    for prompt in listed:
        text = _template(prompt, folder)
        if text is None:
            unused.append(f"the prompt {str(_reference(prompt))[:80]!r}, which is not a text here")
        elif text.strip():
            templates.append(text)
    if len(templates) > 1:
        unused.append(f"{len(templates) - 1} further prompts: the first that fits a test is the question")
    return Prompts(tuple(templates), tuple(unused), is_missing=bool(unused) and not templates)


def _reference(prompt: Any) -> Any:
    if not isinstance(prompt, dict):
        return prompt
    return next((prompt[name] for name in ("raw", "file", "id", "label") if prompt.get(name)), prompt)


def _template(prompt: Any, folder: Path) -> str | None:
    """The text of a prompt, also of a file; empty if there is none, None if it is made by a program or missing."""
    text = _reference(prompt)
    if not isinstance(text, str):
        return "" if text is None else None
    is_path = text.startswith(_FILE) or (
        "\n" not in text and "{" not in text and " " not in text.strip() and Path(text).suffix != ""
    )
    if not is_path:
        return text
    path = folder / text.removeprefix(_FILE)
    if path.suffix in _PROGRAMS or ":" in path.name:
        return None
    try:
        content = path.read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
    if path.suffix in (".yaml", ".yml"):
        try:
            return msgspec.json.encode(decode_yaml(content)).decode()
        except ValueError:
            return content
    # A file may hold several prompts.
    return content.split("\n---\n")[0]


def _user_words(rendered: str, losses: Losses) -> str:
    """The last user message of a prompt that is a chat, else the prompt."""
    if rendered[:1] not in ("[", "{"):
        return rendered
    try:
        value = decode_json(rendered)
    except ValueError:
        return rendered
    messages = as_dicts(as_dict(value).get("messages") if isinstance(value, dict) else value)
    asked = [message for message in messages if message.get("role") == "user"]
    if not asked:
        return rendered
    if any(message.get("role") in ("system", "developer") for message in messages):
        losses.add("the system message of a prompt, which belongs to the chatbot")
    if len(asked) > 1 or messages[-1] is not asked[-1]:
        losses.add("the earlier messages of a chat prompt")
    content = asked[-1].get("content")
    if isinstance(content, list):
        texts = [text for part in as_dicts(content) if isinstance(text := part.get("text"), str)]
        if len(texts) < len(content):
            losses.add("the pictures or files of a chat prompt")
        return "\n".join(texts)
    return as_text(content) or ""


def fill_variables(value: Any, variables: Mapping[str, Any]) -> Any:
    """A text or list with its {{variables}} filled in, also those within variables."""
    if isinstance(value, list):
        return [fill_variables(part, variables) for part in value]
    if not isinstance(value, str):
        return value
    for _ in range(_MOST_PASSES):
        filled = _VARIABLE.sub(lambda match: _value_of(match, variables), value)
        if filled == value:
            break
        value = filled
    return value


def _unfilled(text: str) -> list[str]:
    """The names of the variables that a text still has."""
    return list(dict.fromkeys(match[1] for match in _VARIABLE.finditer(text)))


def load_variables(variables: Mapping[str, Any], folder: Path, losses: Losses) -> dict[str, Any]:
    """The variables of a test, with the texts of the files that they name."""
    loaded = dict(variables)
    for name, value in variables.items():
        if not isinstance(value, str) or not value.startswith(_FILE):
            continue
        path = folder / value.removeprefix(_FILE)
        text = None
        if path.suffix not in _PROGRAMS:
            with suppress(OSError, ValueError):
                text = path.read_text("utf-8-sig")
        loaded[name] = value if text is None else text
        if text is None:
            losses.add(f"the text of {value!r}, a variable that is not a text file here")
    return loaded


def _value_of(match: re.Match[str], variables: Mapping[str, Any]) -> str:
    found: Any = variables
    for name in match[1].split("."):
        if not isinstance(found, Mapping) or name not in found:
            return match[0]
        found = found[name]
    return as_text(found) or ""
