"""`once`: an attribute worked out when first read."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["once"]

_Owner = TypeVar("_Owner", bound=Any)
_Result = TypeVar("_Result")


class once(Generic[_Owner, _Result]):  # noqa: N801
    """An attribute worked out when first read, then kept in the object.

    `functools.cached_property` takes a lock before Python 3.12, which costs more than most of the work here.
    """

    def __init__(self, work: Callable[[_Owner], _Result]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __get__(self, instance: _Owner, owner: type) -> _Result:
        result = instance.__dict__[self._name] = self._work(instance)
        return result
