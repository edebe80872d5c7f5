"""The working set: a sticky attachment is readable in its current text until it is detached."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.blocks import block_text, find_blocks
from tests.invariants.playing import Player
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import readable

from lamella import Turn
from lamella.core.artifacts.model import AttachmentPolicy
from lamella.core.text.content import normalize_line_ends

TRIED = settings.get_profile("invariants")


class Sitting(Player):
    """Plays a plan, and looks at the working set after each of its turns."""

    def sit(self) -> Iterator[Turn]:
        for step in self._plan.steps:
            yield self.ask(step, self._items(step), self._named(step.drop))
            if step.reply is not None:
                self.chat.reply(step.reply)

    def current(self, name: str) -> str | None:
        """The text of a note as the vault has it now; none where that is not what the model should read."""
        state, _ = self.chat.current_state
        known = state.unlisted_attachments.get(name) or state.library[name].artifact
        if not known.source.is_rereadable or known.policy is AttachmentPolicy.SNAPSHOT:
            return None
        return normalize_line_ends((self._vault / name).read_bytes().decode())


def check_readable(sitting: Sitting, turn: Turn) -> None:
    inlined = {artifact.id for artifact in turn.envelope.prompt.system.inlined}
    blocks = find_blocks(turn.messages)
    pictures = {f"sha256:{image.hash.removeprefix('sha256:')}" for m in turn.messages for image in m.images}
    for name in sitting.chat.working_set:
        if name.startswith("sha256:"):
            assert name in pictures
        elif name not in inlined and not name.startswith("unparsed:"):
            text = block_text(blocks[name])
            assert text is not None
            now = sitting.current(name)
            assert now is None or text == readable(now)


@TRIED
@given(plan=plans(sticky=True))
def test_sticky_attachment_is_readable_in_current_text(plan: Plan) -> None:
    with TemporaryDirectory() as folder:
        sitting = Sitting(replace(plan, attachments="sticky"), Path(folder))
        for turn in sitting.sit():
            check_readable(sitting, turn)


@TRIED
@given(plan=plans(sticky=True))
def test_detaching_moves_nothing_unless_outlines_are_carried_forward(plan: Plan) -> None:
    """A turn that detaches sends what it would have sent otherwise; only a picture leaves with it."""
    things = tuple(replace(one, kind="note") if one.kind == "image" else one for one in plan.things)
    steps = tuple(replace(step, touch=()) for step in plan.steps)
    detaching = replace(plan, attachments="sticky", carry_forward="full", image_notes=True, things=things, steps=steps)
    holding = replace(detaching, steps=tuple(replace(step, detach=()) for step in steps))
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        turns = Sitting(detaching, Path(one)).sit()
        for detached, held in zip(turns, Sitting(holding, Path(other)).sit(), strict=True):
            assert [m.to_dict() for m in detached.messages] == [m.to_dict() for m in held.messages]
