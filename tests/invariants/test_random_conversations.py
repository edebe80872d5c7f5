"""Random conversations never reach a dead end, no compaction loses anything for good, and no placeholder names a tool.

They mix what conversations have: pins, pictures, notes, selections, tool rounds, results, rules, history modes, undo,
compactions by hand, long and short messages, and replies larger than the window. A question may be refused only for
what the user typed or pinned, or for text that cannot be read again.
"""

import re
from collections.abc import Iterator
from random import Random

import pytest
from tests.invariants.items import png

from lamella import ContextBudgetExceededError, Conversation, Image, Note, Selection, ToolResult, Turn
from lamella.errors import InvalidOperationError
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput

FEW, MANY, BLOCK = 60, 2_000, 20
SHORT = "And why?"
_WORDS = (
    *(
        "harbour",
        "ferry",
        "Tuesday",
        "boats",
        "never",
        "always",
        "invoice",
        "K-37",
        "12,500",
        "Marta",
        "kapal",
        "selalu",
    ),
    *("Hafen", "immer", "今後は", "毎回", "the", "and", "of", "is", "a", "in", "we", "I"),
)


def write(random: Random, tokens: int) -> str:
    words = [random.choice(_WORDS) for _ in range(max(tokens, 1))]
    return " ".join(word + random.choice((" ", " ", " ", ". ", ".\n", ", ")) for word in words).strip()


class _Talk:
    """One random conversation, and how many tokens of it may not be removed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.window = random.choice((600, 900, 1_500, 4_000, 12_000))
        self.chat = Conversation(
            system=write(random, random.choice((0, 5, 40))),
            layout=random.choice(("library", "in_place", "auto")),
            history=random.choice(("full", "full", "full", "window", "strip")),
            attachments=random.choice(("turn", "sticky")),
            window=self.window,
            reserve=0,
            # Every third conversation also checks that each change of its prefix has a recorded reason.
            keep_ledger=seed % 3 == 0,
        )
        # Text that no compaction may remove: pins, selections and rules.
        self.fixed = 0
        self.refused: list[str] = []

    def play(self) -> None:
        for _ in range(self.random.randrange(4, 16)):
            self.take_turn()
            self.check_receipts()
            self.ask_briefly()
        self.ask_briefly()

    def take_turn(self) -> None:
        random, chat = self.random, self.chat
        typed = random.choice((1, 8, 30, 30, 120, self.window // 3))
        attached: list[Note | Image | Selection] = []
        results: list[ToolResult] = []
        what = random.choice(("", "", "note", "notes", "picture", "selection", "result", "rule"))
        if what in ("note", "notes"):
            count = 1 if what == "note" else random.randrange(2, 12)
            attached = [
                Note(
                    path=f"notes/{random.randrange(8)}-{number}.md", text=write(random, random.choice((10, 200, 4_000)))
                )
                for number in range(count)
            ]
        elif what == "picture":
            attached = [Image(data=png(random.randrange(1, 9), 2), title=f"picture {random.randrange(5)}")]
        elif what == "selection" and self.fixed < self.window // 12:
            attached = [Selection(text=write(random, 15), path="somewhere.md")]
            self.fixed += 60
        elif what == "result":
            results = [
                ToolResult(
                    name="look", arguments={"at": random.random()}, output=write(random, random.choice((5, 3_000)))
                )
            ]
        elif what == "rule" and self.fixed < self.window // 12:
            chat.add_rule(write(random, 6).replace("\n", " "))
            self.fixed += 20
        try:
            turn = chat.ask(write(random, typed), attach=attached, results=results)
        except ContextBudgetExceededError as error:
            self.check_refusal(error, typed)
            return
        assert turn.tokens.total <= 0.95 * self.window
        # The model has no tools, so nothing may tell it to use one. The user never writes the word.
        assert not any("recall" in message.text for message in turn.messages)
        self.check_prefix_change(turn)
        if random.random() < 0.3 and not self.run_rounds():
            return
        chat.reply(write(random, random.choice((1, 10, 40, 150, 600, 2 * self.window))))
        self.change_something()

    def run_rounds(self) -> bool:
        """Call tools some times; return whether the turn can go on."""
        for number in range(self.random.randrange(1, 6)):
            name = f"c{number}-{self.random.random()}"
            self.chat.reply(
                ModelReply(text="", calls=(ToolCall(id=name, name="look", arguments="{}"),), stop=StopReason.TOOL_CALLS)
            )
            output = write(self.random, self.random.choice((3, 100, 3_000)))
            try:
                turn = self.chat.submit_tool_outputs([ToolOutput(call=name, output=output)])
            except ContextBudgetExceededError as error:
                self.check_refusal(error, 0)
                return False
            assert turn.tokens.total <= 0.95 * self.window
        return True

    def change_something(self) -> None:
        random, chat = self.random, self.chat
        action = random.choice(("", "", "", "pin", "compact", "undo", "history"))
        if action == "pin" and self.fixed < self.window // 12:
            turn = chat.turns()[-1]
            if self.tokens_of(turn) < self.window // 20:
                chat.pin(turn.message.id)
                self.fixed += self.tokens_of(turn)
        elif action == "compact":
            chat.compact(random.choice((0.05, 0.3, 0.6)))
        elif action == "undo" and chat.receipts():
            chat.undo()
        elif action == "history":
            chat.set(history=random.choice(("full", "window", "strip")))

    def tokens_of(self, turn: object) -> int:
        reply = getattr(turn, "reply", None)
        # A word here is at most five tokens.
        return len(f"{turn.message.text} {reply.text if reply else ''}".split()) * 5  # type: ignore[attr-defined]

    def ask_briefly(self) -> None:
        try:
            turn = self.chat.ask(SHORT)
        except ContextBudgetExceededError as error:
            self.check_refusal(error, 3)
            return
        assert turn.tokens.total <= 0.95 * self.window
        self.check_prefix_change(turn)
        self.chat.reply("Because.")

    def check_prefix_change(self, turn: Turn) -> None:
        change = turn.prefix_change
        assert change is None or change.triggered, f"nothing explains {change.prefix_change}"

    def check_refusal(self, error: ContextBudgetExceededError, typed: int) -> None:
        """A refusal is right only for what the user typed, selected and set, and only if that is much of the window."""
        given = ("what was typed now", "the system prompt's")
        sizes = [
            int(found[1].replace(",", ""))
            for part in error.protected
            if (part.startswith(given) or "#selection:" in part)
            and (found := re.search(r"\(([\d,]+) tokens\)", part)) is not None
        ]
        assert sum(sizes) >= 0.45 * self.window, (typed, self.window, error.protected)

    def check_receipts(self) -> None:
        for receipt in self.chat.receipts():
            assert receipt.certificate is None or receipt.certificate.lost_count == 0


def play_conversations(seeds: Iterator[int]) -> None:
    for seed in seeds:
        try:
            _Talk(seed).play()
        except InvalidOperationError as error:  # pragma: no cover - shows the seed
            raise AssertionError(f"seed {seed}: {error}") from error
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


STARTS = [
    *range(0, FEW, BLOCK),
    *(pytest.param(start, marks=pytest.mark.long) for start in range(FEW, FEW + MANY, BLOCK)),
]


@pytest.mark.parametrize("start", STARTS)
def test_random_conversation_never_reaches_a_dead_end(start: int) -> None:
    play_conversations(iter(range(start, start + BLOCK)))
