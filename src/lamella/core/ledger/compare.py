"""What a turn is compared with: gluing everything into the last message, and a cache that never misses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import Measure
from lamella.core.layers.model import Layer, Layout, message_place
from lamella.core.layers.strip import Exchange, past_messages
from lamella.core.layers.turn import build_turn
from lamella.core.ledger.cache import CacheProfile, CacheUse, split_use
from lamella.core.messages.model import Message
from lamella.core.messages.render import render_system, render_user


def naive_messages(
    system: Layer,
    user: Layer,
    *,
    exchanges: Sequence[Exchange],
    attached: Sequence[Artifact],
    measure: Measure,
) -> tuple[Message, ...]:
    """The request of an application that glues this turn's attachments into the last message, every turn."""
    head = render_system(system, (), count=measure.count)
    turn = build_turn(
        attached, standing={}, layout=Layout.LIBRARY, place=message_place(2 * len(exchanges)), measure=measure
    )
    return (
        *((head,) if head else ()),
        *past_messages(exchanges, epoch_start=len(exchanges)),
        render_user(turn.layer, user, turn.images, count=measure.count),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectCache:
    """A cache that serves every piece of text ever sent, wherever it stood and however long ago."""

    seen: frozenset[str] = frozenset()

    def answer(
        self, messages: Iterable[Message], total: int, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "PerfectCache"]:
        """The least that any arrangement of the same text could cost: what is known is read, the rest is plain."""
        pieces = {piece for message in messages for piece in message.pieces}
        known = sum(measure.count(piece) for piece in pieces & self.seen)
        ideal = replace(profile, minimum=0, granularity=1, bills_writes=False)
        return split_use(min(known, total), total, ideal), PerfectCache(seen=self.seen | pieces)
