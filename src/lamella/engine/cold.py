"""Cold: what the next message costs once the provider's cache has lapsed, as it is and folded; never by a guess."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from msgspec import Struct

from lamella.core.budget.counting import weigh_messages
from lamella.core.ledger.cache import CacheProfile, CacheRequest, split_use
from lamella.core.ledger.entry import Tariff
from lamella.core.log.call import MOST_KEPT
from lamella.core.planning.alive import expect_return, find_due, pays_to_keep
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.accounts import Accounts
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.turn import TurnView

# The part of a lifetime at its end in which people are warned: a minute of five.
_SOON = 0.2
_PAST = timedelta(microseconds=1)


class ColdCache(Struct, frozen=True, kw_only=True):
    """A cache that has lapsed, or is about to, and what the next message takes then, before anything is typed.

    ``tokens`` and ``cost`` are those of the request as it would be without the pause, ``folded_tokens`` and
    ``folded_cost`` those of one from which all that is dead has left; money is none where prices are unknown. ``folds``
    says that it will be folded by itself. ``keep`` is what it takes to send the last request once more before it
    lapses, so that the cache still has it; none where nobody can, or where that is not worth it.
    """

    lapsed: bool
    lapses_at: datetime
    tokens: int
    cost: Decimal | None
    folded_tokens: int
    folded_cost: Decimal | None
    folds: bool
    keep: "KeepAlive | None" = None


class KeepAlive(Struct, frozen=True, kw_only=True):
    """Sending the last request once more, only to keep it in the cache: when that is due, and what it takes.

    ``chance`` is that of somebody asking before the cache lapses all the same.
    """

    due_at: datetime
    tokens: int
    cost: Decimal | None
    chance: float


class CoolingChat(Protocol):
    """A conversation with its books, whose next turn can be looked at."""

    @property
    def accounts(self) -> Accounts: ...

    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...


def find_keep_alive(accounts: Accounts, state: State, *, at: datetime | None) -> KeepAlive | None:
    """What keeps the cache once more, from a state between two turns; none once it lapsed, or where it does not pay."""
    sent, asked_at, last = accounts.sent, accounts.asked_at, state.last
    if at is None or sent is None or sent.at is None or asked_at is None or last is None or state.waits:
        return None
    tariff = accounts.find_tariff(sent.model)
    due = find_due(tariff.profile)
    if due is None or sent.model != state.model or len(accounts.kept) >= MOST_KEPT:
        return None
    due_at = sent.at + timedelta(seconds=due)
    chance = expect_return(state.trail, (due_at - asked_at).total_seconds(), tariff.profile)
    lasting = last.placement.lasting
    lasts = 0 if lasting is None else weigh_messages(last.messages[: lasting + 1], last.measure)
    lapsed = (at - sent.at).total_seconds() > (tariff.profile.lifetime or 0)
    if lapsed or not pays_to_keep(chance, tariff.profile, hot=sent.total - lasts, total=sent.total):
        return None
    cost = tariff.price(split_use(sent.total, sent.total, tariff.profile), at)
    return KeepAlive(due_at=due_at, tokens=sent.total, cost=cost, chance=chance)


def find_cold(chat: CoolingChat, *, at: datetime | None, keep: KeepAlive | None = None) -> ColdCache | None:
    """What a message costs from when the cache has lapsed; none while it is warm, or where nobody says how long it is.

    Nor where nothing was kept: the last request was none, at no known time, or too short for the cache. It is told
    together with what would ``keep`` it.
    """
    sent = chat.accounts.sent
    if at is None or sent is None or sent.at is None:
        return None
    tariff = chat.accounts.find_tariff(sent.model)
    profile = tariff.profile
    if profile.lifetime is None or profile.read >= profile.write or sent.total < profile.minimum:
        return None
    lapses_at = sent.at + timedelta(seconds=profile.lifetime)
    if at < lapses_at - timedelta(seconds=_SOON * profile.lifetime):
        return None
    cold = _weigh_cold(chat, sent, tariff, lapses_at=lapses_at, at=at)
    return cold if cold is None or keep is None else replace(cold, keep=keep)


def _weigh_cold(
    chat: CoolingChat, sent: CacheRequest, tariff: Tariff, *, lapses_at: datetime, at: datetime
) -> ColdCache | None:
    moment = max(at, lapses_at + _PAST)
    # Without a time nothing has lapsed: what would be sent without a pause.
    as_is = chat.preview(Ask(text=""))
    if as_is.envelope.model != sent.model:
        # Another model has nothing of it, however short the pause is.
        return None
    planned = chat.preview(Ask(text=""), at=moment) if as_is.envelope.prompt.placement.priced else as_is
    folds = planned is not as_is and planned.envelope.prompt.placement.keep is not None
    folded = planned if folds else chat.preview(Ask(text="", fold=True), at=moment)
    pause = (moment - sent.at).total_seconds() if sent.at else 0.0
    held = _count_lasting(as_is, tariff.profile, pause=pause)
    return ColdCache(
        lapsed=at > lapses_at,
        lapses_at=lapses_at,
        tokens=as_is.tokens.total,
        cost=tariff.price(split_use(held, as_is.tokens.total, tariff.profile), at),
        folded_tokens=folded.tokens.total,
        folded_cost=tariff.price(folded.cache or split_use(0, folded.tokens.total, tariff.profile), at),
        folds=folds,
    )


def _count_lasting(turn: TurnView, profile: CacheProfile, *, pause: float) -> int:
    """What a longer lifetime still holds of a request that goes on from the last one."""
    lasting = turn.envelope.prompt.placement.lasting
    if lasting is None or profile.longer is None or pause > profile.longer[0]:
        return 0
    return weigh_messages(turn.messages[: lasting + 1], turn.envelope.prompt.measure)
