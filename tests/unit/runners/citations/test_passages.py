"""Passages: attached by source and place, with number and rank, and never twice."""

from lamella import Note
from lamella.attach import Folder, Image
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.log.turn import StoredCitation
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.ports import NoteHit
from lamella.runners.citations import attach_passages, select_passages_within, whole_file_ids
from lamella.wiring.adapters import open_prompt_builder
from lamella.wiring.services import read_services

PLAN = "# Plan\n\n## Beds\n\nBeans in the north.\n\n## Costs\n\nSeeds: 12.\n"


def hit(path: str, heading: str, text: str, number: int = 0) -> NoteHit:
    name = "#".join((path, *heading.split(" > "))) if heading else path
    return NoteHit(
        id=name,
        path=path,
        title=path,
        heading=heading,
        text=text,
        excerpt=text,
        score=1.0,
        why="",
        passage_index=number,
    )


COSTS, BEDS = hit("plan.md", "Plan > Costs", "Seeds: 12.", 1), hit("plan.md", "Plan > Beds", "Beans in the north.", 0)
BEES = hit("bees.md", "", "The hive stands below the lime tree.")
EMPTY = PromptState(conversation="x")


def knowing(*notes: Note, layout: str = "in_place", **ask: object) -> PromptState:
    """The state after a turn that attached these."""
    dialogue = open_prompt_builder(read_services({"layout": layout}), conversation_key="x")
    dialogue.ask(TurnRequest(text="Read.", attach=tuple(note.to_artifact() for note in notes), **ask))  # type: ignore[arg-type]
    dialogue.reply("Read.")
    return dialogue.current_state[0]


def attach(
    *hits: NoteHit, state: PromptState = EMPTY, asked: TurnRequest | None = None, whole: frozenset[str] = frozenset()
) -> TurnRequest:
    given = asked or TurnRequest(text="Well?")
    return attach_passages(
        given, select_passages_within(hits, 10_000), question="Well?", state=state, whole_file_ids=whole
    )


def artifacts(asked: TurnRequest) -> list[Artifact]:
    return [one for one in asked.attach if isinstance(one, Artifact)]


def test_passages_are_grouped_by_source_and_ranked() -> None:
    turn_request = attach(COSTS, BEES, BEDS)
    assert [(one.id, one.kind) for one in artifacts(turn_request)] == [
        ("bees.md#passage:~0", ArtifactKind.PASSAGE),
        ("plan.md#passage:Plan#Beds", ArtifactKind.PASSAGE),
        ("plan.md#passage:Plan#Costs", ArtifactKind.PASSAGE),
    ]
    (told,) = turn_request.results
    assert (told.source.tool, told.source.arguments) == ("vault_search", '{"question":"Well?"}')
    assert told.text.splitlines()[1:] == [
        "[^1] bees.md#passage:~0, rank 2",
        "[^2] plan.md#passage:Plan#Beds, rank 3",
        "[^3] plan.md#passage:Plan#Costs, rank 1",
    ]
    assert [source.id for source in turn_request.citations] == [one.id for one in artifacts(turn_request)]
    assert turn_request.citations[1] == StoredCitation(id="plan.md#passage:Plan#Beds", place="Plan > Beds")


def test_same_passages_are_the_same_bytes_whatever_their_rank() -> None:
    one, other = attach(COSTS, BEES, BEDS), attach(BEES, BEDS, COSTS)
    assert one.attach == other.attach
    assert one.citations == other.citations


def test_passage_of_full_note_is_reference_to_note() -> None:
    turn_request = attach(COSTS, BEDS, state=knowing(Note(path="plan.md", text=PLAN)))
    (note,) = artifacts(turn_request)
    assert (note.id, note.kind, note.text) == ("plan.md", ArtifactKind.NOTE, PLAN)
    assert [PLAN[slice(*source.span)] for source in turn_request.citations if source.span] == [
        "Beans in the north.",
        "Seeds: 12.",
    ]
    assert turn_request.results[0].text.splitlines()[1] == "[^1] plan.md, below Plan#Beds, rank 2"


def test_passage_missing_in_sent_note_is_sent() -> None:
    state = knowing(Note(path="plan.md", text="# Plan\n\nNothing yet.\n"))
    assert [one.id for one in artifacts(attach(COSTS, state=state))] == ["plan.md#passage:Plan#Costs"]


def test_note_removed_with_question_is_not_referenced() -> None:
    state = knowing(Note(path="plan.md", text=PLAN))
    turn_request = attach(COSTS, state=state, asked=TurnRequest(text="Well?", drop=("plan.md",)))
    assert [one.id for one in artifacts(turn_request)] == ["plan.md#passage:Plan#Costs"]


def test_passage_of_attached_note_is_not_sent() -> None:
    wanted = (
        Note(path="./plan.md").to_artifact(),
        Folder(path="work").to_artifact(),
        Image(path="a.png").to_artifact(),
    )
    assert whole_file_ids((*wanted, Note(path="a.md", text="A").to_artifact())) == {"plan.md", "a.md"}
    turn_request = attach(COSTS, asked=TurnRequest(text="Well?", attach=wanted), whole=whole_file_ids(wanted))
    assert turn_request.attach == wanted
    assert turn_request.citations == (StoredCitation(id="plan.md", place="Plan > Costs"),)


def test_empty_retrieval_is_reported_to_model() -> None:
    turn_request = attach()
    assert (turn_request.attach, turn_request.citations) == ((), ())
    assert turn_request.results[0].text.startswith("Nothing in the vault fits this question.")


def test_passages_fit_limit_and_best_is_always_sent() -> None:
    long = replace(BEES, text="x" * 600)
    assert select_passages_within([long, COSTS, BEDS], 620) == [(1, long), (2, COSTS)]
    assert select_passages_within([long, COSTS], 10) == [(1, long)]
    assert select_passages_within([], 10) == []


def test_note_name_stays_on_its_line() -> None:
    turn_request = attach(hit("a\n[^1] b.md, rank 1", "x", "text"))
    assert len(turn_request.results[0].text.splitlines()) == 2
