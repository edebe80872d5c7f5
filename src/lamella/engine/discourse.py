"""Discourse: asking and replying as a Python program does it, whatever keeps the conversation."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from lamella.attach import Attachment, Tool, ToolResult
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Terms
from lamella.core.messages.delta import Reply, ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.state import State
from lamella.core.search.finding import Found
from lamella.core.values import replace
from lamella.engine.checks import check_each, check_fields, check_parts, check_text, check_time
from lamella.engine.cold import ColdCache
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.library import LibraryRow, list_library
from lamella.engine.dialogue.proposal import EVERYTHING_SAID, PlanRange, Proposal
from lamella.engine.dialogue.reading.commands import EVERYTHING
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.dialogue.reading.working_set import list_working_set
from lamella.engine.dialogue.reasons import Reason
from lamella.engine.dialogue.recalling import FOUND_AT_MOST, fit_answer, make_compact_tool, make_recall_tool
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.sending.tools import SECONDS, Toolbox, ToolFunction
from lamella.engine.stages.discourse import StagedDiscourse, StagedWalker
from lamella.errors import ArtifactError, CallError
from lamella.holdings import Rule

_Made = TypeVar("_Made")


class DiscourseLike(StagedWalker, Protocol):
    """What walks turns: in memory, or into a store."""

    @property
    def calls(self) -> Sequence[ToolCall]: ...

    def ask(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> Reply: ...

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView: ...

    def read_answer(self, answer: object) -> Answer: ...

    def plan(
        self, within: PlanRange = EVERYTHING_SAID, *, to: float | None = None, at: datetime | None = None
    ) -> Proposal: ...

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt: ...

    def make_room(self, *, at: datetime | None = None) -> Receipt | None: ...

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt: ...

    def receipts(self) -> Sequence[Receipt]: ...

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST) -> Sequence[Found]: ...

    def why(self, name: str) -> Reason: ...

    def rules(self) -> Sequence[Rule]: ...

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule: ...

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule: ...

    @property
    def standing(self) -> tuple[State, Terms]: ...

    def cold(self, *, at: datetime | None = None) -> ColdCache | None: ...

    def command(self, asked: Ask, *, at: datetime | None = None) -> Commands: ...

    @property
    def commands(self) -> Commands: ...


class Discourse(StagedDiscourse):
    """Ask gives what a model would be sent; reply records what it answered; give hands back what its tools gave."""

    def __init__(self, walker: DiscourseLike, *, system: str | Mapping[str, str] | None) -> None:
        self._walker = self._staged = walker
        self._system = {} if system is None else check_parts(system)
        # Whoever gave a function means it for as long as the model may call it, which is longer than one turn.
        self._toolbox: Toolbox | None = None

    def ask(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        at: datetime | None = None,
    ) -> TurnView:
        """The next turn, built and checked. If it cannot be built, an error says why and nothing has changed.

        ``tools`` are what the model may call from now on, ``results`` what already came back and rides as text. In a
        ``verbatim`` text braces name nothing: it is sent as it is.
        """
        asked = self._describe(
            text,
            attach=attach,
            results=results,
            tools=None if tools is None else self._equip(tools).definitions,
            system=system,
            model=model,
            drop=drop,
            detach=detach,
            pin=pin,
            unpin=unpin,
            fold=fold,
            verbatim=verbatim,
        )
        turn = self._walker.ask(asked, at=check_time(at))
        # From here on the conversation knows its system prompt, each branch its own.
        self._system = {}
        return turn

    def preview(
        self,
        text: str = "",
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        at: datetime | None = None,
    ) -> TurnView:
        """What ``ask`` would give, with its tokens, cache and cost, if no summary is asked for. Nothing changes."""
        asked = self._describe(
            text,
            attach=attach,
            results=results,
            tools=None if tools is None else make_toolbox(tools).definitions,
            system=system,
            model=model,
            drop=drop,
            detach=detach,
            pin=pin,
            unpin=unpin,
            fold=fold,
            verbatim=verbatim,
        )
        return self._walker.preview(asked, at=check_time(at))

    def _describe(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: tuple[ToolDefinition, ...] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
    ) -> Ask:
        """What a Python program asks, once its types are known to be right."""
        given = {"drop": drop, "detach": detach, "pin": pin, "unpin": unpin}
        named = {
            what: tuple([check_text(name, what) for name in check_each(names, what, str)])
            for what, names in given.items()
            if names != ()
        }
        return Ask(
            text=check_text(text, "text"),
            attach=tuple([_make(one, one.attachment) for one in check_each(attach, "attach", Attachment)]),
            results=tuple([_make(one, one.attachment) for one in check_each(results, "results", ToolResult)]),
            system={**self._system, **(check_parts(system) if system is not None else {})},
            tools=tools,
            model=None if model is None else self._name_model(model),
            drop=named.get("drop", ()),
            detach=named.get("detach", ()),
            pin=named.get("pin", ()),
            unpin=named.get("unpin", ()),
            fold=bool(fold),
            verbatim=bool(verbatim),
        )

    def _name_model(self, model: str) -> str:
        """A model that the program names."""
        return check_text(model, "model", may_be_empty=False)

    def _equip(self, tools: Sequence[Tool | ToolFunction] | None, *, seconds: float = SECONDS) -> Toolbox:
        """These tools, and all that were given before; of two with one name the newer."""
        self._toolbox = make_toolbox(() if tools is None else tools, seconds=seconds, before=self._toolbox)
        return self._toolbox

    def reply(self, answer: object, *, at: datetime | None = None) -> Reply:
        """What the model answered to the turn asked last: a text, a ``Reply``, or the object that an SDK gave.

        From an SDK's object the text, the tool calls and the usage are taken, and the ledger is joined by them. With
        calls in it the turn stays open until ``give`` hands back what they gave.
        """
        if isinstance(answer, Reply):
            return self._walker.reply(Answer(reply=answer), at=check_time(at))
        given = check_text(answer, "answer") if isinstance(answer, str) else self._walker.read_answer(answer)
        return self._walker.reply(given, at=check_time(at))

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of the last answer that wait for what they give."""
        return self._walker.calls

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView:
        """Hand back what the calls of the last answer gave, one output for each; the same turn, to be sent on."""
        given = check_each(outputs, "outputs", ToolOutput)
        for output in given:
            check_text(output.call, "call")
            check_text(output.output, "output")
        # An id that a result has from elsewhere is not its id here.
        return self._walker.give([replace(output, id=None) for output in given], at=check_time(at))

    def plan(self, to: float | None = None, *, since: str | None = None, until: str | None = None) -> Proposal:
        """What compacting would take out and bring, down to a share of what fits. Nothing changes yet.

        With ``since`` only from the turn of that message on, and every byte before it stays; with ``until`` only up to
        the turn of that message. Messages are named by their ids, or as ``turn:3`` and ``reply:3``.
        """
        names = [None if one is None else check_text(one, "message", may_be_empty=False) for one in (since, until)]
        return self._walker.plan(PlanRange(*names), to=to)

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; what it took out can be recalled, and all of it undone."""
        return self._walker.commit(planned, at=check_time(at))

    def compact(
        self,
        to: float | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        at: datetime | None = None,
    ) -> Receipt | None:
        """Plan and commit in one; none if there is nothing to gain."""
        planned = self.plan(to, since=since, until=until)
        return None if planned.receipt is None else self.commit(planned, at=at)

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it: the next turn is as if they had never been."""
        return self._walker.undo(receipt, at=check_time(at))

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force, oldest first."""
        return self._walker.receipts()

    def recall(self, query: str, limit: int = FOUND_AT_MOST) -> Sequence[Found]:
        """Messages, attachments and tool results that the prompt no longer holds in full, word for word, best first."""
        return self._walker.recall(check_text(query, "query"), limit=limit)

    def why(self, name: str) -> Reason:
        """Why an artifact or a message is in the next prompt, or is not, and what would bring it in."""
        return self._walker.why(check_text(name, "name", may_be_empty=False))

    def rules(self) -> Sequence[Rule]:
        """The user's standing wishes that hold, found in what was typed or added by hand, the newest last."""
        return self._walker.rules()

    def add_rule(self, text: str, *, at: datetime | None = None) -> Rule:
        """Have something done from the next turn on: it stands in every prompt, whatever is compacted."""
        return self._walker.add_rule(check_text(text, "text"), at=check_time(at))

    def remove_rule(self, name: str, *, at: datetime | None = None) -> Rule:
        """Have a rule hold no more from the next turn on, by its id, its number in ``rules()`` or its words."""
        return self._walker.remove_rule(check_text(name, "name", may_be_empty=False), at=check_time(at))

    @property
    def working_set(self) -> Sequence[str]:
        """The ids of what the model can read in the next turn in its current text, whatever that attaches."""
        return tuple(artifact.id for artifact in list_working_set(*self._walker.standing))

    def attach(self, *attachments: Attachment, question: str = "", at: datetime | None = None) -> Commands:
        """Attach something to the next turn, read now; what waits for that turn after it.

        Of folders and tags that do not fit, the notes come first that ``question`` asks for, else the last question.
        """
        asked = self._describe(question, attach=attachments)
        return self._walker.command(replace(asked, system={}), at=check_time(at))

    def detach(self, *names: str, at: datetime | None = None) -> Commands:
        """Take something out of the working set from the next turn on, or everything; or do not attach it after all."""
        asked = Ask(text="", detach=_check_names(names, "detach") if names else (EVERYTHING,))
        return self._walker.command(asked, at=check_time(at))

    def drop(self, *names: str, at: datetime | None = None) -> Commands:
        """Take something out of the prompt from the next turn on; attaching it again takes that back until then."""
        return self._walker.command(Ask(text="", drop=_check_names(names, "drop")), at=check_time(at))

    def pin(self, *names: str, at: datetime | None = None) -> Commands:
        """Keep an artifact or a message whole from the next turn on."""
        return self._walker.command(Ask(text="", pin=_check_names(names, "pin")), at=check_time(at))

    def unpin(self, *names: str, at: datetime | None = None) -> Commands:
        """Let what is pinned be shortened again from the next turn on."""
        return self._walker.command(Ask(text="", unpin=_check_names(names, "unpin")), at=check_time(at))

    def refresh(self, *names: str, question: str = "", at: datetime | None = None) -> Commands:
        """Read what is attached again, or everything that is; what changed goes with the next turn.

        What cannot be read stays as it is, and is said. Of a folder or a tag that did not fit it is chosen anew.
        """
        named = _check_names(names, "refresh") if names else (EVERYTHING,)
        asked = Ask(text=check_text(question, "question"), refresh=named)
        return self._walker.command(asked, at=check_time(at))

    @property
    def commands(self) -> Commands:
        """What waits for the next turn."""
        return self._walker.commands

    def library(self, *, at: datetime | None = None) -> Sequence[LibraryRow]:
        """Everything attached so far: how it stands in the next request, and what detaching it would save there."""
        waits, moment = self.commands, check_time(at)
        leaving = {*waits.detach, *waits.drop}
        return list_library(
            lambda asked: self._walker.preview(asked, at=moment), self._walker.standing, leaving=leaving
        )

    def cold(self, *, at: datetime | None = None) -> ColdCache | None:
        """What the next message costs, as it is and folded, where the cache is about to lapse or has.

        None while it is warm, and where nobody knows when something was sent or how long the cache lasts. In a store
        the time is by default now; in memory there is no clock.
        """
        return self._walker.cold(at=check_time(at))

    @property
    def recall_tool(self) -> Tool:
        """The same for the model: a tool to give in ``tools``, by which it reads what left its prompt."""
        return make_recall_tool(self.recall, room=lambda: fit_answer(self._walker.standing[1].tool_output))

    @property
    def compact_tool(self) -> Tool:
        """Compacting for the model: a tool to give in ``tools``, by which it makes room for what it is about to do."""
        return make_compact_tool(self._walker.make_room)


def _check_names(names: Sequence[str], do: str) -> tuple[str, ...]:
    """Names that a command takes; it takes at least one. A blank one means nothing, least of all everything."""
    if not names:
        raise CallError(f"There is no name of what to {do}.", hint="Name an artifact by its id.")
    return tuple([check_text(name, do, may_be_empty=False) for name in check_each(names, do, str)])


def make_toolbox(
    tools: Sequence[Tool | ToolFunction], *, seconds: float = SECONDS, before: Toolbox | None = None
) -> Toolbox:
    """The tools of a turn, once they are known to be tools."""
    given = check_each(tools, "tools", object)
    for one in given:
        if isinstance(one, Tool):
            check_fields(one)
    return _refuse_depth(given, lambda: Toolbox(given, seconds=seconds, before=before))


def _make(one: Attachment | ToolResult, make: Callable[[], _Made]) -> _Made:
    """What a value describes, once its fields are known to be of their types."""
    check_fields(one)
    return _refuse_depth(one, make)


def _refuse_depth(one: object, make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except RecursionError as error:
        raise ArtifactError(f"A {type(one).__name__} is nested too deep.", hint="Flatten what it holds.") from error
