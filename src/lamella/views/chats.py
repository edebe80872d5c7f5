"""A conversation as it is read: what was said, and the branches on which it was."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict

from lamella.core.log.branch import read_rounds
from lamella.core.log.events.rounds import StoredRound
from lamella.core.log.nodes import Node, Told, name_attached
from lamella.core.log.receipt import Receipt
from lamella.core.messages.rounds import ToolRound
from lamella.views.receipts import view_receipt


class ReplyBody(TypedDict):
    """A reply, by the id of its message."""

    message: str
    at: str
    text: str


class SaidBody(ReplyBody):
    """A turn as it was said: the question, the ids of what came with it, and the reply if there is one."""

    attached: list[str]
    reply: ReplyBody | None


class CallBody(TypedDict):
    """A tool that the model called, and what came back; nothing while it waits for that."""

    name: str
    arguments: str
    output: str | None
    failed: bool


class RoundBody(TypedDict):
    """What the model said and called for before its answer."""

    text: str
    calls: list[CallBody]


class SourceBody(TypedDict):
    """What a number in a reply points to; nothing of its text where that was erased."""

    number: int
    id: str
    title: str
    path: str
    place: str
    text: str | None


class BranchBody(TypedDict):
    """A branch by its last message: how many turns it has, and the last of them."""

    branch: str
    active: bool
    turns: int
    last: SaidBody | None


class MarkShape(Protocol):
    """What has to be known of a compaction, or of an undo, to tell it."""

    @property
    def message(self) -> str: ...
    @property
    def receipt(self) -> Receipt | None: ...
    @property
    def undone(self) -> bool: ...
    @property
    def voided(self) -> tuple[str, ...]: ...


class SourceShape(Protocol):
    """What has to be known of a source to tell it."""

    @property
    def number(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def text(self) -> str | None: ...


def view_branch_said(
    path: Sequence[Told],
    contents: Mapping[str, bytes],
    *,
    marks: Sequence[MarkShape],
    sources: Sequence[Sequence[SourceShape]],
) -> dict[str, object]:
    """Everything that was said on a branch, with rounds of tools, sources, and where it was compacted."""
    turns = [
        {**view_said(told), "rounds": view_rounds(told, contents), "sources": view_sources(cited)}
        for told, cited in zip(path, sources, strict=True)
    ]
    return {"turns": turns, "compactions": [_view_mark(mark) for mark in marks]}


def _view_mark(mark: MarkShape) -> dict[str, object]:
    receipt = None if mark.receipt is None else view_receipt(mark.receipt)
    return {"message": mark.message, "receipt": receipt, "undone": mark.undone, "voided": list(mark.voided)}


def view_said(told: Told) -> SaidBody:
    """One turn as it was said."""
    message = told.message
    return SaidBody(
        message=message.id,
        at=message.at,
        text=message.text,
        attached=list(name_attached(message)),
        reply=None if told.reply is None else _view_reply(told.reply),
    )


def view_rounds(told: Told, contents: Mapping[str, bytes]) -> list[RoundBody]:
    """A turn's rounds of tools, one that still waits included; ``contents`` has what came back."""
    return [_view_round(one) for one in read_rounds(told, contents)]


def view_sources(sources: Sequence[SourceShape]) -> list[SourceBody]:
    """What the numbers in a reply point to."""
    return [
        SourceBody(number=one.number, id=one.id, title=one.title, path=one.path, place=one.place, text=one.text)
        for one in sources
    ]


def list_rounds(told: Told) -> Sequence[StoredRound]:
    """A turn's rounds of tools, answered or not; their ``hashes`` name what came back."""
    return told.open if told.reply is None else told.reply.rounds


def _view_round(made: ToolRound) -> RoundBody:
    given = {output.call: output for output in made.outputs}
    calls = [
        CallBody(
            name=call.name,
            arguments=call.arguments,
            output=given[call.id].output if call.id in given else None,
            failed=call.id in given and given[call.id].failed,
        )
        for call in made.calls
    ]
    return RoundBody(text=made.text, calls=calls)


def view_branch(head: str, turns: Sequence[Told], *, active: bool) -> BranchBody:
    """Enough of a branch to tell it from the others."""
    return BranchBody(branch=head, active=active, turns=len(turns), last=view_said(turns[-1]) if turns else None)


def _view_reply(node: Node) -> ReplyBody:
    return ReplyBody(message=node.id, at=node.at, text=node.text)
