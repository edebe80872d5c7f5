"""References: what an event's body says of the artifacts attached to it, without their contents."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lamella.core.artifacts.model import Kind, Policy
from lamella.core.log.events import Body

Raw = Mapping[str, object]
Change = Callable[["Ref"], Raw | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One reference: the fields that an archive needs, and all of them as they stand in the body."""

    id: str
    kind: Kind
    hash: str
    title: str
    path: str | None
    url: str | None
    tool: str | None
    via: str | None
    lines: tuple[int, int] | None
    policy: Policy | None
    pictures: tuple[str, ...]
    inlined: bool
    raw: Raw


def list_refs(body: Body) -> Iterator[Ref]:
    """Every reference of a message: tool results, attachments, and the notes its instructions draw in."""
    for name in ("results", "attached"):
        for raw in _list(body.get(name)):
            yield read_ref(raw)
    for raw in _list(_system(body).get("inlined")):
        yield read_ref(raw, inlined=True)


def change_refs(body: Body, change: Change) -> dict[str, object]:
    """The body with each reference as ``change`` gives it back; one that it gives none for is left out."""
    changed = dict(body)
    for name in ("results", "attached"):
        if name in changed:
            changed[name] = [new for raw in _list(changed[name]) if (new := change(read_ref(raw))) is not None]
    system = dict(_system(body))
    if "inlined" in system:
        inlined = (change(read_ref(raw, inlined=True)) for raw in _list(system["inlined"]))
        system["inlined"] = [new for new in inlined if new is not None]
        changed["system"] = {name: value for name, value in system.items() if value != []}
    return {name: value for name, value in changed.items() if value != [] or name == "tools"}


def read_ref(raw: object, *, inlined: bool = False) -> Ref:
    """One reference; a ``ValueError`` says what is wrong with it."""
    fields = _dict(raw)
    source = _dict(fields.get("source"))
    lines = _list(source.get("lines"))
    policy = fields.get("policy")
    return Ref(
        id=_text(fields, "id"),
        kind=Kind(_text(fields, "kind")),
        hash=_text(fields, "hash"),
        title=_text(fields, "title"),
        path=_optional(source, "path"),
        url=_optional(source, "url"),
        tool=_optional(source, "tool"),
        via=_optional(source, "via"),
        lines=(_int(lines[0]), _int(lines[1])) if len(lines) == 2 else None,
        policy=None if policy is None else Policy(_text(fields, "policy")),
        pictures=tuple(_first(image) for image in _list(fields.get("images"))),
        inlined=inlined,
        raw=fields,
    )


def _system(body: Body) -> Raw:
    return _dict(body["system"]) if "system" in body else {}


def _dict(value: object) -> Raw:
    if not isinstance(value, dict):
        raise ValueError(f"an object was expected, not {type(value).__name__}")
    return value


def _list(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"a list was expected, not {type(value).__name__}")
    return value


def _text(fields: Raw, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ValueError(f"an attachment's {name} is not a text")
    return value


def _optional(fields: Raw, name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("a line number is not a number")
    return value


def _first(image: object) -> str:
    values = _list(image)
    if not values or not isinstance(values[0], str):
        raise ValueError("a picture has no hash")
    return values[0]
