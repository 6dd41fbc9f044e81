"""Ids in addresses: chatbots and golden sets give any they like, with slashes and line breaks in them."""

from starlette.convertors import Convertor, register_url_convertor

__all__ = ["know_any_id"]


class _AnyId(Convertor[str]):
    """The rest of an address, as `{name:id}`; Starlette's own `path` ends at a line break."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """As it is, without what no database takes."""
        return value.replace("\x00", "")

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


def know_any_id() -> None:
    """Let routes be written with `{name:id}`."""
    register_url_convertor("id", _AnyId())
