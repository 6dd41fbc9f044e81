"""Json: the type of a value that came out of JSON, for what crosses a module without a struct of its own.

Fields that msgspec decodes itself cannot have it (a recursive alias): there `Any` stands for the same.
"""

from typing import TypeAlias

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
JsonObject: TypeAlias = dict[str, Json]
