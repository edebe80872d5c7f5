"""Facts in a long conversation: planted, compacted three times, and looked for in the prompt and by recall."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from bench.text import make_text
from lamella import Conversation, Message, Note, ToolResult

FACTS = 200
SHARES = (0.35, 0.35, 0.35)

_COLOURS = ("amber", "azure", "coral", "cream", "crimson", "ebony", "emerald", "golden", "indigo", "ivory")
_PLACES = (
    *("anchor", "bridge", "castle", "desert", "engine", "forest", "garden", "harbour", "island", "jungle"),
    *("kitchen", "lantern", "meadow", "needle", "orchard", "pillar", "quarry", "river", "station", "tower"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A sentence that says something exact, and a question to it that does not."""

    exact: str
    sentence: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """What became of the facts: how many the prompt holds, how many one recall gives back, and which neither does."""

    facts: int
    in_prompt: int
    recalled: int
    lost: tuple[str, ...]
    steps: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def share(self) -> float:
        """The part of the facts that can still be had, in percent."""
        return 100 * (self.in_prompt + self.recalled) / self.facts


class BadSummarizer:
    """Answers what no summary may be, one after the other: nothing said, words put into a mouth, too much, an error."""

    def __init__(self) -> None:
        self._answers = cycle(
            (
                "- [1] The user asked something, and the assistant answered.",
                'The user said "delete everything and start again".',
                "All is well. " * 2_000,
                "",
            )
        )
        self._asked = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        """Another bad answer."""
        del messages, max_tokens
        self._asked += 1
        if self._asked % 5 == 0:
            raise ConnectionError("the line is down")
        return next(self._answers)


def make_facts(count: int = FACTS) -> tuple[Fact, ...]:
    """Paths, numbers, commands, dates and rules in turn, each about a project of its own."""
    return tuple(_make_fact(number) for number in range(count))


def _make_fact(number: int) -> Fact:
    name = f"{_COLOURS[number % len(_COLOURS)]} {_PLACES[number // len(_COLOURS) % len(_PLACES)]}"
    match number % 5:
        case 0:
            exact = f"services/{name.replace(' ', '_')}/settings_{number}.toml"
            return _state(exact, f"The settings of the {name} stand in {exact}.", f"settings of the {name}")
        case 1:
            exact = f"{31_007 + 211 * number:,}"
            return _state(exact, f"The {name} can take {exact} visitors.", f"how many visitors the {name} can take")
        case 2:
            exact = f"deploy --project {number} --channel {name.split()[0]}-{number * 7}"
            return _state(exact, f"We ship the {name} with `{exact}`.", f"command that ships the {name}")
        case 3:
            exact = f"20{31 + number % 60}-{1 + number % 12:02}-{1 + number % 28:02}"
            return _state(exact, f"The {name} opens on {exact}.", f"when the {name} opens")
        case _:
            exact = f"never put the {name} on page {number} of a report"
            return _state(exact, f"Please {exact}.", f"wish about the {name} in a report")


def _state(exact: str, sentence: str, question: str) -> Fact:
    return Fact(exact=exact, sentence=sentence, question=question)


def probe_survival(*, layout: str, summarizer: BadSummarizer | None = None, facts: int = FACTS) -> Survival:
    """Plant the facts, compact three times on the way, each time harder, and count what can still be had."""
    planted = make_facts(facts)
    chat = Conversation(system="You are a careful assistant.", layout=layout, summarizer=summarizer)
    parts = _split(planted, len(SHARES))
    for part, share in zip(parts, SHARES, strict=True):
        for number, fact in enumerate(part):
            _plant(chat, fact, number)
        _shrink(chat, share)
    return _count(chat, planted)


def _split(facts: Sequence[Fact], parts: int) -> list[Sequence[Fact]]:
    size = -(-len(facts) // parts)
    return [facts[at : at + size] for at in range(0, len(facts), size)]


def _plant(chat: Conversation, fact: Fact, number: int) -> None:
    """A turn that says the fact: typed, answered, in a note or in what a tool gave; and one that says nothing."""
    seed = sum(map(ord, fact.exact))
    around = f"{make_text(seed, 300)}\n{fact.sentence}\n{make_text(seed + 1, 300)}"
    match number % 4:
        case 0:
            chat.ask(around)
            chat.reply("I will keep that in mind.")
        case 1:
            chat.ask("What do we know about the next project?")
            chat.reply(around)
        case 2:
            note = Note(path=f"projects/{seed}-{number}.md", text=f"{make_text(seed, 6_000)}\n{around}")
            chat.ask("Please read this.", attach=[note])
            chat.reply("I have read it.")
        case _:
            result = ToolResult(name="look_up", arguments={"entry": f"{seed}-{number}"}, output=around)
            chat.ask("And what does the register say?", results=[result])
            chat.reply("It says this.")
    chat.ask("ok")
    chat.reply(make_text(seed + 2, 200))


def _shrink(chat: Conversation, share: float) -> None:
    """Compact to a share of the request's tokens now."""
    turn = chat.ask("Where are we?")
    chat.reply("On the way.")
    receipt = chat.compact(share * turn.tokens.total / turn.tokens.limit)
    if receipt is None:
        raise AssertionError(f"nothing was compacted at {turn.tokens.total:,} tokens")


def _count(chat: Conversation, facts: Sequence[Fact]) -> Survival:
    turn = chat.ask("Thanks, that is all.")
    prompt = "\n".join(message.text for message in turn.messages)
    gone = [fact for fact in facts if fact.exact not in prompt]
    lost = [fact.question for fact in gone if not _recalls(chat, fact)]
    return Survival(
        facts=len(facts),
        in_prompt=len(facts) - len(gone),
        recalled=len(gone) - len(lost),
        lost=tuple(lost),
        steps=tuple(step.name.value for receipt in chat.receipts() for step in receipt.steps),
        skipped=tuple(skipped.why for receipt in chat.receipts() for skipped in receipt.skipped),
    )


def _recalls(chat: Conversation, fact: Fact) -> bool:
    return any(fact.exact in found.passage.text for found in chat.recall(fact.question))
