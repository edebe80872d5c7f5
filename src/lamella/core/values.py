"""Helpers for frozen structs: replace fields, print a struct, cache a property.

``replace`` is the C function of msgspec at runtime, because a turn calls it some thirty times. Type checkers treat a
struct as a dataclass, so they see ``dataclasses.replace``, which lets them check the replaced fields.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from msgspec import Struct

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace


def repr_without(value: Struct, *, without: tuple[str, ...]) -> str:
    """Return the repr of a struct, leaving out the fields ``without``, which may have megabytes."""
    shown = (name for name in value.__struct_fields__ if name not in without)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


Owner = TypeVar("Owner")
ValueT = TypeVar("ValueT")


class CachedProperty(Generic[Owner, ValueT]):
    """A property that is computed on first access and then cached on the instance.

    It takes no lock, unlike ``functools.cached_property`` in Python 3.11. That lock is shared by all instances of a
    class, so a property that reads a store would block every other conversation. Two threads may both compute the
    value; they compute the same one.
    """

    def __init__(self, compute: Callable[[Owner], ValueT]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "CachedProperty[Owner, ValueT]": ...
    @overload
    def __get__(self, instance: Owner, owner: type) -> ValueT: ...
    def __get__(self, instance: Owner | None, owner: type) -> "CachedProperty[Owner, ValueT] | ValueT":
        if instance is None:
            return self
        # This descriptor has no __set__, so later reads take the value from the instance and skip this method.
        found = vars(instance)[self._name] = self._compute(instance)
        return found


__all__ = ["CachedProperty", "replace", "repr_without"]
