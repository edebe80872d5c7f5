"""Values: how a struct is changed, and how it is shown.

Changing one is msgspec's own function, in C, since a turn does it some thirty times. Type checkers take a struct for a
dataclass, and by ``dataclasses.replace`` they check what is replaced.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from msgspec import Struct

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace


def describe(value: Struct, *, without: tuple[str, ...]) -> str:
    """A struct as people read it, without fields that may hold megabytes."""
    shown = (name for name in value.__struct_fields__ if name not in without)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


Owner = TypeVar("Owner")
Found = TypeVar("Found")


class FoundOnce(Generic[Owner, Found]):
    """A property that is found when it is asked for first, and kept.

    Unlike ``functools.cached_property`` in Python 3.11 it holds no lock: that one is shared by all objects of a class,
    and what reads a store would keep every other conversation waiting. Two threads may both find it, and find the same.
    """

    def __init__(self, find: Callable[[Owner], Found]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "FoundOnce[Owner, Found]": ...
    @overload
    def __get__(self, instance: Owner, owner: type) -> Found: ...
    def __get__(self, instance: Owner | None, owner: type) -> "FoundOnce[Owner, Found] | Found":
        if instance is None:
            return self
        found = vars(instance)[self._name] = self._find(instance)
        return found


__all__ = ["FoundOnce", "describe", "replace"]
