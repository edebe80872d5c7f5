"""Talking: asking and replying, whatever keeps the conversation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from lamella.attach import Attachment, Tool, ToolResult
from lamella.core.log.receipt import Receipt
from lamella.core.messages.delta import Reply
from lamella.core.search.index import Found
from lamella.engine.answer import Answer
from lamella.engine.ask import Ask
from lamella.engine.proposal import Proposal
from lamella.engine.recalling import FOUND_AT_MOST
from lamella.engine.turn import TurnView
from lamella.errors import ArtifactError
from lamella.faces.library.checks import check_each, check_fields, check_parts, check_text, check_time
from lamella.wiring import read_answer

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A turn as a Python program gives it, unchecked."""

    text: str
    attach: Sequence[Attachment] = ()
    tools: Sequence[ToolResult] = ()
    tool_definitions: Sequence[Tool] | None = None
    system: str | Mapping[str, str] | None = None
    model: str | None = None
    drop: Sequence[str] = ()
    fold: bool = False


class Runs(Protocol):
    """What walks turns: in memory, or into a store."""

    def ask(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> Reply: ...

    def plan(self, *, to: float | None = None, at: datetime | None = None) -> Proposal: ...

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt: ...

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt: ...

    def receipts(self) -> Sequence[Receipt]: ...

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST) -> Sequence[Found]: ...


class Talk:
    """Ask gives what a model would be sent; reply records what it answered."""

    def __init__(self, runner: Runs, *, system: str | Mapping[str, str] | None) -> None:
        self._runner = runner
        self._system = {} if system is None else check_parts(system)

    def ask(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        tools: Sequence[ToolResult] = (),
        tool_definitions: Sequence[Tool] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        fold: bool = False,
        at: datetime | None = None,
    ) -> TurnView:
        """The next turn, built and checked. If it cannot be built, an error says why and nothing has changed."""
        asked = self._describe(
            Described(
                text=text,
                attach=attach,
                tools=tools,
                tool_definitions=tool_definitions,
                system=system,
                model=model,
                drop=drop,
                fold=fold,
            )
        )
        turn = self._runner.ask(asked, at=check_time(at))
        # From here on the conversation knows its system prompt, each branch its own.
        self._system = {}
        return turn

    def _describe(self, given: Described) -> Ask:
        """What a Python program asks, once its types are known to be right."""
        definitions = given.tool_definitions
        return Ask(
            text=check_text(given.text, "text"),
            attach=tuple(_make(one, one.attachment) for one in check_each(given.attach, "attach", Attachment)),
            results=tuple(_make(one, one.attachment) for one in check_each(given.tools, "tools", ToolResult)),
            system={**self._system, **(check_parts(given.system) if given.system is not None else {})},
            tools=None
            if definitions is None
            else tuple(_make(one, one.definition) for one in check_each(definitions, "tool_definitions", Tool)),
            model=None if given.model is None else check_text(given.model, "model", may_be_empty=False),
            drop=tuple(check_text(name, "drop") for name in check_each(given.drop, "drop", str)),
            fold=bool(given.fold),
        )

    def reply(self, answer: object, *, at: datetime | None = None) -> Reply:
        """What the model answered to the turn asked last: a text, or the object that a provider's SDK gave.

        From an SDK's object the text, the tool calls and the usage are taken, and the ledger is joined by them.
        """
        given = check_text(answer, "answer") if isinstance(answer, str) else read_answer(answer)
        return self._runner.reply(given, at=check_time(at))

    def plan(self, to: float | None = None) -> Proposal:
        """What compacting would take out and bring, down to a share of what fits. Nothing changes yet."""
        return self._runner.plan(to=to)

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; what it took out can be recalled, and all of it undone."""
        return self._runner.commit(planned, at=check_time(at))

    def compact(self, to: float | None = None, *, at: datetime | None = None) -> Receipt | None:
        """Plan and commit in one; none if there is nothing to gain."""
        planned = self.plan(to)
        return None if planned.receipt is None else self.commit(planned, at=at)

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it: the next turn is as if they had never been."""
        return self._runner.undo(receipt, at=check_time(at))

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force, oldest first."""
        return self._runner.receipts()

    def recall(self, query: str, limit: int = FOUND_AT_MOST) -> Sequence[Found]:
        """Messages, attachments and tool results that the prompt no longer holds in full, word for word, best first."""
        return self._runner.recall(check_text(query, "query"), limit=limit)


def _make(one: Attachment | ToolResult | Tool, make: Callable[[], _Made]) -> _Made:
    """What a value describes, once its fields are known to be of their types."""
    check_fields(one)
    try:
        return make()
    except RecursionError as error:
        raise ArtifactError(f"A {type(one).__name__} is nested too deep.", hint="Flatten what it holds.") from error
