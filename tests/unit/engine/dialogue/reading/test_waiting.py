"""What waits for the next question: of two commands that say the opposite the later holds, and that is said."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.prompt.state import State
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.waiting import (
    NOTHING_WAITS,
    describe_waiting,
    does_nothing,
    join_asks,
    take_along,
    tell_contradictions,
)

NAMES = ("a.md", "b.md")


def note(name: str, text: str = "text", via: str | None = None) -> Artifact:
    return make_artifact(Kind.NOTE, text=text, source=Source(path=name, via=via))


def does(asked: Ask) -> tuple[object, ...]:
    return [one.id for one in asked.earlier], asked.detach, asked.drop, asked.pin, asked.unpin


def join(*asked: Ask) -> Ask:
    joined = NOTHING_WAITS
    for one in asked:
        joined = join_asks(joined, one)
    return joined


ATTACH, DETACH = Ask(text="", earlier=(note("a.md"),)), Ask(text="", detach=("a.md",))
DROP, PIN, UNPIN = Ask(text="", drop=("a.md",)), Ask(text="", pin=("a.md",)), Ask(text="", unpin=("a.md",))


def test_attaching_takes_a_detach_and_a_drop_back() -> None:
    assert does(join(DETACH, ATTACH)) == (["a.md"], (), (), (), ())
    assert does(join(DROP, ATTACH)) == (["a.md"], (), (), (), ())


def test_leaving_takes_an_attachment_and_a_pin_back() -> None:
    assert does(join(ATTACH, DETACH)) == ([], ("a.md",), (), (), ())
    assert does(join(PIN, DROP)) == ([], (), ("a.md",), (), ())
    assert does(join(DETACH, DROP)) == ([], (), ("a.md",), (), ())
    assert does(join(DROP, DETACH)) == ([], ("a.md",), (), (), ())


def test_pinning_takes_everything_back_that_would_let_it_go() -> None:
    assert does(join(DROP, PIN)) == does(join(DETACH, PIN)) == does(join(UNPIN, PIN)) == ([], (), (), ("a.md",), ())
    assert does(join(PIN, UNPIN)) == ([], (), (), (), ("a.md",))


def test_what_waits_to_be_attached_is_pinned_by_its_policy() -> None:
    assert [one.policy for one in join(ATTACH, PIN).earlier] == [Policy.PIN]
    assert [one.policy for one in join(ATTACH, PIN, UNPIN).earlier] == [Policy.FOLLOW]
    assert does(join(ATTACH, PIN)) == (["a.md"], (), (), (), ())


def test_a_folder_is_taken_back_with_all_that_came_with_it() -> None:
    waits = Ask(
        text="", earlier=(note("docs/a.md", via="folder:docs"), note("docs/b.md", via="folder:docs"), note("c"))
    )
    assert does(join_asks(waits, Ask(text=""), back=("docs",)))[0] == ["c"]


def test_what_is_taken_back_is_said() -> None:
    waits = join(ATTACH, Ask(text="", pin=("b.md",), drop=("sha256:01",)))
    later = Ask(text="", unpin=("b.md",), detach=("sha256:01",))
    joined = join_asks(waits, later, back=("a.md",))
    assert list(tell_contradictions(waits, joined, later, names={"sha256:01": "map.png"})) == [
        "a.md does not go with the next turn any more.",
        "map.png was to be dropped with the next turn; that is taken back.",
        "b.md was to be pinned with the next turn; that is taken back.",
    ]


def test_a_question_takes_along_what_waits_and_a_pin_of_what_is_gone_is_said() -> None:
    asked = take_along(join(ATTACH, Ask(text="", pin=("gone",))), Ask(text="Hm?"), State(conversation="c"))
    assert (asked.text, does(asked)) == ("Hm?", (["a.md"], (), (), (), ()))
    assert asked.warnings == ("gone is not there to be pinned or unpinned any more.",)


def test_what_waits_is_told_with_its_tokens() -> None:
    told = describe_waiting(ATTACH, len, said=["x"])
    assert told.tokens["a.md"] > len("text")
    assert (bool(told), told.said, bool(describe_waiting(NOTHING_WAITS, len))) == (True, ("x",), False)
    assert does_nothing(NOTHING_WAITS)
    assert not does_nothing(DROP)


def one_of(names: Iterable[str]) -> st.SearchStrategy[Ask]:
    made = [
        make
        for name in names
        for make in (
            Ask(text="", earlier=(note(name),)),
            Ask(text="", detach=(name,)),
            Ask(text="", drop=(name,)),
            Ask(text="", pin=(name,)),
            Ask(text="", unpin=(name,)),
        )
    ]
    return st.sampled_from(made)


@given(st.lists(one_of(NAMES), max_size=8))
def test_nothing_is_ever_to_be_done_and_undone_at_once(given: list[Ask]) -> None:
    joined = join(*given)
    attached = {one.id for one in joined.earlier}
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
