"""Locking: what one thread does with a conversation is done before another begins.

A worker may still write when the task that waited for it was cancelled, and a program may rename what is being sent.
"""

from collections.abc import Callable, Collection
from functools import wraps
from inspect import isfunction
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Lockable(Protocol):
    """An object that one thread uses at a time."""

    @property
    def lock(self) -> RLock: ...


_Kind = TypeVar("_Kind", bound=type[Lockable])


def one_at_a_time(*, except_for: Collection[str], properties: Collection[str] = ()) -> Callable[[_Kind], _Kind]:
    """A class with each public method holding the lock of its object, but those that change nothing in memory.

    Most properties do only that; those that are named here do more.
    """

    def lock_all(kind: _Kind) -> _Kind:
        for name, member in list(vars(kind).items()):
            if isfunction(member) and not name.startswith("_") and name not in except_for:
                setattr(kind, name, _locked(member))
            elif isinstance(member, property) and member.fget is not None and name in properties:
                setattr(kind, name, property(_locked(member.fget)))
        return kind

    return lock_all


def _locked(
    method: Callable[Concatenate[Lockable, _Parameters], _Result],
) -> Callable[Concatenate[Lockable, _Parameters], _Result]:
    @wraps(method)
    def locked(self: Lockable, /, *given: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        with self.lock:
            return method(self, *given, **named)

    return locked
