"""The working set and the context library between two turns.

``list_working_set`` returns what the model must be able to read next, ``list_library`` every known artifact with its
form and token count. ``find_ids_by_name``, ``resolve_drops_and_detaches`` and ``resolve_pins`` find what a user means by a name.
``reread_changed_sticky_attachments`` reads sticky attachments again. ``MovedFileFinder`` recognises files that were
moved, so that they keep their id and their text is not sent again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from lamella.conversation.turn import BuiltTurn, TurnRequest
from lamella.core.artifacts.kinds import KINDS, LIBRARY_KIND, LIST_MARKER, BlockFormat
from lamella.core.artifacts.model import (
    FOUND_BY_SEARCH,
    Artifact,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    UnresolvedAttachment,
    make_path_id,
)
from lamella.core.budget import count_images_tokens, count_tools_tokens
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import ArtifactForm, AttachmentMode, SystemParts, Turn, TurnSettings
from lamella.core.prompt.attachments import drop_from_library, is_in_working_set
from lamella.core.prompt.layers.library import is_shown_in_carried_form
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState, get_index
from lamella.core.values import replace
from lamella.errors import ArtifactError, BadInputError, InvalidOperationError, SourceNotFoundError
from lamella.ports import SourceCatalog, SourceReaders


def resolve_pins(
    turn_request: TurnRequest, state: PromptState, receipts: Iterable[CompactionReceipt] = ()
) -> tuple[tuple[Artifact, ...], tuple[str, ...] | None]:
    """Return the artifacts whose policy changes, to be attached again, and the pinned messages.

    The messages are None if they are unchanged. Messages that ``receipts`` remove before this turn can no longer be
    pinned. Raises ``ArtifactError`` for unknown names.
    """
    _check_no_contradiction(turn_request, state)
    gone = {name for receipt in receipts for step in receipt.steps for name in step.removed}
    messages = {name: message_id for name, message_id in message_ids_by_alias(state).items() if message_id not in gone}
    artifacts: dict[str, Artifact] = {}
    pinned = set(state.pinned if turn_request.previously_pinned is None else turn_request.previously_pinned)
    for names, policy in ((turn_request.pin, AttachmentPolicy.PIN), (turn_request.unpin, AttachmentPolicy.FOLLOW)):
        for name in names:
            if name in state.library:
                # It may be in the prompt as a handle or a summary for lack of space. A pinned artifact is sent in full.
                artifacts[name] = replace(state.library[name].artifact, policy=policy, condensed=None)
            elif name in messages:
                (pinned.add if policy is AttachmentPolicy.PIN else pinned.discard)(messages[name])
            elif name in pinned:
                # A pinned message that is no longer in the prompt: pinning it again changes nothing.
                pinned -= {name} if policy is AttachmentPolicy.FOLLOW else set()
            else:
                raise _pin_not_found_error(name, policy)
    return tuple(artifacts.values()), None if pinned == state.pinned else tuple(sorted(pinned))


def _check_no_contradiction(turn_request: TurnRequest, state: PromptState) -> None:
    """Raise ``InvalidOperationError`` if a turn asks for opposite things, such as to pin and to drop the same artifact.

    Pinning and unpinning both attach the artifact again, so neither can be combined with its removal.
    """
    ids_by_alias = message_ids_by_alias(state) if turn_request.pin and turn_request.unpin else {}
    names_by_command = {
        "pin": {ids_by_alias.get(name, name) for name in turn_request.pin},
        "unpin": {ids_by_alias.get(name, name) for name in turn_request.unpin},
        "drop": set(turn_request.drop),
        "detach": set(turn_request.detach),
    }
    for one, other in (
        ("pin", "unpin"),
        *((pin_command, removal) for pin_command in ("pin", "unpin") for removal in ("drop", "detach")),
    ):
        both = sorted(names_by_command[one] & names_by_command[other])
        if both:
            raise InvalidOperationError(
                f"{both[0]} is named by {one} and by {other} of the same turn.",
                hint="Ask for one of them now, and for the other with a later question.",
            )


def message_ids_by_alias(state: PromptState) -> Mapping[str, str]:
    """Return the ids of all messages in the history, by id and by aliases such as ``turn:3`` and ``reply:3``."""
    names: dict[str, str] = {}
    for turn in state.history.turns:
        names[f"turn:{turn.turn_index + 1}"] = turn.question.id
        names[f"reply:{turn.turn_index + 1}"] = turn.reply.id
        names.update((message.id, message.id) for message in turn.messages)
    return names


def _pin_not_found_error(name: str, policy: AttachmentPolicy) -> ArtifactError:
    done = "pinned" if policy is AttachmentPolicy.PIN else "unpinned"
    return ArtifactError(
        f"{name} cannot be {done}: it is neither an attachment nor a message of the prompt.",
        hint="Attach an artifact with the policy pin. Name a message by its id, or as turn:3 or reply:3; a message "
        "that a compaction removed comes back when you undo the compaction.",
    )


# Moved files.

_MOVED_MESSAGE = "{name} was moved to {place}. It keeps its name here, and its text is not sent again."


class MovedFileFinder:
    """Finds files of earlier turns by their text if they are no longer at their path."""

    def __init__(self, known: Iterable[Artifact], catalog: SourceCatalog | None) -> None:
        self._catalog = catalog
        self._known_by_id = {one.id: one for one in known if _is_file(one)} if catalog else {}
        # Reversed so that of several files with the same text the first one wins.
        self._known_by_hash = {one.hash: one for one in reversed(self._known_by_id.values())}
        self._known_by_path = {source_path(one.source): one for one in self._known_by_id.values()}
        self.warnings: list[str] = []

    def find_moved(self, name: str) -> tuple[Artifact, str] | None:
        """Return the artifact known by this name and the path its file has now; None if that is not certain."""
        known = self._known_by_id.get(make_path_id(ArtifactSource(path=name), ""))
        if known is None or self._catalog is None:
            return None
        if known.source.current_path and self._catalog.has_file(known.source.current_path):
            return known, known.source.current_path
        try:
            places = [place for place in self._catalog.find_identical_files(known) if place not in self._known_by_path]
        except BadInputError:
            return None
        # With two copies of the text it is unclear which of them is the moved file.
        return (known, places[0]) if len(places) == 1 else None

    def with_known_name(self, current: Artifact, known: Artifact) -> Artifact:
        """Return an artifact that was read at another path, under the name it is known by.

        A move that was not reported before adds a warning.
        """
        path = current.source.path
        source = replace(
            current.source, path=known.source.path, current_path=None if path == known.source.path else path
        )
        if source.current_path not in (None, known.source.current_path):
            self.warnings.append(_MOVED_MESSAGE.format(name=known.id, place=path))
        return replace(current, id=known.id, title=known.title, source=source)

    def rename_if_moved(self, artifact: Artifact) -> Artifact:
        """Return an artifact under its earlier name if its file was moved, otherwise unchanged."""
        path = artifact.source.path
        if not _is_file(artifact) or path is None or artifact.id in self._known_by_id:
            return artifact
        known = self._known_by_path.get(path) or self._find_missing_original(artifact)
        if known is None or LIBRARY_KIND[known.kind] is not LIBRARY_KIND[artifact.kind]:
            return artifact
        return self.with_known_name(artifact, known)

    def _find_missing_original(self, artifact: Artifact) -> Artifact | None:
        """Return the known artifact that has the same text and whose file is no longer at its path."""
        known = self._known_by_hash.get(artifact.hash)
        if known is None or self._catalog is None or self._catalog.has_file(source_path(known.source)):
            return None
        return known


def _is_file(artifact: Artifact) -> bool:
    """Return whether an artifact is the text of a file.

    The result of a query is not: it is asked in a note, which may contain several, and has no file of its own.
    """
    return artifact.source.is_rereadable and bool(artifact.source.path) and artifact.source.query is None


def source_path(source: ArtifactSource) -> str:
    """Return the last known path of the file that an artifact was read from, or an empty string."""
    return source.current_path or source.path or ""


# The working set: its artifacts, their names for users, and changes at their sources.

# The ids dropped from the prompt, the ids detached from the working set, and warnings about names that match nothing.
RemovedNames = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
NOTHING_REMOVED: RemovedNames = ((), (), ())
_CHANGED_MESSAGE = "{name} changed since it was last sent; its new text is sent now."
_OTHER_TEXT_MESSAGE = "{name} has another text here than was sent; attach it again to send that."
_CHANGED_SELECTION_MESSAGE = (
    "{name} changed on disk since it was selected, and stays as it was sent; attach it again to send that."
)
_READ_FAILED_MESSAGE = "{name} stays as it was sent last: {why}"


def list_working_set(state: PromptState, turn_settings: TurnSettings) -> list[Artifact]:
    """Return what the model must be able to read in the next turn if it attaches nothing, in first-seen order."""
    turn = state.turn_count + int(state.waits_for_reply)
    known = [
        entry.artifact for entry in state.library.values() if is_in_working_set(entry, turn_settings, turn_number=turn)
    ]
    return (
        [*known, *state.unlisted_attachments.values()] if turn_settings.attachments is AttachmentMode.STICKY else known
    )


def reattach_missing(turn: Turn, state: PromptState) -> Turn:
    """Return the turn with working set artifacts attached again that are no longer readable in the prompt.

    This happens if the turn settings changed since an artifact was removed: a longer retention, or sticky attachments.
    Images of an active note are sent only with the turn in which it was active.
    """
    but = {*turn.detach, *turn.drop, *(artifact.id for artifact in turn.attached)}
    index = get_index(state)
    is_covered = index.suffices_for_turn(linger=turn.turn_settings.linger, turn_number=state.turn_count)
    library, placed = (index.active_library, index.active_placed) if is_covered else (state.library, state.placed)
    # This runs for every turn, and usually every artifact is in full. The identity check filters those out cheaply.
    less = [
        (name, entry)
        for name, entry in library.items()
        if name in placed and (placed[name].artifact is not entry.artifact or not placed[name].is_full)
    ]
    back = [
        replace(entry.artifact, kind=LIBRARY_KIND[entry.artifact.kind], images=())
        for name, entry in less
        if name not in but
        and is_in_working_set(entry, turn.turn_settings, turn_number=state.turn_count)
        and not is_shown_in_carried_form(entry, placed[name], turn.turn_settings)
    ]
    return replace(turn, attached=(*turn.attached, *back)) if back else turn


def repeats_attachments_in_each_turn(turn: Turn, find_earlier: Callable[[int], Turn | None]) -> bool:
    """Return whether two turns in a row list an attachment that the turn before them listed with the same text.

    ``turn`` is the second of them, and ``find_earlier`` returns the turn that many turns before it.
    """
    before = find_earlier(1)
    if before is None or not _repeats_attachment(turn, before):
        return False
    earlier = find_earlier(2)
    return earlier is not None and _repeats_attachment(before, earlier)


def _repeats_attachment(turn: Turn, before: Turn) -> bool:
    known = {(one.id, one.hash) for one in before.attached if _is_attached_by_somebody(one)}
    return any((one.id, one.hash) in known for one in turn.attached if _is_attached_by_somebody(one))


def _is_attached_by_somebody(artifact: Artifact) -> bool:
    """Return whether somebody attached this; passages that a search found do not count."""
    return artifact.source.via != FOUND_BY_SEARCH and not KINDS[artifact.kind].is_file_part


def list_droppable_artifacts(state: PromptState) -> list[Artifact]:
    """Return what can be dropped: known artifacts, and others that are in the request or attached.

    Notes that the system prompt's instructions include are not listed.
    """
    drawn_in = {artifact.id for artifact in state.system.inlined}
    found = {name: placed.artifact for name, placed in state.placed.items() if name not in drawn_in}
    return list(
        {**found, **state.unlisted_attachments, **{name: one.artifact for name, one in state.library.items()}}.values()
    )


def display_name(artifact: Artifact) -> str:
    """Return the name that users see: an image's file or title, ``path:lines`` for a selection, else the id.

    Ids of images and of selected lines contain a hash.
    """
    if artifact.kind is ArtifactKind.IMAGE:
        return artifact.source.path or artifact.title
    return _line_range_label(artifact) or artifact.id


def _line_range_label(artifact: Artifact) -> str:
    """Return selected lines of a file as ``plan.md:10-20``; empty for anything else."""
    source = artifact.source
    if source.path is None or source.lines is None:
        return ""
    first, last = source.lines
    return f"{source.path}:{first}" if first == last else f"{source.path}:{first}-{last}"


def droppable_names(state: PromptState) -> dict[str, str]:
    """Return the display names of everything that can be dropped, by id."""
    return {str(one.id): display_name(one) for one in list_droppable_artifacts(state)}


def get_group_name(artifact: Artifact) -> str | None:
    """Return the name of the folder, tag or codebase that an artifact came with, or None."""
    how, _, brought = (artifact.source.via or "").partition(":")
    return brought if brought and how in (ArtifactKind.FOLDER, ArtifactKind.TAG, ArtifactKind.CODEBASE) else None


def is_from_codebase(artifact: Artifact) -> bool:
    """Return whether an artifact was selected from a codebase."""
    return (artifact.source.via or "").startswith(f"{ArtifactKind.CODEBASE}:")


def find_ids_by_name(name: str, artifacts: Iterable[Artifact]) -> list[str]:
    """Return the ids that a name means among these artifacts.

    The name may be an id, the file or title of images, a range of selected lines, or a folder or tag, which means
    everything that came with it.
    """
    found = list(artifacts)
    brought = [str(one.id) for one in found if _is_attached_with(name, one)]
    if brought or any(artifact.id == name for artifact in found):
        return brought or [name]
    return [one.id for one in found if name in _list_alternative_names(one)]


def _list_alternative_names(artifact: Artifact) -> tuple[str, ...]:
    """Return other names of an artifact whose id contains a hash."""
    if artifact.kind is ArtifactKind.IMAGE:
        return (artifact.source.path or artifact.title, artifact.title)
    lines = _line_range_label(artifact)
    return (lines,) if lines else ()


def _is_attached_with(name: str, artifact: Artifact) -> bool:
    """Return whether an artifact came with the folder or tag of this name; a trailing slash is ignored."""
    brought = get_group_name(artifact)
    return brought is not None and name.rstrip("/") in (brought.rstrip("/"), artifact.source.via)


def resolve_drops_and_detaches(
    turn_request: TurnRequest, state: PromptState, turn_settings: TurnSettings, *, system: SystemParts
) -> RemovedNames:
    """Return the ids to drop and to detach; names that match nothing give a warning and have no effect."""
    drop, warnings = _resolve_dropped(turn_request.drop, state, system)
    detach: dict[str, None] = {}
    working_set = list_working_set(state, turn_settings) if turn_request.detach else []
    for name in turn_request.detach:
        ids = find_ids_by_name(name, working_set)
        detach |= dict.fromkeys(ids)
        if not ids:
            warnings.append(f"Nothing to detach: {name} is not in the working set.")
    return drop, tuple(detach), tuple(warnings)


def _resolve_dropped(
    names: Sequence[str], state: PromptState, system: SystemParts
) -> tuple[tuple[str, ...], list[str]]:
    present = list_droppable_artifacts(state) if names else []
    matched = [one for name in names for one in find_ids_by_name(name, present) or [name]]
    inlined_ids = {artifact.id for artifact in system.inlined}
    placed_ids = (state.placed.keys() | state.unlisted_attachments.keys()) - inlined_ids
    all_warnings: list[str] = []
    dropped: dict[str, None] = {}
    for name in dict.fromkeys(matched):
        _, gone, warnings = drop_from_library(state.library, [name], placed_ids=placed_ids, inlined_ids=inlined_ids)
        dropped |= dict.fromkeys(gone)
        # A successful drop is reported by the turn itself.
        all_warnings += [] if gone else warnings
    return tuple(dropped), all_warnings


class RereadAttachments(NamedTuple):
    """The sticky attachments whose source text changed, read again, and warnings about sticky attachments."""

    changed: list[Artifact]
    warnings: list[str]


def reread_changed_sticky_attachments(
    state: PromptState, sources: SourceReaders, *, except_for: Collection[str]
) -> RereadAttachments:
    """Return sticky attachments whose source text changed since they were sent, and messages about them.

    ``except_for`` are ids that the turn attaches or removes itself. Snapshots and texts that the caller passed are not
    read again. Changed line selections and unreadable files only give a message. Moved files keep their name.
    """
    changed: list[Artifact] = []
    # Read as a source file: reading as a note inserts embedded notes, and the selected line numbers would not match.
    messages = _changed_selection_warnings(
        state,
        lambda path: [sources.read(UnresolvedAttachment(kind=ArtifactKind.CODE, name=path))],
        except_for=except_for,
    )
    moved = MovedFileFinder((entry.artifact for entry in state.library.values()), sources.catalog)
    for known in _list_sticky_artifacts(state):
        if known.id not in except_for:
            newer, new_messages = _reread_if_changed(known, sources, moved)
            changed += [] if newer is None else [newer]
            messages += new_messages
    return RereadAttachments(changed, warnings=[*messages, *moved.warnings])


def to_unresolved(known: Artifact) -> UnresolvedAttachment:
    """Return the attachment that reads an artifact again from its file, at its current path, or its URL."""
    return UnresolvedAttachment(
        kind=LIBRARY_KIND[known.kind],
        name=source_path(known.source) or known.source.url or "",
        query=known.source.query,
        title=known.title,
        policy=known.policy,
        via=known.source.via,
    )


def _reread_file(known: Artifact, sources: SourceReaders, moved: MovedFileFinder) -> Artifact:
    """Read a file again, also if it was moved."""
    attachment = to_unresolved(known)
    try:
        return moved.with_known_name(sources.read(attachment), known)
    except SourceNotFoundError:
        found = moved.find_moved(known.id)
        if found is None:
            raise
    return moved.with_known_name(sources.read(replace(attachment, name=found[1])), known)


def _reread_if_changed(
    known: Artifact, sources: SourceReaders, moved: MovedFileFinder
) -> tuple[Artifact | None, list[str]]:
    """Return a file whose text or path changed, or None if unchanged or unreadable; and messages about it."""
    if not known.source.is_rereadable or known.source.path is None or KINDS[known.kind].medium not in sources.readers:
        return None, []
    try:
        now = _reread_file(known, sources, moved)
    except BadInputError as error:
        return None, [_READ_FAILED_MESSAGE.format(name=known.id, why=error.message)]
    if now.hash != known.hash:
        return now, [_CHANGED_MESSAGE.format(name=known.id)]
    return (now if now.source.current_path != known.source.current_path else None), []


def refresh_earlier_attachments(
    earlier: Iterable[Artifact], sources: SourceReaders, turn_settings: TurnSettings, *, except_for: Collection[str]
) -> tuple[list[Artifact], list[str]]:
    """Return the attachments of earlier commands with their current text, and messages about changes.

    ``except_for`` are ids that the turn attaches itself. Without sticky attachments, and for snapshots, the text stays
    as it was when the command was given.
    """
    refreshed: list[Artifact] = []
    messages: list[str] = []
    earlier = tuple(earlier)
    moved = MovedFileFinder(earlier, sources.catalog)
    for one in earlier:
        if one.id in except_for:
            continue
        is_followed = turn_settings.attachments is AttachmentMode.STICKY and one.policy is not AttachmentPolicy.SNAPSHOT
        newer, new_messages = _reread_if_changed(one, sources, moved) if is_followed else (None, [])
        refreshed.append(
            one if newer is None else replace(newer, kind=one.kind, images=one.images, is_outlined=one.is_outlined)
        )
        messages += new_messages
    return refreshed, [*messages, *moved.warnings]


def list_paths_with_passed_text(attached: Iterable[Artifact | UnresolvedAttachment]) -> list[str]:
    """Return the paths of attached files whose text the caller passed; the caller can read them again."""
    texts = [one for one in attached if isinstance(one, Artifact) and one.recoverable]
    return [one.source.path for one in texts if one.source.path is not None]


def with_changed_files(
    turn_request: TurnRequest,
    state: PromptState,
    paths: Collection[str],
    *,
    read: Callable[[str], Iterable[Artifact | UnresolvedAttachment]],
    except_for: Collection[str] = (),
) -> tuple[TurnRequest, list[str]]:
    """Return the request with files that changed since the caller passed their text, and messages about them.

    Only files in ``paths`` are sent. For other files and for line selections there is only a message: the same name may
    mean another file here, and content from elsewhere must not choose which local files are sent. ``except_for`` are
    ids of pending commands.
    """
    except_for = {
        *except_for,
        *turn_request.detach,
        *turn_request.drop,
        *(one.id for one in turn_request.attach if isinstance(one, Artifact)),
    }
    changed: list[Artifact] = []
    messages = _changed_selection_warnings(state, read, except_for=except_for)
    for known in _list_sticky_artifacts(state):
        path = known.source.path
        if known.source.is_rereadable or path is None or not known.recoverable or known.id in except_for:
            continue
        try:
            found = [one for one in read(path) if isinstance(one, Artifact) and one.id == known.id]
        except BadInputError as error:
            messages += [_READ_FAILED_MESSAGE.format(name=known.id, why=error.message)] if path in paths else []
            continue
        newer = [one for one in found if one.hash != known.hash]
        changed += newer if path in paths else []
        messages += [(_CHANGED_MESSAGE if path in paths else _OTHER_TEXT_MESSAGE).format(name=one.id) for one in newer]
    return replace(turn_request, attach=(*turn_request.attach, *changed)) if changed else turn_request, messages


def _changed_selection_warnings(
    state: PromptState, read: Callable[[str], Iterable[Artifact | UnresolvedAttachment]], *, except_for: Collection[str]
) -> list[str]:
    """Return a warning for each line selection that is no longer in its file; missing files are ignored."""
    warnings: list[str] = []
    attached = _list_sticky_artifacts(state)
    # The id of a selection ends in a hash. If the same lines were selected again, only the newest selection is checked.
    newest = {_strip_hash_from_name(known.id): known.id for known in attached} | {
        _strip_hash_from_name(name): name for name in except_for
    }
    for known in attached:
        path, lines = known.source.path, known.source.lines
        if path is None or lines is None or known.recoverable or known.id in except_for:
            continue
        if newest[_strip_hash_from_name(known.id)] != known.id:
            continue
        with suppress(BadInputError):
            texts = [one.text for one in read(path) if isinstance(one, Artifact)]
            if texts and not any(_is_selection_unchanged(text, known.text, lines) for text in texts):
                warnings.append(_CHANGED_SELECTION_MESSAGE.format(name=display_name(known)))
    return warnings


def _strip_hash_from_name(name: str) -> str:
    return name.rpartition(":")[0]


def _is_selection_unchanged(text: str, selected: str, lines: tuple[int, int]) -> bool:
    """Return whether a selection is still at its lines, or as complete lines elsewhere in the file.

    Lines inserted or removed above the selection move it.
    """
    there = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
    whole = selected.removesuffix("\n")
    return whole in there or f"\n{whole}\n" in f"\n{text}\n"


def _list_sticky_artifacts(state: PromptState) -> list[Artifact]:
    """Return the artifacts that stay attached until they are detached, without snapshots."""
    known = [entry.artifact for entry in state.library.values() if entry.stays_attached]
    return [
        artifact
        for artifact in (*known, *state.unlisted_attachments.values())
        if artifact.policy is not AttachmentPolicy.SNAPSHOT
    ]


# The library as a list for users.

_NOT_IN_REQUEST = (ArtifactForm.FULL.value, 0)


class LibraryItem(Struct, frozen=True, kw_only=True):
    """One artifact as it will be in the next request if that request attaches nothing else.

    ``cached`` says whether the ledger expects a cache to contain all of it; None without a prediction. ``age_turns``
    is the number of turns since it was last attached. It is 0 if the artifact ``is_pending`` for the next turn.
    ``tokens_saved`` is what detaching it would remove from the next request; dropping it removes all ``tokens``.
    ``left_out`` are the notes of a folder or tag that are not sent.
    """

    id: str
    kind: str
    title: str
    name: str
    form: str
    tokens: int
    in_working_set: bool
    cached: bool | None
    age_turns: int
    tokens_saved: int
    is_pending: bool = False
    policy: str | None = None
    via: str | None = None
    left_out: tuple[str, ...] = ()


def list_library(
    preview: Callable[[TurnRequest], BuiltTurn],
    current_state: tuple[PromptState, TurnSettings],
    *,
    dropped_names: Collection[str] = (),
) -> tuple[LibraryItem, ...]:
    """List every known artifact in first-seen order, then images, then pending attachments.

    ``preview`` builds the turn that a request would give. ``dropped_names`` are the names that the next turn detaches
    or drops.
    """
    state, turn_settings = current_state
    working_set = {str(one.id) for one in list_working_set(state, turn_settings)}
    turn = preview(TurnRequest(text=""))
    prompt = turn.envelope.prompt
    attached = {str(one.id): one for one in prompt.attached}
    # The same request without the working set shows how many tokens detaching each artifact saves.
    without_working_set = (
        preview(TurnRequest(text="", detach=tuple({**dict.fromkeys(working_set), **attached})))
        if working_set or attached
        else turn
    )
    now, then, cached = (
        _count_artifact_tokens(prompt),
        _count_artifact_tokens(without_working_set.envelope.prompt),
        _list_cached_artifact_ids(turn),
    )
    known = {name: entry.artifact for name, entry in prompt.library.items()}
    known |= {str(one.artifact.id): one.artifact for one in prompt.unlayered_artifacts}
    # Attachments that do not enter the library, such as images, are sent again with each turn.
    known |= {str(one.id): one for one in state.unlisted_attachments.values() if one.id in now}
    asked = state.turn_count + int(state.waits_for_reply)
    ages = {name: asked - at for name, at in _find_last_attached_turns(prompt, state).items()}
    return tuple(
        LibraryItem(
            id=name,
            kind=LIBRARY_KIND[artifact.kind].value,
            title=artifact.title,
            name=display_name(artifact),
            form=now[name][0] if name in now else ArtifactForm.FULL.value,
            tokens=now[name][1] if name in now else 0,
            in_working_set=name in attached or (name in working_set and name not in dropped_names),
            cached=None if turn.cache is None else name in cached,
            age_turns=0 if name in attached else ages.get(name, 0),
            tokens_saved=max(0, now.get(name, _NOT_IN_REQUEST)[1] - then.get(name, _NOT_IN_REQUEST)[1]),
            is_pending=name in attached,
            policy=None if artifact.policy is None else artifact.policy.value,
            via=artifact.source.via,
            left_out=_list_omitted_note_names(artifact),
        )
        for name, artifact in {**known, **attached}.items()
    )


def _find_last_attached_turns(prompt: Prompt, state: PromptState) -> dict[str, int]:
    """Return the number of the turn that last attached each artifact.

    For an artifact outside the library this is the turn of the message that carries it.
    """
    found = {name: entry.last_attached_turn for name, entry in prompt.library.items()}
    for one in prompt.unlayered_artifacts:
        place = (one.place or "").partition(":")[2]
        message = prompt.messages[int(place)] if place.isdecimal() else None
        turn_indexes = (past.turn_index for past in state.history.shown if past.question_message == message)
        found[one.artifact.id] = next(turn_indexes, state.turn_count)
    return found


def _count_artifact_tokens(prompt: Prompt) -> dict[str, tuple[str, int]]:
    """Return the form and token count of each artifact in a request; references to it are counted with it."""
    weights = {
        str(one.artifact.id): (one.form.value, one.tokens)
        for one in (*prompt.unlayered_artifacts, *prompt.placed_library)
    }
    for segment in prompt.segments(LayerId.L3):
        form, tokens = weights.get(segment.id, (segment.form.value, 0))
        shown = form if segment.form is ArtifactForm.REFERENCE else segment.form.value
        weights[segment.id] = (shown, tokens + segment.tokens)
    return weights


def _list_cached_artifact_ids(turn: BuiltTurn) -> frozenset[str]:
    """Return the artifacts that lie completely in the part of the request that a cache should serve."""
    prompt, left = turn.envelope.prompt, 0 if turn.cache is None else turn.cache.read
    tokenizer = prompt.tokenizer
    left -= count_tools_tokens(prompt.tools, tokenizer.count) if prompt.tools else 0
    known = {one.pieces[0]: one.tokens for one in prompt.placed.values() if len(one.pieces) == 1}
    cached_pieces: set[str] = set()
    for message in prompt.messages if left > 0 else ():
        left -= tokenizer.tokens_per_message
        for piece in message.pieces:
            left -= known[piece] if piece in known else tokenizer.count(piece)
            if left < 0:
                break
            cached_pieces.add(piece)
        left -= count_images_tokens(message.images, tokenizer) if message.images else 0
        if left < 0:
            break
    return frozenset(
        one.artifact.id for one in prompt.placed.values() if one.pieces and cached_pieces.issuperset(one.pieces)
    )


def _list_omitted_note_names(artifact: Artifact) -> tuple[str, ...]:
    if KINDS[artifact.kind].block_format is not BlockFormat.EXPANDS:
        return ()
    return tuple(line.removeprefix(LIST_MARKER) for line in artifact.text.split("\n")[1:])
