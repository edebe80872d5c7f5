"""Values: how a struct is changed, and how it is shown.

Changing one is msgspec's own function, in C, since a turn does it some thirty times. Type checkers take a struct for a
dataclass, and by ``dataclasses.replace`` they check what is replaced.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace


def describe(value: Struct, *, without: tuple[str, ...]) -> str:
    """A struct as people read it, without fields that may hold megabytes."""
    shown = (name for name in value.__struct_fields__ if name not in without)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


__all__ = ["describe", "replace"]
