"""Asking for summaries: the core says which text it needs and how to ask; whoever runs the turn fetches it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamella.core.budget.counting import Measure, weigh
from lamella.core.compaction.rules import SummaryRules
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import State
from lamella.core.text.content import canonical_json, hash_text
from lamella.core.values import describe

_WISH = (
    "Write {form}, at most {words:,} words, in {language}. Quote the user's wishes word for word in double quotes, or "
    "do not quote. Keep decisions, reasons and open questions. Invent nothing. Answer with the summary only."
)
_OF_THE_TALK = "the language of the conversation"
# Words of most languages have more tokens than this many to one.
_WORDS_PER_TOKEN = 0.6
_SHOWN_CHARACTERS = 80


class SummaryNeed(Struct, frozen=True, kw_only=True):
    """A summary that would help: the request to send, and how long the answer may be.

    ``key`` is the hash of the text covered, so that the same text is summarised once. Where the request extends what
    was sent last, ``alone`` is one that does not, for a model that was not sent it.
    """

    key: str
    messages: tuple[Message, ...]
    max_tokens: int
    alone: tuple[Message, ...] = ()

    def __repr__(self) -> str:
        return describe(self, without=("messages", "alone"))


class SummaryText(NamedTuple):
    """What a summariser answered: a text, or why there is none.

    ``by`` is who wrote it, where that is known, ``warning`` what is to be told of having asked.
    """

    text: str = ""
    why: str | None = None
    by: str = ""
    warning: str = ""


Summaries = Mapping[str, SummaryText]


def ask_live(
    oldest: Sequence[Exchange], *, state: State, measure: Measure, rules: SummaryRules, window: int
) -> tuple[Message, ...]:
    """What was sent last, its answer, and one more question: all but the question is in the provider's cache.

    It asks for everything up to the last of these turns: what earlier summaries tell stands in what was sent, as such
    or as the turns they were made from. Empty where nothing was sent yet, or where that would not fit the window.
    """
    if state.last is None or not state.talk.exchanges:
        return ()
    answer = state.talk.exchanges[-1].replies[-1].message
    task = (
        "Summarise this conversation from its very beginning, with what a summary there tells, up to and including "
        f"the answer to {_begins(oldest[-1])}. {_wish(rules, rules.writes)}"
    )
    live = (*state.last.messages, answer, _say(task, measure))
    return live if weigh(live, state.last.tools, measure) + rules.writes <= window else ()


def ask_alone(
    exchanges: Sequence[Exchange], *, measure: Measure, rules: SummaryRules, writes: int, told: Sequence[str] = ()
) -> tuple[Message, ...]:
    """The turns to summarise after what was told of those before them, and nothing else."""
    asked = [one.user.segment.text for one in exchanges]
    answered = ["\n\n".join([reply.original for reply in (one.reply, *one.joined)]) for one in exchanges]
    turns = [f"User: {asks}\n\nAssistant: {says}" for asks, says in zip(asked, answered, strict=True)]
    talk = "\n\n".join((*told, *turns))
    return (_say(f"{talk}\n\nSummarise this conversation. {_wish(rules, writes)}", measure),)


def sign(answer: SummaryText) -> str:
    """The text of an answer that stands where nothing else says who wrote it, with a line that does."""
    return f"[Summarised by {answer.by}.]\n{answer.text.strip()}" if answer.by else answer.text


def unsign(text: str) -> str:
    """The same without the line that says who wrote it, which nobody said."""
    return text.partition("\n")[2] if text.startswith("[Summarised by ") else text


def _wish(rules: SummaryRules, writes: int) -> str:
    words = max(int(writes * _WORDS_PER_TOKEN), 1)
    return _WISH.format(form=rules.form, words=words, language=rules.language or _OF_THE_TALK)


def texts_of(exchanges: Sequence[Exchange]) -> list[str]:
    """Everything said in some turns."""
    said = [one for exchange in exchanges for one in (exchange.user, exchange.reply, *exchange.joined)]
    return [one.segment.text if one.whole is None else one.whole[one.segment.id] for one in said]


def key_of(exchanges: Sequence[Exchange], told: Sequence[str] = ()) -> str:
    """The name of the summary of some turns, and of what was told before them."""
    return hash_text(canonical_json([*told, *texts_of(exchanges)]))


def _begins(exchange: Exchange) -> str:
    text = " ".join(exchange.user.text.split())
    more = " …" if len(text) > _SHOWN_CHARACTERS else ""
    return f'"{text[:_SHOWN_CHARACTERS]}{more}"'


def _say(text: str, measure: Measure) -> Message:
    return Message(role=Role.USER, pieces=(text,), tokens=measure.count(text))
