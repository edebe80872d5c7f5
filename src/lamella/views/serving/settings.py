"""Settings as data: values without what is secret in them, and where each was found."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import to_builtins

Mask = Callable[[str], str]


class ConfigurationShape(Protocol):
    """What has to be known of settings to show them."""

    @property
    def settings(self) -> object: ...
    @property
    def origins(self) -> Mapping[str, str]: ...
    @property
    def files(self) -> Mapping[Any, object]: ...


def view_chat_settings(
    conversation: str, own: Mapping[str, object], found: ConfigurationShape, *, names: Sequence[str], mask: Mask
) -> dict[str, object]:
    """The settings that a conversation has of its own, and those of these names that are in force."""
    values = list_values(found, mask)
    in_force = {name: {"value": values.get(name), "from": _tell_origin(found.origins[name])} for name in names}
    return {"lamella": 1, "conversation": conversation, "settings": dict(own), "in_force": in_force}


def _tell_origin(origin: str) -> str:
    return "conversation" if str(origin) == "caller" else str(origin)


def view_configuration(found: ConfigurationShape, mask: Mask) -> dict[str, object]:
    """Every setting with where it was found, and the files that were read."""
    values = list_values(found, mask)
    settings = {name: {"value": value, "from": str(found.origins[name])} for name, value in values.items()}
    return {"settings": settings, "files": {str(origin): str(path) for origin, path in found.files.items()}}


def list_values(found: ConfigurationShape, mask: Mask) -> dict[str, object]:
    """The values as JSON has them, without passwords in addresses and without what tables do not say."""
    return {name: _shown(value, mask) for name, value in to_builtins(found.settings).items()}


def _shown(value: object, mask: Mask) -> object:
    if isinstance(value, dict):
        inner = {name: _shown(one, mask) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in (None, {})}
    return mask(value) if isinstance(value, str) else value
