"""What was seen of models that their profiles do not fit, as data, and as lines for a file of facts."""

import json
from collections.abc import Mapping, Sequence
from typing import Protocol


class SeenShape(Protocol):
    """What has to be known of a contradiction."""

    @property
    def turns(self) -> Sequence[int]: ...
    @property
    def says(self) -> str: ...


class DoubtShape(Protocol):
    """What has to be known of a model that its profile does not fit."""

    @property
    def model(self) -> str: ...
    @property
    def as_of(self) -> str: ...
    @property
    def seen(self) -> Sequence[SeenShape]: ...
    @property
    def facts(self) -> Mapping[str, int | bool]: ...


def view_doubt(doubt: DoubtShape) -> dict[str, object]:
    """A model, what was seen of it, and the lines to paste."""
    return {
        "model": doubt.model,
        "seen": [{"turns": list(one.turns), "says": one.says} for one in doubt.seen],
        "facts": dict(doubt.facts),
        "model_facts": "\n".join(write_facts(doubt)),
    }


def write_facts(doubt: DoubtShape) -> list[str]:
    """An entry of a file of facts that says what was seen, in TOML."""
    # A file of facts matches what stands behind the provider, or behind the address of a server.
    after = doubt.model.rpartition("#")[2] if "#" in doubt.model else doubt.model.partition(":")[2]
    facts = [f"{name} = {str(value).lower()}" for name, value in doubt.facts.items()]
    return ["[[model]]", f"match = {json.dumps(after or doubt.model)}", f"as_of = {doubt.as_of}", *facts]
