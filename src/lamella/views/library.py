"""The library and what waits for the next turn, as data."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Protocol

from lamella.core.artifacts.model import Artifact
from lamella.views.amounts import plain_if_known
from lamella.views.caches.cold import ColdShape, view_cold
from lamella.views.turns import TurnShape


class RowShape(Protocol):
    """What has to be known of an artifact in the library."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def in_working_set(self) -> bool: ...
    @property
    def cached(self) -> bool | None: ...
    @property
    def age_turns(self) -> int: ...
    @property
    def saves(self) -> int: ...
    @property
    def waits(self) -> bool: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def via(self) -> str | None: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...


class CommandsShape(Protocol):
    """What has to be known of what waits for the next turn."""

    @property
    def attach(self) -> tuple[Artifact, ...]: ...
    @property
    def detach(self) -> tuple[str, ...]: ...
    @property
    def drop(self) -> tuple[str, ...]: ...
    @property
    def pin(self) -> tuple[str, ...]: ...
    @property
    def unpin(self) -> tuple[str, ...]: ...
    @property
    def tokens(self) -> Mapping[str, int]: ...
    @property
    def said(self) -> tuple[str, ...]: ...


def view_library(
    conversation: str, rows: Iterable[RowShape], waits: CommandsShape, *, cold: ColdShape | None = None
) -> dict[str, object]:
    """Every artifact of a conversation, what waits for its next turn, and whether its cache is cold."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "artifacts": [view_artifact(row) for row in rows],
        "waiting": _view_waiting(waits),
        "cold": view_cold(cold),
    }


def view_artifact(row: RowShape) -> dict[str, object]:
    """One artifact, in the names of docs/attaching.md."""
    return {
        "id": row.id,
        "kind": row.kind,
        "title": row.title,
        "form": row.form,
        "tokens": row.tokens,
        "in_working_set": row.in_working_set,
        "cached": row.cached,
        "age_turns": row.age_turns,
        "saves": row.saves,
        "waits": row.waits,
        "policy": row.policy,
        "via": row.via,
        "left_out": list(row.left_out),
    }


def view_commands(conversation: str, waits: CommandsShape, *, before: TurnShape, after: TurnShape) -> dict[str, object]:
    """What a command came to: what waits now, what is to be said of it, and the next request before it and after."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "waiting": _view_waiting(waits),
        "said": list(waits.said),
        "next": {
            "tokens": after.tokens.total,
            "limit": after.tokens.limit,
            "more_tokens": after.tokens.total - before.tokens.total,
            "cost": plain_if_known(find_amount(after)),
            "more_cost": plain_if_known(find_more(before, after)),
        },
    }


def find_amount(turn: TurnShape) -> Decimal | None:
    """What a request would cost, where that is known."""
    return None if turn.cost is None else turn.cost.amount


def find_more(before: TurnShape, after: TurnShape) -> Decimal | None:
    """How much more the second of two requests would cost."""
    amounts = find_amount(before), find_amount(after)
    return None if amounts[0] is None or amounts[1] is None else amounts[1] - amounts[0]


def _view_waiting(waits: CommandsShape) -> dict[str, object]:
    return {
        "attach": [
            {
                "id": one.id,
                "kind": one.kind.value,
                "title": one.title,
                "form": "preview" if one.outlined else "full",
                "tokens": waits.tokens.get(one.id),
            }
            for one in waits.attach
        ],
        "detach": list(waits.detach),
        "drop": list(waits.drop),
        "pin": list(waits.pin),
        "unpin": list(waits.unpin),
    }
