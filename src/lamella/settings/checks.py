"""Checks: values become settings of their types, or an error names the setting, its value and what is wrong with it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields

from lamella.core.log.terms import IMAGE_NOTES_SWITCH
from lamella.errors import SettingError
from lamella.settings.masks import mask
from lamella.settings.model import MOST_TOKENS, NAMES, Settings
from lamella.settings.values import find_near, tell_values

_PAGE = "See docs/settings.md."
# Of tokens there are counts, too.
_SECRET = re.compile(r"key|token(?!s)|secret|password", re.IGNORECASE)
_WANTED: Mapping[object, str] = {
    bool: "a valid boolean",
    int: "a valid integer",
    float: "a valid number",
    str: "a valid string",
    list: "a valid list",
}
_TAKEN: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
}
_UNKNOWN = "unknown"
# A setting by its path, its value, and what is wrong with that; of one that nobody knows, the names that are known.
_Fault = tuple[tuple[str, ...], object, str]


def check_settings(values: Mapping[str, object], *, where: str = "") -> Settings:
    """The settings with these values and the rest as they ship; ``where`` is the file or variable that has them."""
    switch = values.get("image_notes")
    if isinstance(switch, bool):
        values = {**values, "image_notes": IMAGE_NOTES_SWITCH[switch].value}
    try:
        return convert(values, Settings)
    except (ValidationError, OverflowError, RecursionError) as error:
        fault = next(_find_faults(values, Settings, ()), ((), values, "input cannot be read"))
        raise explain_fault(fault, where=where) from error


def check_name(name: str, *, among: Sequence[str] = NAMES) -> None:
    """Refuses a name that no setting has, or none of these; the error names the one that is near to it."""
    if name not in among:
        raise _explain_unknown((name,), among, where="")


def explain_fault(fault: _Fault, *, where: str) -> SettingError:
    """The error for a setting by its path, its value, and what is wrong with it."""
    path, value, wrong = fault
    if wrong == _UNKNOWN and isinstance(value, Sequence):
        return _explain_unknown(path, value, where=where)
    name = ".".join(path) or "a setting"
    try:
        shown = mask(repr(value))
    except ValueError:
        shown = "a number of thousands of digits"
    takes = f"{tell_takes(path[0])} " if path else ""
    return SettingError(f"{where}The setting {name} is {shown}: {wrong}.", hint=takes + _PAGE)


def _explain_unknown(path: Sequence[str], known: Sequence[str], *, where: str) -> SettingError:
    *above, last = path
    name, table = ".".join(path), ".".join(above)
    kept = "Keys are read from the environment alone, and never from a file. " if _SECRET.search(last) else ""
    near = find_near(last, known)
    meant = f"Did you mean {'.'.join((*above, near))}? " if near else ""
    listed = f"Settings {f'of {table} ' if table else ''}are: {', '.join(known)}. {_PAGE}"
    return SettingError(f"{where}There is no setting {name}.", hint=kept + meant + listed)


def tell_takes(name: str) -> str:
    """What a setting takes, in words."""
    kind = find_type(name)
    return tell_values(name, _TAKEN.get(get_origin(kind) or kind, "a table"))


def find_type(name: str) -> Any:  # noqa: ANN401 - types have no common one
    """The type of a setting, without what bounds it and without none."""
    return _plain(next(field.type for field in fields(Settings) if field.name == name))


def tell_wanted(kind: object) -> str:
    """What a value of a type should be."""
    return f"input should be {_WANTED.get(get_origin(kind) or kind, 'a table')}"


def _find_faults(value: object, kind: Any, path: tuple[str, ...]) -> Iterator[_Fault]:  # noqa: ANN401 - any type
    plain = _plain(kind)
    if value is None and plain is not kind and get_origin(kind) is UnionType:
        return
    inner = _find_inner(value, plain)
    if inner is None:
        yield from ((path, value, wrong) for wrong in _find_wrong(value, kind))
        return
    for name, one, type_ in inner:
        if type_ is None:
            yield (*path, name), tuple(field.name for field in fields(plain)), _UNKNOWN
        else:
            yield from _find_faults(one, type_, (*path, name))


def _find_inner(value: object, kind: Any) -> list[tuple[str, object, Any]] | None:  # noqa: ANN401 - any type
    """What stands in a table or list, each with its name and type; a type of none is that of what nobody knows."""
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, Mapping):
        types = {field.name: field.type for field in fields(kind)}
        known = [(name, value[name], types[name]) for name in types if name in value]
        return [*known, *((str(name), one, None) for name, one in value.items() if name not in types)]
    if get_origin(kind) is dict and isinstance(value, Mapping):
        return [(str(name), one, get_args(kind)[1]) for name, one in value.items()]
    if get_origin(kind) is list and isinstance(value, list):
        return [(str(number), one, get_args(kind)[0]) for number, one in enumerate(value)]
    return None


def _find_wrong(value: object, kind: Any) -> Iterator[str]:  # noqa: ANN401 - any type
    try:
        convert(value, kind)
    except (ValidationError, OverflowError):
        too_large = isinstance(value, int) and not isinstance(value, bool) and _plain(kind) is int
        yield f"input should be less than or equal to {MOST_TOKENS}" if too_large else tell_wanted(_plain(kind))


def _plain(kind: Any) -> Any:  # noqa: ANN401 - any type
    if get_origin(kind) is Annotated:
        return get_args(kind)[0]
    if get_origin(kind) is UnionType:
        return next(one for one in get_args(kind) if one is not type(None))
    return kind
