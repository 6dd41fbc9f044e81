"""For the Python reference: the comment above a field is its description."""

from itertools import takewhile
from typing import Any

import griffe

__all__ = ["FieldComments"]


class FieldComments(griffe.Extension):
    """Gives every field without a docstring the lines of comment right above it."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        if attr.docstring is not None or attr.lineno is None:
            return
        above = reversed(attr.lines_collection[attr.filepath][: attr.lineno - 1])
        comment = [*takewhile(lambda line: line.startswith("#"), (line.strip() for line in above))][::-1]
        if comment:
            text = " ".join(line.lstrip("# ") for line in comment)
            attr.docstring = griffe.Docstring(text, lineno=attr.lineno, parent=attr)
