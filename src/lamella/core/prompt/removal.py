"""Taking messages out of the talk: whole turns leave, and a reply whose question left joins the reply before it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lamella.core.prompt.layers.model import Count
from lamella.core.prompt.layers.strip import Exchange, Said, join_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of the talk, how many messages went, and how many exchanges of earlier epochs are left."""

    exchanges: tuple[Exchange, ...]
    messages: int
    epoch_start: int


def message_ids(exchange: Exchange) -> tuple[str, ...]:
    """The ids of everything said in an exchange."""
    return tuple(said.id for said in exchange.said)


def remove_messages(exchanges: Sequence[Exchange], gone: Collection[str], *, epoch_start: int, count: Count) -> Left:
    """The talk without these messages.

    A question alone may go where an exchange stands before it; an answer goes only with its question.
    """
    left: list[Exchange] = []
    joined: dict[int, list[Said]] = {}
    messages = start = 0
    for index, exchange in enumerate(exchanges):
        if index == epoch_start:
            start = len(left)
        if exchange.user.id not in gone:
            left.append(exchange)
            continue
        if all(name in gone for name in message_ids(exchange)):
            messages += len(message_ids(exchange))
        elif left:
            messages += 1
            last = len(left) - 1
            joined.setdefault(last, list(left[last].joined)).extend((exchange.reply, *exchange.joined))
        else:
            left.append(exchange)
    for index, replies in joined.items():
        left[index] = join_answer(left[index], replies, count=count)
    return Left(
        exchanges=tuple(left), messages=messages, epoch_start=start if epoch_start < len(exchanges) else len(left)
    )
