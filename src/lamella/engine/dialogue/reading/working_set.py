"""The working set between two turns: what is in it, what a name means there, and what changed at its source."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from lamella.core.artifacts.kinds import KINDS, LATER_KIND
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.terms import Attachments, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.prompt.attached import drop_known, is_in_working_set
from lamella.core.prompt.layers.library import is_readable
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.moved import MovedFiles, find_place
from lamella.errors import BadInputError, SourceMissingError
from lamella.ports import Sources

# What leaves the prompt with a turn, what leaves the working set, and what is to be said of names that mean nothing.
Leaving = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
NOTHING_LEAVES: Leaving = ((), (), ())
_CHANGED = "{name} changed since it was last sent; its new text is sent now."
_DIFFERS = "{name} has another text here than was sent; attach it again to send that."
_REWORDED = "{name} changed on disk since it was selected, and stays as it was sent; attach it again to send that."
_STAYS = "{name} stays as it was sent last: {why}"


def list_working_set(state: State, terms: Terms) -> list[Artifact]:
    """What the model must be able to read in the next turn if that attaches nothing, in the order it was first seen."""
    turn = state.turns + int(state.waits)
    known = [entry.artifact for entry in state.library.values() if is_in_working_set(entry, terms, turn=turn)]
    return [*known, *state.apart.values()] if terms.attachments is Attachments.STICKY else known


def bring_back(turn: Turn, state: State) -> Turn:
    """The turn with what it does not attach, is in the working set again, and stands as less than can be read.

    A turn may be asked under other terms than the one that took it out: things linger for longer, or stay attached.
    Pictures of the note that was active go with the turn it was active in, and with no other.
    """
    but = {*turn.detach, *turn.drop, *(artifact.id for artifact in turn.attached)}
    standing = state.standing
    # Mostly all that is known stands as it is known; this is looked through for every turn.
    less = [
        (name, entry)
        for name, entry in state.library.items()
        if name in standing and (standing[name].artifact is not entry.artifact or not standing[name].in_full)
    ]
    back = [
        replace(entry.artifact, kind=LATER_KIND[entry.artifact.kind], images=())
        for name, entry in less
        if name not in but
        and is_in_working_set(entry, turn.terms, turn=state.turns)
        and not is_readable(entry, standing[name], turn.terms)
    ]
    return replace(turn, attached=(*turn.attached, *back)) if back else turn


def list_present(state: State) -> list[Artifact]:
    """What can be dropped: everything known, and what stands in the request or is attached without being that."""
    drawn_in = {artifact.id for artifact in state.system.inlined}
    found = {name: standing.artifact for name, standing in state.standing.items() if name not in drawn_in}
    return list({**found, **state.apart, **{name: one.artifact for name, one in state.library.items()}}.values())


def name_artifact(artifact: Artifact) -> str:
    """What people call it: a picture by its file or title and lines as they are typed, since a hash is in their ids.

    All else is called by its id.
    """
    if artifact.kind is Kind.IMAGE:
        return artifact.source.path or artifact.title
    return _name_lines(artifact) or artifact.id


def _name_lines(artifact: Artifact) -> str:
    """Selected lines of a file as in ``plan.md:10-20``; empty for what is none."""
    source = artifact.source
    if source.path is None or source.lines is None:
        return ""
    first, last = source.lines
    return f"{source.path}:{first}" if first == last else f"{source.path}:{first}-{last}"


def name_present(state: State) -> dict[str, str]:
    """What people call everything that can be dropped, by its id."""
    return {str(one.id): name_artifact(one) for one in list_present(state)}


def name_brought(artifact: Artifact) -> str | None:
    """The folder, tag or codebase that something came with, as people call it."""
    how, _, brought = (artifact.source.via or "").partition(":")
    return brought if brought and how in (Kind.FOLDER, Kind.TAG, Kind.CODEBASE) else None


def is_chosen(artifact: Artifact) -> bool:
    """Whether something was chosen from a codebase."""
    return (artifact.source.via or "").startswith(f"{Kind.CODEBASE}:")


def match_names(name: str, artifacts: Iterable[Artifact]) -> list[str]:
    """The ids that a name means among these: an id means itself, a file or a title every picture of that name.

    Lines mean every text that was selected there. A folder or a tag means all that came with it.
    """
    found = list(artifacts)
    brought = [str(one.id) for one in found if _brings(name, one)]
    if brought or any(artifact.id == name for artifact in found):
        return brought or [name]
    return [one.id for one in found if name in _list_other_names(one)]


def _list_other_names(artifact: Artifact) -> tuple[str, ...]:
    """What something is called beside its id, where that has a hash in it."""
    if artifact.kind is Kind.IMAGE:
        return (artifact.source.path or artifact.title, artifact.title)
    lines = _name_lines(artifact)
    return (lines,) if lines else ()


def _brings(name: str, artifact: Artifact) -> bool:
    """Whether something came with what has this name: a folder, with or without a slash behind it, or a tag."""
    brought = name_brought(artifact)
    return brought is not None and name.rstrip("/") in (brought.rstrip("/"), artifact.source.via)


def resolve_leaving(asked: Ask, state: State, terms: Terms, *, system: SystemParts) -> Leaving:
    """What is dropped and detached, by id, of what is there. The rest is said, and moves nothing."""
    drop, told = _find_dropped(asked.drop, state, system)
    detach: dict[str, None] = {}
    there = list_working_set(state, terms) if asked.detach else []
    for name in asked.detach:
        ids = match_names(name, there)
        detach |= dict.fromkeys(ids)
        if not ids:
            told.append(f"Nothing to detach: {name} is not in the working set.")
    return drop, tuple(detach), tuple(told)


def _find_dropped(names: Sequence[str], state: State, system: SystemParts) -> tuple[tuple[str, ...], list[str]]:
    present = list_present(state) if names else []
    wanted = [one for name in names for one in match_names(name, present) or [name]]
    drawn_in = {artifact.id for artifact in system.inlined}
    standing = (state.standing.keys() | state.apart.keys()) - drawn_in
    told: list[str] = []
    left: dict[str, None] = {}
    for name in dict.fromkeys(wanted):
        _, gone, warnings = drop_known(state.library, [name], standing=standing, drawn_in=drawn_in)
        left |= dict.fromkeys(gone)
        # What does leave is spoken of by the turn itself.
        told += [] if gone else warnings
    return tuple(left), told


def follow_sources(state: State, sources: Sources, *, but: Collection[str]) -> tuple[list[Artifact], list[str]]:
    """What is attached until it is detached and has another text now than was sent last, and words on it.

    ``but`` are ids that the turn attaches or takes out itself. Snapshots stay as they are, and so does a text that was
    given; of lines that were selected it is said that they changed. One that was moved keeps its name. One that cannot
    be read any more stays as it was sent, and is said.
    """
    changed: list[Artifact] = []
    # As a source file: a note is read with what it embeds, and its lines would no longer be those that were selected.
    told = _tell_reworded(state, lambda path: [sources.read(Wanted(kind=Kind.CODE, name=path))], but=but)
    moved = MovedFiles((entry.artifact for entry in state.library.values()), sources.catalog)
    for known in _list_held(state):
        if known.id not in but:
            now, said = _look_again(known, sources, moved)
            changed += [] if now is None else [now]
            told += said
    return changed, [*told, *moved.told]


def want_again(known: Artifact) -> Wanted:
    """What has to be read to have something as it is now at its source: the file where it stands, or the page."""
    return Wanted(
        kind=LATER_KIND[known.kind],
        name=find_place(known.source) or known.source.url or "",
        query=known.source.query,
        title=known.title,
        policy=known.policy,
        via=known.source.via,
    )


def _read_again(known: Artifact, sources: Sources, moved: MovedFiles) -> Artifact:
    """The same file, where it stands now."""
    wanted = want_again(known)
    try:
        return moved.rename(sources.read(wanted), known)
    except SourceMissingError:
        found = moved.find(known.id)
        if found is None:
            raise
    return moved.rename(sources.read(replace(wanted, name=found[1])), known)


def _look_again(known: Artifact, sources: Sources, moved: MovedFiles) -> tuple[Artifact | None, list[str]]:
    """A file that has another text or place now than it had, none where it has not or cannot be read; words on it."""
    if not known.source.read or known.source.path is None or KINDS[known.kind].medium not in sources.readers:
        return None, []
    try:
        now = _read_again(known, sources, moved)
    except BadInputError as error:
        return None, [_STAYS.format(name=known.id, why=error.message)]
    if now.hash != known.hash:
        return now, [_CHANGED.format(name=known.id)]
    return (now if now.source.found_at != known.source.found_at else None), []


def take_up(
    earlier: Iterable[Artifact], sources: Sources, terms: Terms, *, but: Collection[str]
) -> tuple[list[Artifact], list[str]]:
    """What was attached before its turn was asked, as it is now where it follows its source, and words on it.

    ``but`` are ids that the turn attaches itself. Where nothing is followed it is what it was when it was attached.
    """
    taken: list[Artifact] = []
    told: list[str] = []
    earlier = tuple(earlier)
    moved = MovedFiles(earlier, sources.catalog)
    for one in earlier:
        if one.id in but:
            continue
        follows = terms.attachments is Attachments.STICKY and one.policy is not Policy.SNAPSHOT
        now, said = _look_again(one, sources, moved) if follows else (None, [])
        taken.append(one if now is None else replace(now, kind=one.kind, images=one.images, outlined=one.outlined))
        told += said
    return taken, [*told, *moved.told]


def list_given(attached: Iterable[Artifact | Wanted]) -> list[str]:
    """The paths of files whose text came with them: whoever read them can read them again."""
    texts = [one for one in attached if isinstance(one, Artifact) and one.recoverable]
    return [one.source.path for one in texts if one.source.path is not None]


def follow_given(
    asked: Ask,
    state: State,
    paths: Collection[str],
    *,
    read: Callable[[str], Iterable[Artifact | Wanted]],
    but: Collection[str] = (),
) -> tuple[Ask, list[str]]:
    """What is asked, with those files that changed since their text was given, and words on them.

    Only ``paths`` are sent by themselves. The same name may mean another file by now, and what came from elsewhere
    must not choose what is read here and sent: of others it is only said, and so it is of lines that were selected.
    ``but`` are ids that something waits for.
    """
    but = {*but, *asked.detach, *asked.drop, *(one.id for one in asked.attach if isinstance(one, Artifact))}
    changed: list[Artifact] = []
    told = _tell_reworded(state, read, but=but)
    for known in _list_held(state):
        path = known.source.path
        if known.source.read or path is None or not known.recoverable or known.id in but:
            continue
        try:
            found = [one for one in read(path) if isinstance(one, Artifact) and one.id == known.id]
        except BadInputError as error:
            told += [_STAYS.format(name=known.id, why=error.message)] if path in paths else []
            continue
        newer = [one for one in found if one.hash != known.hash]
        changed += newer if path in paths else []
        told += [(_CHANGED if path in paths else _DIFFERS).format(name=one.id) for one in newer]
    return replace(asked, attach=(*asked.attach, *changed)) if changed else asked, told


def _tell_reworded(
    state: State, read: Callable[[str], Iterable[Artifact | Wanted]], *, but: Collection[str]
) -> list[str]:
    """Words on selected lines that stand nowhere in their file any more. A file that is not here is nobody's news."""
    told: list[str] = []
    held = _list_held(state)
    # Lines that were selected again have another hash behind the place that their id begins with.
    newest = {_leave_hash(known.id): known.id for known in held} | {_leave_hash(name): name for name in but}
    for known in held:
        path, lines = known.source.path, known.source.lines
        if path is None or lines is None or known.recoverable or known.id in but:
            continue
        if newest[_leave_hash(known.id)] != known.id:
            continue
        with suppress(BadInputError):
            texts = [one.text for one in read(path) if isinstance(one, Artifact)]
            if texts and not any(_still_holds(text, known.text, lines) for text in texts):
                told.append(_REWORDED.format(name=name_artifact(known)))
    return told


def _leave_hash(name: str) -> str:
    return name.rpartition(":")[0]


def _still_holds(text: str, selected: str, lines: tuple[int, int]) -> bool:
    """Whether a selection stands where it stood, or in lines of its own elsewhere: lines above it come and go."""
    there = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
    whole = selected.removesuffix("\n")
    return whole in there or f"\n{whole}\n" in f"\n{text}\n"


def _list_held(state: State) -> list[Artifact]:
    """What is attached until it is detached, less what stays as it was first."""
    known = [entry.artifact for entry in state.library.values() if entry.held]
    return [artifact for artifact in (*known, *state.apart.values()) if artifact.policy is not Policy.SNAPSHOT]
