"""Random conversations that outgrow their windows: longer messages, small windows, and manual compactions and undos."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import strategies as st
from tests.invariants.moves import Deed, Kept, Move, stored_conversation_plans
from tests.invariants.playing import WINDOW, Player, Seen
from tests.invariants.reopened_prompts import Lasting
from tests.invariants.strategies import Plan, Step, plans

from lamella import ContextBudgetExceededError, Turn
from lamella.core.messages import Message
from lamella.core.prompt.layers.model import LayerId
from lamella.ports import Store, Summarizer

# What a window takes of the largest request that a conversation would send without one.
PARTS = (0.4, 0.6, 0.75, 0.9, 1.0)
SMALLEST = 300
WINDOWS = (1_000, 2_000, 4_000, 8_000, 16_000)
HISTORIES = ("full", "full", "full", "window", "strip")
ACKNOWLEDGED = ("ok", "Terima kasih.", "lanjut", "thanks", "yes please", "Sip 👍")
ASKED = (
    "opsi B",
    "2",
    "Rename src/app/main.py to src/app/start.py, but keep version 4.2.1 as it is.",
    "```\nprint('kept')\n```",
    "Tell me more about the second part, and why it was decided on 2026-03-01. " * 6,
)
ANSWERED = (
    "Shall I go on?",
    "Done.",
    "I would rather keep it as it is: moving it costs 1,250 tokens and gains nothing. " * 8,
    "Run `make check` in /srv/app, then look at https://example.org/x?y=1. " * 4,
    "```python\nfor _ in range(10):\n    print('kept')\n```\n" * 5,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tight:
    """A plan, its settings, and what its window takes of all it has to send."""

    plan: Plan
    settings: tuple[tuple[str, object], ...]
    part: float


def _talkative(plan: Plan, random: Random) -> Plan:
    """The same plan with more to say, and with turns that only say something."""
    steps: list[Step] = []
    for step in plan.steps:
        attached = step.attach[: random.randrange(1 + len(step.attach))]
        steps.append(replace(step, attach=attached, reply=random.choice((step.reply, *ANSWERED))))
        for _ in range(random.randrange(6)):
            typed = random.choice((*ACKNOWLEDGED, *ASKED))
            steps.append(Step(typed=(typed,), reply=random.choice(ANSWERED)))
    return replace(plan, steps=tuple(steps))


def _settings(random: Random) -> tuple[tuple[str, object], ...]:
    history = random.choice(HISTORIES)
    shown = random.choice((None, 1, 2, 3)) if history != "full" else None
    return (("reserve", 0), ("history", history), ("history_turns", shown))


@st.composite
def tight_plans(draw: st.DrawFn, *, models: bool = True, layout: str | None = None, turns: int = 5) -> Tight:
    """Any conversation in a window that it may outgrow."""
    plan = draw(plans(layout=layout, models=models, turns=turns))
    random = draw(st.randoms(use_true_random=False) | st.randoms(use_true_random=True))
    return Tight(plan=_talkative(plan, random), settings=_settings(random), part=random.choice(PARTS))


@st.composite
def tight_stored_conversations(
    draw: st.DrawFn, *, tree: bool = True, layout: str | None = None, turns: int = 4, auto: bool = True
) -> Kept:
    """Any conversation that lasts in a window it may outgrow, compacted and undone by hand as well."""
    kept = draw(stored_conversation_plans(tree=tree, layout=layout, turns=turns, auto=auto))
    random = draw(st.randoms(use_true_random=False) | st.randoms(use_true_random=True))
    moves: list[Move] = []
    for move in kept.moves:
        moves.append(_with_text(move, random))
        if move.deed is Deed.REPLY:
            for _ in range(random.randrange(3)):
                moves.append(Move(step=Step(typed=(random.choice((*ACKNOWLEDGED, *ASKED)),))))
                moves.append(Move(deed=Deed.REPLY, text=random.choice(ANSWERED)))
            deeds = (Deed.COMPACT, Deed.COMPACT, Deed.UNDO)
            moves += [Move(deed=random.choice(deeds), pick=random.randrange(99)) for _ in range(random.randrange(3))]
    reopened = tuple(random.randrange(2) == 0 for _ in moves)
    window = ("window", random.choice(WINDOWS))
    return replace(kept, moves=tuple(moves), reopened=reopened, settings=(window, *_settings(random)))


def _with_text(move: Move, random: Random) -> Move:
    return replace(move, text=random.choice((move.text, *ANSWERED))) if move.deed is Deed.REPLY else move


class TightPlayer(Player):
    """Plays a plan until it cannot go on: the window is too small for what may not shrink.

    Nor does it go on after a folder or a tag that does not fit: which of its notes are sent then is told elsewhere.
    """

    def __init__(self, tight: Tight, folder: Path, *, window: int, **settings: object) -> None:
        given = {**dict(tight.settings), "window": window, **settings}
        super().__init__(tight.plan, folder, settings=given)
        self.window = window
        self.failure: ContextBudgetExceededError | None = None

    def walk(self) -> Iterator[Seen]:
        """Each turn as it is asked, before it is answered."""
        before = None
        for step in self._plan.steps:
            items, drop = self._items(step), self._named(step.drop)
            expected = self._truth.ask(self._asked(step, items, drop))
            try:
                turn = self.ask(step, items, drop)
            except ContextBudgetExceededError as error:
                self.failure = error
                return
            if any(segment.kind in ("folder", "tag") for segment in turn.envelope.segments(LayerId.L3)):
                return
            yield Seen(turn=turn, before=before, expected=expected)
            before = turn.envelope
            if step.reply is not None:
                self.chat.reply(step.reply)
            self._truth.reply(expected, step.reply or "")


@contextmanager
def tight_player(tight: Tight, **settings: object) -> Iterator[TightPlayer]:
    """A player for a plan, while its vault stands, in a window that is too small for it."""
    with TemporaryDirectory() as roomy, TemporaryDirectory() as folder:
        first = TightPlayer(tight, Path(roomy), window=WINDOW)
        largest = max(seen.turn.tokens.total for seen in first.walk())
        yield TightPlayer(tight, Path(folder), window=max(SMALLEST, int(tight.part * largest)), **settings)


class TightLasting(Lasting):
    """Plays moves into a store. ``came_of`` is what each move gave: a turn, that it did not fit, or nothing."""

    def __init__(
        self, kept: Kept, folder: Path, open_store: Callable[[], Store], *, summarizer: Summarizer | None = None
    ) -> None:
        super().__init__(kept, folder, open_store, summarizer=summarizer)
        self.came_of: list[Turn | str] = []

    def move(self, move: Move) -> None:
        asked = len(self.turns)
        if move.step is None and move.deed is not Deed.SETTINGS and not self.stored.branches():
            return
        try:
            super().move(move)
        except ContextBudgetExceededError as error:
            self.came_of.append(error.message)
        self.came_of += self.turns[asked:]


# Settings under which short talk is worth a summary.
EAGER = {"summary": {"writes": 60, "exact": 60, "turns": 1, "item": 400}}
GOOD = "They agreed to keep it as it is."


class ScriptedTurn:
    """A summariser that always says the same, and remembers what it was asked."""

    def __init__(self, answer: str | None = GOOD) -> None:
        self._answer = answer
        self.turn_request: list[Sequence[Message]] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.turn_request.append(messages)
        assert max_tokens > 0
        if self._answer is None:
            raise RuntimeError("the model is out for lunch")
        return self._answer
