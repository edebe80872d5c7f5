"""Passages: attached by source and place, told by number and rank, and never a second time."""

from lamella import Note
from lamella.attach import Folder, Picture
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.log.events.reply import CitedSource
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.holdings import NoteHit
from lamella.runners.answering.passages import attach_passages, fit_passages, name_files
from lamella.wiring.services import read_services
from lamella.wiring.worlds import open_dialogue

PLAN = "# Plan\n\n## Beds\n\nBeans in the north.\n\n## Costs\n\nSeeds: 12.\n"


def hit(path: str, heading: str, text: str, number: int = 0) -> NoteHit:
    name = "#".join((path, *heading.split(" > "))) if heading else path
    return NoteHit(
        id=name, path=path, title=path, heading=heading, text=text, excerpt=text, score=1.0, why="", number=number
    )


COSTS, BEDS = hit("plan.md", "Plan > Costs", "Seeds: 12.", 1), hit("plan.md", "Plan > Beds", "Beans in the north.", 0)
BEES = hit("bees.md", "", "The hive stands below the lime tree.")
EMPTY = State(conversation="x")


def knowing(*notes: Note, layout: str = "in_place", **ask: object) -> State:
    """The state after a turn that attached these."""
    dialogue = open_dialogue(read_services({"layout": layout}), conversation="x")
    dialogue.ask(Ask(text="Read.", attach=tuple(note.attachment() for note in notes), **ask))  # type: ignore[arg-type]
    dialogue.reply("Read.")
    return dialogue.standing[0]


def attach(*hits: NoteHit, state: State = EMPTY, asked: Ask | None = None, whole: frozenset[str] = frozenset()) -> Ask:
    given = asked or Ask(text="Well?")
    return attach_passages(given, fit_passages(hits, 10_000), question="Well?", state=state, whole=whole)


def artifacts(asked: Ask) -> list[Artifact]:
    return [one for one in asked.attach if isinstance(one, Artifact)]


def test_passages_stand_by_source_and_place_and_their_rank_is_told() -> None:
    asked = attach(COSTS, BEES, BEDS)
    assert [(one.id, one.kind) for one in artifacts(asked)] == [
        ("bees.md#passage:~0", Kind.PASSAGE),
        ("plan.md#passage:Plan#Beds", Kind.PASSAGE),
        ("plan.md#passage:Plan#Costs", Kind.PASSAGE),
    ]
    (told,) = asked.results
    assert (told.source.tool, told.source.arguments) == ("vault_search", '{"question":"Well?"}')
    assert told.text.splitlines()[1:] == [
        "[^1] bees.md#passage:~0, rank 2",
        "[^2] plan.md#passage:Plan#Beds, rank 3",
        "[^3] plan.md#passage:Plan#Costs, rank 1",
    ]
    assert [source.id for source in asked.sources] == [one.id for one in artifacts(asked)]
    assert asked.sources[1] == CitedSource(id="plan.md#passage:Plan#Beds", place="Plan > Beds")


def test_the_same_passages_are_the_same_bytes_whatever_their_rank() -> None:
    one, other = attach(COSTS, BEES, BEDS), attach(BEES, BEDS, COSTS)
    assert one.attach == other.attach
    assert one.sources == other.sources


def test_a_passage_of_a_note_that_stands_in_full_refers_to_the_note() -> None:
    asked = attach(COSTS, BEDS, state=knowing(Note(path="plan.md", text=PLAN)))
    (note,) = artifacts(asked)
    assert (note.id, note.kind, note.text) == ("plan.md", Kind.NOTE, PLAN)
    assert [PLAN[slice(*source.span)] for source in asked.sources if source.span] == [
        "Beans in the north.",
        "Seeds: 12.",
    ]
    assert asked.results[0].text.splitlines()[1] == "[^1] plan.md, below Plan#Beds, rank 2"


def test_a_passage_that_its_note_did_not_have_when_it_was_sent_is_one_of_its_own() -> None:
    state = knowing(Note(path="plan.md", text="# Plan\n\nNothing yet.\n"))
    assert [one.id for one in artifacts(attach(COSTS, state=state))] == ["plan.md#passage:Plan#Costs"]


def test_a_note_that_leaves_with_the_question_is_not_referred_to() -> None:
    state = knowing(Note(path="plan.md", text=PLAN))
    asked = attach(COSTS, state=state, asked=Ask(text="Well?", drop=("plan.md",)))
    assert [one.id for one in artifacts(asked)] == ["plan.md#passage:Plan#Costs"]


def test_a_passage_of_a_note_that_comes_with_the_question_is_not_sent_beside_it() -> None:
    wanted = (Note(path="./plan.md").attachment(), Folder(path="work").attachment(), Picture(path="a.png").attachment())
    assert name_files((*wanted, Note(path="a.md", text="A").attachment())) == {"plan.md", "a.md"}
    asked = attach(COSTS, asked=Ask(text="Well?", attach=wanted), whole=name_files(wanted))
    assert asked.attach == wanted
    assert asked.sources == (CitedSource(id="plan.md", place="Plan > Costs"),)


def test_where_nothing_is_found_the_model_is_told_so() -> None:
    asked = attach()
    assert (asked.attach, asked.sources) == ((), ())
    assert asked.results[0].text.startswith("Nothing in the vault fits this question.")


def test_passages_take_no_more_room_than_there_is_and_the_best_comes_in_any_case() -> None:
    long = replace(BEES, text="x" * 600)
    assert fit_passages([long, COSTS, BEDS], 620) == [(1, long), (2, COSTS)]
    assert fit_passages([long, COSTS], 10) == [(1, long)]
    assert fit_passages([], 10) == []


def test_no_name_of_a_note_breaks_out_of_its_line() -> None:
    asked = attach(hit("a\n[^1] b.md, rank 1", "x", "text"))
    assert len(asked.results[0].text.splitlines()) == 2
