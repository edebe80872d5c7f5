"""Exceptions of the invariants: requests of other conversations do not count, and a handle may outlive its question."""

from tests.conftest import Watched

from lamella import Envelope, Selection, ToolResult
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.invariants import iter_violations
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace


def broken(envelope: Envelope, before: Envelope | None = None) -> list[str]:
    return [law.name for law, _ in iter_violations(envelope, before=None if before is None else before.prompt)]


def test_selection_of_other_conversation_is_not_missed(converse: type[Watched]) -> None:
    selected = [Selection(path="a.md", text="Word for word.")]
    there = converse(conversation_key="there", layout="in_place").ask("one", attach=selected).envelope
    here = converse(conversation_key="here", layout="in_place").ask("one").envelope
    assert "verbatim" not in broken(here, there)
    assert "verbatim" in broken(replace(here, prompt=replace(here.prompt, conversation_id="there")), there)


def test_handle_may_leave_its_turn_but_full_result_may_not(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", system="Be brief.")
    chat.ask("one", results=[ToolResult(name="search", output="found")])
    chat.reply("So it is.")
    envelope = chat.ask("two").envelope
    strip = envelope.layer(LayerId.L4)
    tool, *messages = strip.segments

    def envelope_with(form: ArtifactForm) -> Envelope:
        """The request with the result in the reply's message."""
        moved = replace(tool, form=form, place=messages[-1].place)
        forged = replace(strip, segments=(moved, *messages))
        return replace(envelope, layers=tuple(forged if one is strip else one for one in envelope.layers))

    assert broken(envelope_with(ArtifactForm.FULL)) == ["tool_pairs"]
    assert broken(envelope_with(ArtifactForm.HANDLE)) == []
