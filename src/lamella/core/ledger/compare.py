"""What a turn is compared with: gluing everything into the last message, and a cache that never misses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.ledger.cache import CacheProfile, split_use
from lamella.core.log.call import CacheUse
from lamella.core.messages.model import Message
from lamella.core.prompt.layers.model import Layer
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.prompt import render_system, render_user
from lamella.core.values import replace


def naive_messages(
    system: Layer,
    user: Layer,
    *,
    exchanges: Sequence[Exchange],
    attached: Sequence[Artifact],
    blocks: Mapping[tuple[str, str], str],
    measure: Measure,
) -> tuple[Message, ...]:
    """The request of an application that glues this turn's attachments into the last message, every turn.

    ``blocks`` are blocks already rendered, by id and hash, so that the comparison holds no second copy of the text.
    """
    head = render_system(system, (), count=measure.count)
    texts = [artifact for artifact in attached if artifact.kind is not Kind.IMAGE]
    glued = [blocks.get((artifact.id, artifact.hash)) or render_block(artifact) for artifact in texts]
    images = [image for artifact in attached if artifact.kind is Kind.IMAGE for image in artifact.images]
    return (
        *((head,) if head else ()),
        *(message for one in exchanges for message in _glued_before(one)),
        render_user(glued, user.pieces, images, count=measure.count),
    )


def _glued_before(exchange: Exchange) -> Iterator[Message]:
    """An earlier turn of such an application: as typed, with its rounds of tools while they are sent at all."""
    yield exchange.user.message
    yield from (said.message for said in exchange.rounds)
    yield exchange.answer or exchange.reply.message


class PerfectCache(Struct, frozen=True, kw_only=True):
    """A cache that serves every piece of text ever sent, wherever it stood and however long ago."""

    seen: Mapping[str, int] = {}

    def answer(
        self, messages: Iterable[Message], use: CacheUse, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "PerfectCache"]:
        """The least that any arrangement of the same text could cost: what is known is read, the rest is plain.

        ``use`` is what the real cache served of it; a perfect one serves no less, overhead of messages included.
        """
        # A message of one piece was weighed when it was made.
        weighed = {
            piece: message.tokens if len(message.pieces) == 1 else None
            for message in messages
            for piece in message.pieces
        }
        seen = self.seen
        new = {
            piece: measure.count(piece) if tokens is None else tokens
            for piece, tokens in weighed.items()
            if piece not in seen
        }
        known = sum([seen[piece] for piece in weighed if piece in seen])
        ideal = replace(profile, minimum=0, granularity=1, bills_writes=False)
        read = min(max(known, use.read), use.total)
        return split_use(read, use.total, ideal), PerfectCache(seen={**self.seen, **new})
