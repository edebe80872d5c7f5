"""Pending commands: the later of two contradictory commands applies, with a warning."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from lamella.conversation.commands import (
    NO_PENDING_COMMANDS,
    build_pending_commands,
    changes_nothing,
    merge_pending_into_request,
    merge_requests,
    overridden_command_warnings,
)
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.prompt.state import PromptState

NAMES = ("a.md", "b.md")


def note(name: str, text: str = "text", via: str | None = None) -> Artifact:
    return make_artifact(ArtifactKind.NOTE, text=text, source=ArtifactSource(path=name, via=via))


def does(asked: TurnRequest) -> tuple[object, ...]:
    return [one.id for one in asked.pending_attachments], asked.detach, asked.drop, asked.pin, asked.unpin


def join(*asked: TurnRequest) -> TurnRequest:
    joined = NO_PENDING_COMMANDS
    for one in asked:
        joined = merge_requests(joined, one)
    return joined


ATTACH, DETACH = TurnRequest(text="", pending_attachments=(note("a.md"),)), TurnRequest(text="", detach=("a.md",))
DROP, PIN, UNPIN = (
    TurnRequest(text="", drop=("a.md",)),
    TurnRequest(text="", pin=("a.md",)),
    TurnRequest(text="", unpin=("a.md",)),
)


def test_attach_cancels_detach_and_drop() -> None:
    assert does(join(DETACH, ATTACH)) == (["a.md"], (), (), (), ())
    assert does(join(DROP, ATTACH)) == (["a.md"], (), (), (), ())


def test_detach_and_drop_cancel_attach_and_pin() -> None:
    assert does(join(ATTACH, DETACH)) == ([], ("a.md",), (), (), ())
    assert does(join(PIN, DROP)) == ([], (), ("a.md",), (), ())
    assert does(join(DETACH, DROP)) == ([], (), ("a.md",), (), ())
    assert does(join(DROP, DETACH)) == ([], ("a.md",), (), (), ())


def test_pin_cancels_drop_detach_and_unpin() -> None:
    assert does(join(DROP, PIN)) == does(join(DETACH, PIN)) == does(join(UNPIN, PIN)) == ([], (), (), ("a.md",), ())
    assert does(join(PIN, UNPIN)) == ([], (), (), (), ("a.md",))


def test_pin_of_pending_attachment_sets_its_policy() -> None:
    assert [one.policy for one in join(ATTACH, PIN).pending_attachments] == [AttachmentPolicy.PIN]
    assert [one.policy for one in join(ATTACH, PIN, UNPIN).pending_attachments] == [AttachmentPolicy.FOLLOW]
    assert does(join(ATTACH, PIN)) == (["a.md"], (), (), (), ())


def test_folder_is_cancelled_with_its_notes() -> None:
    pending = TurnRequest(
        text="",
        pending_attachments=(note("docs/a.md", via="folder:docs"), note("docs/b.md", via="folder:docs"), note("c")),
    )
    assert does(merge_requests(pending, TurnRequest(text=""), cancelled=("docs",)))[0] == ["c"]


def test_cancelled_command_warns() -> None:
    pending = join(ATTACH, TurnRequest(text="", pin=("b.md",), drop=("sha256:01",)))
    later = TurnRequest(text="", unpin=("b.md",), detach=("sha256:01",))
    joined = merge_requests(pending, later, cancelled=("a.md",))
    assert list(overridden_command_warnings(pending, joined, later, names={"sha256:01": "map.png"})) == [
        "a.md is no longer attached to the next turn.",
        "map.png will not be dropped with the next turn.",
        "b.md will not be pinned with the next turn.",
    ]


def test_question_includes_pending_commands_and_warns_of_missing_pin() -> None:
    turn_request = merge_pending_into_request(
        join(ATTACH, TurnRequest(text="", pin=("gone",))), TurnRequest(text="Hm?"), PromptState(conversation="c")
    )
    assert (turn_request.text, does(turn_request)) == ("Hm?", (["a.md"], (), (), (), ()))
    assert turn_request.warnings == ("gone is no longer in the prompt, so it is neither pinned nor unpinned.",)


def test_pending_commands_have_token_counts() -> None:
    told = build_pending_commands(ATTACH, len, warnings=["x"])
    assert told.tokens["a.md"] > len("text")
    assert (bool(told), told.warnings, bool(build_pending_commands(NO_PENDING_COMMANDS, len))) == (True, ("x",), False)
    assert changes_nothing(NO_PENDING_COMMANDS)
    assert not changes_nothing(DROP)


def one_of(names: Iterable[str]) -> st.SearchStrategy[TurnRequest]:
    made = [
        make
        for name in names
        for make in (
            TurnRequest(text="", pending_attachments=(note(name),)),
            TurnRequest(text="", detach=(name,)),
            TurnRequest(text="", drop=(name,)),
            TurnRequest(text="", pin=(name,)),
            TurnRequest(text="", unpin=(name,)),
        )
    ]
    return st.sampled_from(made)


@given(st.lists(one_of(NAMES), max_size=8))
def test_merged_commands_never_contradict(given: list[TurnRequest]) -> None:
    joined = join(*given)
    attached = {one.id for one in joined.pending_attachments}
    for name in NAMES:
        where = [
            name in attached,
            name in joined.detach,
            name in joined.drop,
            name in joined.pin or name in joined.unpin,
        ]
        assert sum(where) <= 1 or (name in attached and name not in joined.detach + joined.drop)
        assert not (name in joined.pin and name in joined.unpin)
    if given:
        last = given[-1]
        done = {*does(join(last))[0], *last.detach, *last.drop, *last.pin, *last.unpin}  # type: ignore[misc]
        assert done <= {*attached, *joined.detach, *joined.drop, *joined.pin, *joined.unpin}
