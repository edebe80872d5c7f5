"""Summaries of the oldest turns: which text is needed, how it is asked for, and whether it may stand in for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lamella.core.artifacts.content import hash_text
from lamella.core.artifacts.make import canonical_json
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.draft import Draft
from lamella.core.compaction.exact import build_ledger
from lamella.core.compaction.receipt import Cut, Skipped
from lamella.core.compaction.removal import message_ids
from lamella.core.compaction.rules import StepName
from lamella.core.envelope.model import Envelope
from lamella.core.layers.model import StandIn
from lamella.core.layers.opening import render_derived
from lamella.core.layers.strip import Exchange
from lamella.core.messages.model import Message, Speaker
from lamella.core.messages.weigh import weigh

_WISH = (
    "Quote the user's wishes word for word in double quotes, or do not quote. Keep decisions, reasons and open "
    "questions. Invent nothing. Answer with the summary only."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryNeed:
    """A summary that would help: the request to send, what it covers, and how long the answer may be.

    ``key`` is the hash of the text covered, so that the same text is summarised once.
    """

    key: str
    messages: tuple[Message, ...] = field(repr=False)
    max_tokens: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryText:
    """What a summariser answered: a text, or why there is none."""

    text: str = ""
    why: str | None = None


Summaries = Mapping[str, SummaryText]


def propose_summary(draft: Draft, summaries: Summaries | None) -> Cut | SummaryNeed | Skipped | None:
    """The oldest turns as one summary, the need of one, why there is none, or nothing to summarise."""
    oldest = _oldest(draft)
    if len(oldest) < draft.rules.compaction.summary.turns:
        return None
    if summaries is None:
        return Skipped(name=StepName.SUMMARY, why="no summariser is given")
    key = _key(oldest)
    if key not in summaries:
        return _need(draft, oldest, key)
    answer = summaries[key]
    why = answer.why or _find_fault(draft, oldest, answer.text)
    if why is not None:
        return Skipped(name=StepName.SUMMARY, why=why)
    return Cut(name=StepName.SUMMARY, removed=_ids(oldest), text=_render(draft, oldest, answer.text))


def _oldest(draft: Draft) -> Sequence[Exchange]:
    """As many of the oldest turns as free what is too much, within what a summariser reads."""
    rules = draft.rules.compaction.summary
    needed = draft.excess + rules.writes + rules.exact
    weights = list(accumulate(_weight(exchange) for exchange in draft.free))
    readable = sum(1 for weight in weights if weight <= rules.reads)
    enough = next((index + 1 for index, weight in enumerate(weights) if weight >= needed), len(weights))
    return draft.free[: min(readable, max(enough, rules.turns))]


def _need(draft: Draft, oldest: Sequence[Exchange], key: str) -> SummaryNeed:
    rules = draft.rules.compaction.summary
    return SummaryNeed(key=key, messages=_request(draft, oldest), max_tokens=rules.writes, turns=len(oldest))


def _request(draft: Draft, oldest: Sequence[Exchange]) -> tuple[Message, ...]:
    """What was sent last, and one more question: the provider has all but the question in its cache.

    Where that does not fit, the turns to summarise alone.
    """
    measure, last = draft.rules.measure, draft.state.last
    if last is not None and draft.state.exchanges:
        asked = _ask(
            f"Summarise the first {len(oldest)} turns of this conversation, up to and including this "
            f"question and its answer: {_begins(oldest[-1])} {_WISH}",
            draft,
        )
        live = (*last.messages, _answer(draft, last), asked)
        if weigh(live, last.tools, measure) + draft.rules.compaction.summary.writes <= draft.rules.budget.window:
            return live
    talk = "\n\n".join(f"User: {one.user.text}\n\nAssistant: {one.reply.text}" for one in oldest)
    return (_ask(f"{talk}\n\nSummarise this conversation. {_WISH}", draft),)


def _answer(draft: Draft, last: Envelope) -> Message:
    newest = draft.state.exchanges[-1]
    return (newest.joined[-1] if newest.joined else newest.reply).message


def _begins(exchange: Exchange, characters: int = 80) -> str:
    text = " ".join(exchange.user.text.split())
    return f'"{text[:characters]}"' if len(text) <= characters else f'"{text[:characters]} …"'


def _ask(text: str, draft: Draft) -> Message:
    return Message(role=Speaker.USER, pieces=(text,), tokens=draft.rules.measure.count(text))


def _find_fault(draft: Draft, oldest: Sequence[Exchange], text: str) -> str | None:
    count = draft.rules.measure.count
    return check_summary(
        text,
        replaced=_texts(oldest),
        users=[exchange.user.text for exchange in oldest],
        tokens=count(text),
        replaced_tokens=sum(_weight(exchange) for exchange in oldest),
        max_tokens=draft.rules.compaction.summary.writes,
    )


def _render(draft: Draft, oldest: Sequence[Exchange], text: str) -> str:
    cap = draft.rules.compaction.summary.exact
    exact = build_ledger(_texts(oldest), cap=cap, count=draft.rules.measure.count)
    return render_derived(StandIn.SUMMARY, text, covers=f"{len(oldest)} earlier turns", exact=exact)


def _texts(exchanges: Sequence[Exchange]) -> list[str]:
    return [said.text for one in exchanges for said in (one.user, one.reply, *one.joined)]


def _ids(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    return tuple(name for exchange in exchanges for name in message_ids(exchange))


def _key(exchanges: Sequence[Exchange]) -> str:
    return hash_text(canonical_json(_texts(exchanges)))


def _weight(exchange: Exchange) -> int:
    return sum(said.segment.tokens for said in (exchange.user, exchange.reply, *exchange.joined))
