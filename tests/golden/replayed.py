"""A replayed conversation in the form that tests compare: the contents of each layer of each turn."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.golden.cases import Case, run_case

from lamella.core.log.call import PrefixChange, PrefixChangeCause


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """One turn of ``lamella replay --json``."""

    body: dict[str, Any]

    def forms(self, layer: str) -> list[tuple[str, str]]:
        """The ids of a layer's segments and their forms, in order."""
        return [(segment["id"], segment["form"]) for segment in self._layer(layer)["segments"]]

    def places(self, layer: str) -> list[str]:
        return [segment["place"] for segment in self._layer(layer)["segments"]]

    def kinds(self, layer: str) -> list[str]:
        return [segment["kind"] for segment in self._layer(layer)["segments"]]

    def text(self, layer: str) -> str:
        return str(self._layer(layer)["text"])

    def hash(self, layer: str) -> str:
        return str(self._layer(layer)["hash"])

    def _layer(self, layer: str) -> dict[str, Any]:
        (found,) = [one for one in self.body["envelope"]["layers"] if one["id"] == layer]
        return dict(found)

    @property
    def messages(self) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in self.body["messages"]]

    @property
    def system(self) -> str:
        return self.messages[0][1]

    @property
    def last(self) -> str:
        return self.messages[-1][1]

    @property
    def movement(self) -> PrefixChange:
        prefix = self.body["prefix"]
        return PrefixChange(cause=PrefixChangeCause(prefix["cause"]), segment=prefix["segment"])


@cache
def replay(conversation: str, layout: str, carry_forward: str) -> tuple[SeenTurn, ...]:
    case = Case(conversation=conversation, layout=layout, carry_forward=carry_forward)
    return tuple(SeenTurn(body) for body in json.loads(run_case(case, "--json"))["turns"])
