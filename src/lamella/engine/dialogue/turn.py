"""One turn as built, and its page in the ledger."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from lamella.core.ledger.entry import Entry, Prefix
from lamella.core.log.call import CacheUse, Cost
from lamella.core.log.receipt import Receipt
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.core.prompt.envelope import Envelope, TokenCounts, make_request
from lamella.errors import CallError

# What builds a request in a wire format; it is told whether a model of any maker will do.
Speak = Callable[[str, Request, bool], dict[str, Any]]


# How many tokens an answer may have that somebody else asks for, where nobody says.
_ANSWER = 4_096


def check_length(max_tokens: int, name: str = "max_tokens") -> int:
    """A number of tokens that an answer can have, or a turn."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise CallError(f"{name} is {max_tokens!r}.", hint="Give a whole number of tokens, at least 1.")
    return max_tokens


def check_room(total: int, *, answer: int, window: int | None) -> None:
    """Refuses an answer that may be longer than what a request of so many tokens leaves of the window."""
    if window is not None and total + answer > window:
        left = window - total
        raise CallError(
            f"The answer may have {answer:,} tokens, and the window of {window:,} has {max(left, 0):,} left beside the "
            f"request of {total:,}.",
            # Every door tells this: at some of them the question waits for another try, at some it is asked again.
            hint=lambda door: (
                (f"Have it answered with {door.ask_again(max_tokens=left)}, or set" if left > 0 else "Set")
                + f" reserve to {answer}, so that room is made for such answers."
            ),
        )


@dataclass(slots=True)
class LedgerPage:
    """The ledger's page for one turn: written when it is asked, and added to when it is answered."""

    entry: Entry
    envelope: Envelope


class TurnView(Struct, frozen=True, kw_only=True, eq=False):
    """One turn as built: what is sent, what each part of it weighs, what moved and what it costs.

    ``compaction`` is the receipt of what had to go before it could be sent, if anything. ``after`` is the provider's
    name for the reply before, and ``pause`` how many seconds went by since the turn before was asked.
    """

    number: int
    envelope: Envelope
    page: LedgerPage
    compaction: Receipt | None = None
    after: str | None = None
    pause: float | None = None
    speak: Speak | None = None

    def __repr__(self) -> str:
        said, weighed = self.envelope.prompt.user.segment, self.envelope.tokens
        return f"TurnView(number={self.number}, message={said.id!r}, tokens={weighed.total})"

    def __eq__(self, other: object) -> bool:
        # Who speaks to providers is no part of what is sent.
        return isinstance(other, TurnView) and self._said == other._said

    __hash__ = None  # type: ignore[assignment]  # a page is written on while the turn lasts

    @property
    def _said(self) -> tuple[object, ...]:
        return self.number, self.envelope, self.ledger, self.compaction, self.after, self.pause

    @property
    def ledger(self) -> Entry:
        """What the ledger says of this turn; once it was answered, with what the provider reported."""
        return self.page.entry

    def request(self, provider: str, *, model: str | None = None, max_tokens: int | None = None) -> dict[str, Any]:
        """The arguments that send this turn with a provider's own SDK.

        An answer may have ``max_tokens``: 4,096 if nothing is said, or what the window leaves of them. A model that is
        known to be another maker's is refused, unless ``model`` names it: gateways have such models.
        """
        name = model or self.envelope.model
        if self.speak is None or name is None:
            raise no_model()
        return self.speak(
            provider, self.chat_request(model=name, answer=self.fit_answer(max_tokens)), model is not None
        )

    def fit_answer(self, max_tokens: int | None) -> int:
        """How many tokens an answer may have; those that are given are refused if the window leaves fewer."""
        if max_tokens is not None:
            check_room(self.tokens.total, answer=check_length(max_tokens), window=self.tokens.window)
            return max_tokens
        left = _ANSWER if self.tokens.window is None else self.tokens.window - self.tokens.total
        return max(min(_ANSWER, left), 1)

    def chat_request(self, *, model: str, answer: int) -> Request:
        """The turn as it is sent. The next pause is expected to be as long as the last."""
        return make_request(self.envelope, model=model, answer=answer, pause=self.pause, compare=self.after)

    @property
    def why(self) -> str:
        """Why things stand where they do in this request, in a few words of its planner."""
        return self.envelope.prompt.placement.why

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.envelope.messages

    @property
    def tokens(self) -> TokenCounts:
        return self.envelope.tokens

    @property
    def prefix(self) -> Prefix:
        return self.ledger.prefix

    @property
    def cache(self) -> CacheUse | None:
        return self.ledger.cache

    @property
    def cost(self) -> Cost | None:
        return self.ledger.cost


def no_model() -> CallError:
    """The error for what cannot be sent anywhere."""
    return CallError("No model is named.", hint=lambda door: f"Name one with {door.option('model')} or LAMELLA_MODEL.")
