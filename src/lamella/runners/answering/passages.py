"""Passages: what a search found becomes what is attached to a question, and a numbered list that answers cite.

They stand by source, then by place, whatever their rank, which the list tells: so the same passages are the same bytes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from lamella.attach import NotePassage
from lamella.core.artifacts.ids import path_id
from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.make import make_tool_result
from lamella.core.artifacts.model import FOUND, Artifact, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.events.reply import CitedSource
from lamella.core.prompt.state import State
from lamella.core.text.content import escape_line
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.job import Job
from lamella.errors import SourceMissingError
from lamella.holdings import NoteHit
from lamella.runners.answering.standalone import list_filters

SEARCH = "vault_search"
# How many passages an answer is made from, fewer in a window that is small, and which share of it they may take.
_MOST, _FEW = 8, 3
_SMALL = 16_000
_SHARE = 4
# About what a token has, in the languages that have the fewest.
_BYTES = 3
_NOTHING = "Nothing in the vault fits this question. Say so, and do not answer as if something there did."
_LIST = "Sources of this message by number; the one of rank 1 fits the question best:"

# A passage with its rank, from 1.
Ranked = tuple[int, NoteHit]


def check_vault(job: Job) -> NoteIndex:
    """The notes of a job's vault; an error where it has none."""
    if job.place.notes is None:
        raise SourceMissingError(
            "There is no vault to answer from.",
            hint=lambda door: f"Name a folder of notes with {door.option('vault')}, or choose the runner chat.",
        )
    return job.place.notes


async def find_passages(job: Job, question: str) -> Ask:
    """What the vault says of a question that waits; an error where there is nothing to search."""
    turn, notes = job.turn, check_vault(job)
    assert turn is not None, "the question is written down before anything is looked up for it"
    now = job.post.clock.now().astimezone()
    most = _FEW if job.chat.window <= _SMALL else _MOST
    hits = await job.post.workers.run(partial(_search, notes, question, now=now, most=most))
    found = fit_passages(hits, job.chat.window // _SHARE * _BYTES)
    whole = name_files(turn.envelope.prompt.attached)
    return attach_passages(Ask(text=""), found, question=question, state=job.chat.standing[0], whole=whole)


def _search(notes: NoteIndex, question: str, *, now: datetime, most: int) -> Sequence[NoteHit]:
    if not notes.refresh().files:
        raise SourceMissingError(
            "The vault has no notes to answer from.", hint="Name a folder that has some, or choose the runner chat."
        )
    hits = notes.search(question, limit=most, now=now, refresh=False) if question.strip() else ()
    # "What of #garden?" has words that nothing is found by, and asks for all that there is.
    if not hits and (where := " ".join(list_filters(question))):
        return notes.search(where, limit=most, now=now, refresh=False)
    return hits


def fit_passages(hits: Sequence[NoteHit], room: int) -> list[Ranked]:
    """The best passages that have room together, in bytes, as they stand; the best of all comes in any case."""
    taken: list[Ranked] = []
    for rank, hit in enumerate(hits, start=1):
        room -= len(hit.text.encode(errors="replace"))
        if room < 0 and taken:
            break
        taken.append((rank, hit))
    return sorted(taken, key=lambda one: (one[1].path, one[1].number))


def name_files(attached: Iterable[Artifact | Wanted]) -> frozenset[str]:
    """The ids of files that come whole, as they are attached."""
    files = (one for one in attached if KINDS[one.kind].id_rule is path_id)
    return frozenset(
        str(one.id if isinstance(one, Artifact) else path_id(Source(path=one.name), ""))
        for one in files
        if _has_name(one)
    )


def _has_name(one: Artifact | Wanted) -> bool:
    return isinstance(one, Artifact) or bool(one.name.strip("./"))


def attach_passages(asked: Ask, found: Sequence[Ranked], *, question: str, state: State, whole: frozenset[str]) -> Ask:
    """What is asked with these passages; one of a file that stands in full, or comes ``whole``, refers to that file."""
    attach: dict[str, Artifact] = {}
    sources: list[CitedSource] = []
    for _, hit in found:
        if hit.path in whole:
            sources.append(CitedSource(id=hit.path, place=hit.heading))
            continue
        stands = None if hit.path in (*asked.drop, *asked.detach) else _find_whole(hit, state)
        artifact = _make_passage(hit) if stands is None else stands
        attach.setdefault(artifact.id, artifact)
        span = None if stands is None else _find_span(hit, stands)
        sources.append(CitedSource(id=artifact.id, place=hit.heading, span=span))
    listed = make_tool_result(SEARCH, arguments={"question": question}, output=_list_sources(found, sources))
    return replace(
        asked,
        attach=(*asked.attach, *attach.values()),
        results=(*asked.results, listed),
        sources=tuple(sources),
    )


def _find_whole(hit: NoteHit, state: State) -> Artifact | None:
    """The file of a passage, if it stands in the request with the passage in it."""
    standing = state.standing.get(hit.path)
    if standing is None or not standing.in_full or hit.text not in standing.artifact.text:
        return None
    entry = state.library.get(hit.path)
    known = standing.artifact if entry is None else entry.artifact
    return replace(known, source=replace(known.source, via=FOUND)) if known.hash == standing.artifact.hash else None


def _find_span(hit: NoteHit, whole: Artifact) -> tuple[int, int] | None:
    start = whole.text.find(hit.text)
    return (start, start + len(hit.text)) if hit.text else None


def _make_passage(hit: NoteHit) -> Artifact:
    place = hit.id.removeprefix(hit.path).removeprefix("#")
    return NotePassage(path=hit.path, place=place, text=hit.text, title=hit.title).attachment()


def _list_sources(found: Sequence[Ranked], sources: Sequence[CitedSource]) -> str:
    """The list that the model is told: what stands under each number, and how well it fits."""
    if not found:
        return _NOTHING
    rows = [
        f"[^{number}] {escape_line(source.id)}{_tell_part(source)}, rank {rank}"
        for number, (source, (rank, _)) in enumerate(zip(sources, found, strict=True), start=1)
    ]
    return "\n".join((_LIST, *rows))


def _tell_part(source: CitedSource) -> str:
    """Where in a whole file a passage stands; the id of a passage says that itself."""
    place = source.place.replace(" > ", "#")
    return f", below {escape_line(place)}" if place and "#passage:" not in source.id else ""
