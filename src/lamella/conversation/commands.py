"""Commands between two questions: attach, detach, drop, pin, unpin and refresh.

``CommandResolver`` checks a command and reads its attachments when it is given; exactly that text is sent with the
next turn. ``PendingCommands`` are the commands so far. ``merge_requests`` merges two of them, where the later one
wins, and ``merge_pending_into_request`` merges them with the question.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, NoReturn

from msgspec import Struct

from lamella.conversation.adapters import Adapters
from lamella.conversation.library import (
    display_name,
    droppable_names,
    find_ids_by_name,
    list_droppable_artifacts,
    list_working_set,
    message_ids_by_alias,
    to_unresolved,
)
from lamella.conversation.note_selection import (
    is_fully_in_prompt,
    parse_folder_or_tag_origin,
    with_group_notes_that_fit,
)
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_reader import AttachmentReader, list_linkable_artifacts, with_default_policies
from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.events.artifact import (
    ContentsByHash,
    PendingCommandsEvent,
    contents_of_artifacts,
    read_artifacts,
    to_stored_artifact,
)
from lamella.core.log.events.codec import build_event_batch
from lamella.core.log.events.kinds import EventBatch
from lamella.core.log.turn import ArtifactForm, Turn, TurnSettings
from lamella.core.prompt.layers.library import render_shorter_form
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import BadInputError, InvalidOperationError
from lamella.ports import SourceReaders

# Pending commands.

NO_PENDING_COMMANDS = TurnRequest(text="")
_CANCELLED_ATTACH_MESSAGE = "{name} is no longer attached to the next turn."
_ATTACHED_NOW_MESSAGE = "{name} is attached by this turn itself, so it is neither dropped nor detached."
_CANCELLED_COMMAND_MESSAGE = "{name} will not be {was} with the next turn."


class PendingCommands(Struct, frozen=True, kw_only=True):
    """The commands that take effect with the next turn.

    ``attach`` are artifacts as they were read when the command was given; the other fields contain ids or the texts of
    rules. ``tokens`` are the token counts of the attachments by id. ``warnings`` are messages for the user.
    """

    attach: tuple[Artifact, ...] = ()
    detach: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    tokens: Mapping[str, int] = {}
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        changes = self.detach or self.drop or self.pin or self.unpin or self.rules or self.removed_rules
        return bool(self.attach or changes)


def build_pending_commands(
    pending: TurnRequest, count: Callable[[str], int], *, warnings: Iterable[str] = ()
) -> PendingCommands:
    """Return the pending commands with token counts.

    Images are not counted, because their tokens depend on the model.
    """
    texts = [one for one in pending.pending_attachments if one.kind is not ArtifactKind.IMAGE]
    return PendingCommands(
        attach=pending.pending_attachments,
        detach=pending.detach,
        drop=pending.drop,
        pin=pending.pin,
        unpin=pending.unpin,
        rules=pending.rules,
        removed_rules=pending.removed_rules,
        tokens={one.id: count(_render_artifact(one)) for one in texts},
        warnings=tuple(warnings),
    )


def _render_artifact(artifact: Artifact) -> str:
    outline = render_shorter_form(artifact, ArtifactForm.PREVIEW) if artifact.is_outlined else None
    return outline or render_block(artifact)


def changes_nothing(turn_request: TurnRequest) -> bool:
    """Return whether a command changes nothing."""
    changes = (
        turn_request.detach
        or turn_request.drop
        or turn_request.pin
        or turn_request.unpin
        or turn_request.rules
        or turn_request.removed_rules
    )
    return not (turn_request.pending_attachments or changes)


def merge_requests(pending: TurnRequest, later: TurnRequest, *, cancelled: Collection[str] = ()) -> TurnRequest:
    """Merge a later request with the pending one; the later one wins where they contradict.

    ``cancelled`` are names whose pending attachment is cancelled.
    """
    removed = {*later.drop, *later.detach, *cancelled}
    added = {one.id for one in later.pending_attachments} | _attached_names(later)
    pinned = {*later.pin, *later.unpin}
    policies = {**dict.fromkeys(later.pin, AttachmentPolicy.PIN), **dict.fromkeys(later.unpin, AttachmentPolicy.FOLLOW)}
    removed_ids = {
        one.id
        for name in removed
        for one in pending.pending_attachments
        if one.id in find_ids_by_name(name, pending.pending_attachments)
    }
    remaining = [one for one in pending.pending_attachments if one.id not in removed_ids and one.id not in added]
    remaining_ids = {one.id for one in remaining}
    return replace(
        later,
        pending_attachments=(
            *(replace(one, policy=policies[one.id]) if one.id in policies else one for one in remaining),
            *later.pending_attachments,
        ),
        detach=_merge_names(pending.detach, later.detach, except_for=added | pinned | set(later.drop)),
        drop=_merge_names(pending.drop, later.drop, except_for=added | pinned | set(later.detach)),
        pin=_merge_names(
            pending.pin, [name for name in later.pin if name not in remaining_ids], except_for=removed | pinned
        ),
        unpin=_merge_names(
            pending.unpin, [name for name in later.unpin if name not in remaining_ids], except_for=removed | pinned
        ),
        rules=_merge_names(pending.rules, later.rules, except_for=later.removed_rules),
        removed_rules=_merge_names(pending.removed_rules, later.removed_rules, except_for=later.rules),
        warnings=(*pending.warnings, *later.warnings),
    )


def _attached_names(turn_request: TurnRequest) -> set[str]:
    """Return the ids of what a question attaches itself, or the names of attachments not read yet."""
    return {one.id if isinstance(one, Artifact) else one.name for one in turn_request.attach}


def _merge_names(earlier: Iterable[str], later: Iterable[str], *, except_for: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(name for name in earlier if name not in except_for), *later)))


def overridden_command_warnings(
    pending: TurnRequest, joined: TurnRequest, later: TurnRequest, *, names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a message for each pending command that a later one cancelled.

    ``names`` maps ids to display names.
    """
    stays = {one.id for one in (*joined.pending_attachments, *later.pending_attachments)}
    yield from (
        _CANCELLED_ATTACH_MESSAGE.format(name=display_name(one))
        for one in pending.pending_attachments
        if one.id not in stays
    )
    for waited, left, was in (
        (pending.detach, joined.detach, "detached"),
        (pending.drop, joined.drop, "dropped"),
        (pending.pin, joined.pin, "pinned"),
        (pending.unpin, joined.unpin, "unpinned"),
    ):
        taken = (name for name in waited if name not in left)
        yield from (_CANCELLED_COMMAND_MESSAGE.format(name=names.get(name, name), was=was) for name in taken)


def merge_pending_into_request(pending: TurnRequest, turn_request: TurnRequest, state: PromptState) -> TurnRequest:
    """Return a question merged with the pending commands.

    Artifacts that the question attaches itself are neither dropped nor detached with it. Pins of things that are gone
    have no effect. Both give a warning.
    """
    joined = merge_requests(pending, turn_request)
    remaining = [
        _ATTACHED_NOW_MESSAGE.format(name=name)
        for name in dict.fromkeys((*pending.drop, *pending.detach))
        if name in _attached_names(turn_request)
    ]
    joined = replace(joined, warnings=(*joined.warnings, *remaining)) if remaining else joined
    there = {
        *state.library,
        *state.pinned,
        *message_ids_by_alias(state),
        *message_ids_by_alias(state).values(),
        *turn_request.pin,
        *turn_request.unpin,
    }
    missing = [name for name in (*joined.pin, *joined.unpin) if name not in there]
    if not missing:
        return joined
    return replace(
        joined,
        pin=tuple(name for name in joined.pin if name in there),
        unpin=tuple(name for name in joined.unpin if name in there),
        warnings=(
            *joined.warnings,
            *(f"{name} is no longer in the prompt, so it is neither pinned nor unpinned." for name in missing),
        ),
    )


# Instead of a name: everything that is attached.
ALL_NAMES = ""
_MAX_LISTED_NAMES = 8
_UNCHANGED_MESSAGE = "{name} is as it was."
_NOT_REREADABLE_MESSAGE = "{name} was given as a text and is not read anew; attach it again."
_READ_FAILED_MESSAGE = "{name} stays as it is: {why}"
_REREAD_MESSAGE = "{name} was read anew; its new text goes with the next turn."
# Messages that answer the command itself. They are not repeated with the warnings of the later turn.
_ONE_TIME_MESSAGES = (_UNCHANGED_MESSAGE, _NOT_REREADABLE_MESSAGE, _REREAD_MESSAGE)


class DropTargets(NamedTuple):
    """The ids that names to drop mean: of artifacts in the prompt, and of attachments that wait for the next turn."""

    in_prompt: tuple[str, ...]
    pending: tuple[str, ...]


class CommandResolver:
    """Resolves commands against the current prompt state and the commands that are already pending."""

    def __init__(
        self,
        adapters: Adapters,
        settings: PromptSettings,
        current_state: tuple[PromptState, TurnSettings],
        *,
        pending: TurnRequest,
    ) -> None:
        self._adapters = adapters
        self._prompt_settings = settings
        self._state, self._turn_settings = current_state
        self._pending = pending

    def resolve(self, turn_request: TurnRequest) -> tuple[TurnRequest, tuple[str, ...], tuple[str, ...]]:
        """Return the command resolved to ids, the names whose pending change is cancelled, and messages.

        If not all notes of a folder fit, the text of ``turn_request`` decides which of them come first.
        """
        sources = self._adapters.open_sources()
        if ALL_NAMES in turn_request.refresh:
            turn_request = replace(turn_request, refresh=self._list_refreshable_names())
        read, messages = self._read_attachments(turn_request, sources)
        detach, cancelled = self._split_names_to_detach_and_cancel(
            self._list_detachable_names() if ALL_NAMES in turn_request.detach else turn_request.detach
        )
        drop = self._resolve_names_to_drop(turn_request.drop)
        pin = tuple(self._resolve_name_to_pin(name) for name in turn_request.pin)
        unpin = tuple(self._resolve_name_to_unpin(name) for name in turn_request.unpin)
        cancelled_pins = self._list_cancelled_pins(pin, unpin)
        pin, unpin = (tuple(name for name in names if name not in cancelled_pins) for names in (pin, unpin))
        later = TurnRequest(
            text="",
            pending_attachments=read,
            detach=detach,
            drop=drop.in_prompt,
            pin=pin,
            unpin=unpin,
            warnings=self._choose_warnings_to_repeat(messages),
        )
        later = (
            replace(later, rules=turn_request.rules, removed_rules=turn_request.removed_rules)
            if turn_request.rules or turn_request.removed_rules
            else later
        )
        cancelled = (*cancelled, *drop.pending, *cancelled_pins)
        joined = merge_requests(self._pending, later, cancelled=cancelled)
        names = droppable_names(self._state)
        return later, cancelled, (*messages, *overridden_command_warnings(self._pending, joined, later, names=names))

    def _read_attachments(
        self, turn_request: TurnRequest, sources: SourceReaders
    ) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
        refreshed, folders, messages = (
            self._reread_attachments(turn_request, sources) if turn_request.refresh else ((), (), [])
        )
        question = turn_request.text or self._last_question()
        reader = AttachmentReader(sources, known=partial(list_linkable_artifacts, self._state), question=question)
        given = with_default_policies(reader.read_attachments(turn_request.attach), turn_request, self._state)
        read = (*refreshed, *self._reread_folders(folders, reader, messages), *given)
        others = {one.id for one in read}, {one.source.via for one in read if one.source.via is not None}
        pending = tuple(
            one
            for one in self._pending.pending_attachments
            if one.id not in others[0] and one.source.via not in others[1]
        )
        warnings = (*reader.warnings, *messages, *dict.fromkeys(sources.warnings))
        turn = Turn(text="", attached=(*pending, *read), turn_settings=self._turn_settings, warnings=warnings)
        if any(one.source.via is not None for one in read):
            turn = with_group_notes_that_fit(
                turn, self._state, self._prompt_settings, rank=self._adapters.rank_notes, question=question
            )
        # By object identity: a pending attachment and a new one may have the same id.
        pending_identities = {id(one) for one in pending}
        fresh = (one for one in turn.attached if id(one) not in pending_identities)
        # A refreshed artifact whose text is unchanged and already in the prompt is not attached again.
        return tuple(
            one for one in fresh if not one.is_fresh or not is_fully_in_prompt(one, self._state)
        ), turn.warnings

    def _reread_folders(
        self, folders: Sequence[UnresolvedAttachment], reader: AttachmentReader, messages: list[str]
    ) -> list[Artifact]:
        """Read the notes of folders and tags again; a folder that cannot be read gives a message."""
        read: list[Artifact] = []
        for one in folders:
            try:
                read += [replace(note, is_fresh=True) for note in reader.read_attachments([one])]
            except BadInputError as error:
                messages.append(_READ_FAILED_MESSAGE.format(name=one.name, why=error.message))
        return read

    def _last_question(self) -> str:
        """Return the last question, which ranks the notes of a folder until another question is asked."""
        last = self._state.last_prompt
        return "" if last is None else last.question.text

    def _reread_attachments(
        self, turn_request: TurnRequest, sources: SourceReaders
    ) -> tuple[tuple[Artifact, ...], tuple[UnresolvedAttachment, ...], list[str]]:
        """Return artifacts whose text changed, folders to select from again, and messages about all of them."""
        known_artifacts = self._list_known_artifacts()
        changed: list[Artifact] = []
        folders: dict[str, UnresolvedAttachment] = {}
        messages: list[str] = []
        by_id = {str(one.id): one for one in known_artifacts}
        for name in dict.fromkeys(turn_request.refresh):
            found = self._match_names(name, known_artifacts, description="known here", label="Known")
            known = by_id[found[0]]
            listed = parse_folder_or_tag_origin(known.source.via or "")
            if listed is not None and (found != [name] or known.kind is listed[0]):
                folders[found[0]] = UnresolvedAttachment(kind=listed[0], name=listed[1])
                continue
            for one in found:
                newer, message = _reread_if_changed(by_id[one], sources)
                changed += [] if newer is None else [newer]
                messages.append(message)
        return tuple(changed), tuple(folders.values()), messages

    def _choose_warnings_to_repeat(self, messages: Sequence[str]) -> tuple[str, ...]:
        """Return those messages that are repeated as warnings of the next turn."""
        names = {name for one in self._list_known_artifacts() for name in (str(one.id), display_name(one))}
        over = {answer.format(name=name) for answer in _ONE_TIME_MESSAGES for name in names}
        return tuple(line for line in messages if line not in over)

    def _list_known_artifacts(self) -> list[Artifact]:
        """Return pending attachments, then the other known artifacts."""
        waiting = {one.id: one for one in self._pending.pending_attachments}
        return [*waiting.values(), *(one for one in list_droppable_artifacts(self._state) if one.id not in waiting)]

    def _list_refreshable_names(self) -> tuple[str, ...]:
        """Return the names of all attached or pending artifacts that were read from a source.

        A folder or tag is named instead of the notes that came with it.
        """
        there = [*self._pending.pending_attachments, *list_working_set(self._state, self._turn_settings)]
        brings = [one.source.via for one in there if (one.source.via or "").startswith(("folder:", "tag:"))]
        alone = [one.id for one in there if one.source.is_rereadable and one.source.via not in brings]
        return tuple(dict.fromkeys(name for name in (*brings, *alone) if name is not None))

    def _list_detachable_names(self) -> tuple[str, ...]:
        """Return everything that can be detached: the working set and the pending attachments."""
        there = [*self._pending.pending_attachments, *list_working_set(self._state, self._turn_settings)]
        return tuple(dict.fromkeys(one.id for one in there))

    def _split_names_to_detach_and_cancel(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        there = list_working_set(self._state, self._turn_settings)
        waiting = self._pending.pending_attachments
        detach: dict[str, None] = {}
        back: dict[str, None] = {}
        for name in names:
            detach |= dict.fromkeys(find_ids_by_name(name, there))
            back |= dict.fromkeys(find_ids_by_name(name, waiting))
            # Raises an error that lists what is attached if the name matches neither.
            self._match_names(name, [*waiting, *there], description="attached", label="Attached")
        return tuple(detach), tuple(back)

    def _resolve_names_to_drop(self, names: Sequence[str]) -> DropTargets:
        """Return the ids that these names mean; raises for an unknown name and for a pinned artifact."""
        present, waiting = list_droppable_artifacts(self._state), self._pending.pending_attachments
        free = {one.id for one in waiting if one.policy is AttachmentPolicy.FOLLOW}
        drop: dict[str, None] = {}
        back: dict[str, None] = {}
        for name in names:
            ids = find_ids_by_name(name, present)
            if not ids and not find_ids_by_name(name, waiting):
                free_now = [one for one in (*waiting, *present) if one.policy is not AttachmentPolicy.PIN]
                _raise_error_with_known_names(f"{name} is not in the prompt.", "To drop", map(display_name, free_now))
            pinned = [
                one.id for one in present if one.id in ids and one.policy is AttachmentPolicy.PIN and one.id not in free
            ]
            if pinned:
                raise _still_pinned_error(pinned[0], pending=self._pending)
            drop |= dict.fromkeys(ids)
            back |= dict.fromkeys(find_ids_by_name(name, waiting))
        return DropTargets(in_prompt=tuple(drop), pending=tuple(back))

    def _resolve_name_to_pin(self, name: str) -> str:
        found = find_ids_by_name(name, [*self._pending.pending_attachments, *self._list_library()])
        if found:
            return found[0]
        ids_by_alias = message_ids_by_alias(self._state)
        if name not in ids_by_alias:
            problem = f"{name} is neither an attachment nor a message of the prompt."
            free = [
                one.id
                for one in (*self._pending.pending_attachments, *self._list_library())
                if one.policy is not AttachmentPolicy.PIN
            ]
            _raise_error_with_known_names(problem, "To pin", [*free, "turn:1", "reply:1 and the like"])
        return ids_by_alias[name]

    def _resolve_name_to_unpin(self, name: str) -> str:
        message_id = message_ids_by_alias(self._state).get(name, name)
        artifacts = [
            one
            for one in (*self._pending.pending_attachments, *self._list_library())
            if one.policy is AttachmentPolicy.PIN
        ]
        pinned = {*(one.id for one in artifacts), *self._pending.pin, *self._state.pinned}
        if message_id not in pinned:
            _raise_error_with_known_names(f"{name} is not pinned.", "Pinned", sorted(pinned))
        return message_id

    def _list_cancelled_pins(self, pin: Sequence[str], unpin: Sequence[str]) -> tuple[str, ...]:
        """Return the names whose pin and unpin cancel each other before either took effect."""
        pinned = {*self._state.pinned, *(one.id for one in self._list_library() if one.policy is AttachmentPolicy.PIN)}
        return (
            *(name for name in unpin if name in self._pending.pin and name not in pinned),
            *(name for name in pin if name in self._pending.unpin and name in pinned),
        )

    def _list_library(self) -> list[Artifact]:
        return [entry.artifact for entry in self._state.library.values()]

    def _match_names(self, name: str, artifacts: Sequence[Artifact], *, description: str, label: str) -> list[str]:
        found = find_ids_by_name(name, artifacts)
        if not found:
            _raise_error_with_known_names(
                f"{name} is not {description}.", label, list(dict.fromkeys(map(display_name, artifacts)))
            )
        return found


def _still_pinned_error(name: str, *, pending: TurnRequest) -> InvalidOperationError:
    if name not in pending.unpin:
        return InvalidOperationError(f"{name} is pinned and stays.", hint="Unpin it first, then drop it.")
    # The turn that unpins an artifact attaches it again, so the same turn cannot drop it.
    return InvalidOperationError(
        f"{name} is unpinned with the next message, and not before.", hint="Once that is sent it can be dropped."
    )


def _reread_if_changed(known: Artifact, sources: SourceReaders) -> tuple[Artifact | None, str]:
    """Return an artifact read again, or None if it is unchanged or unreadable; and a message."""
    attachment = replace(to_unresolved(known), read_again=True)
    if not known.source.is_rereadable or not attachment.name or known.kind is ArtifactKind.IMAGE:
        return None, _NOT_REREADABLE_MESSAGE.format(name=display_name(known))
    try:
        now = sources.read(attachment)
    except BadInputError as error:
        return None, _READ_FAILED_MESSAGE.format(name=known.id, why=error.message)
    if now.hash == known.hash:
        return None, _UNCHANGED_MESSAGE.format(name=known.id)
    return replace(now, is_fresh=True), _REREAD_MESSAGE.format(name=known.id)


def _raise_error_with_known_names(message: str, description: str, names: Iterable[str]) -> NoReturn:
    listed = list(dict.fromkeys(names))
    shown = ", ".join(listed[:_MAX_LISTED_NAMES]) + f" and {len(listed) - _MAX_LISTED_NAMES} more" * (
        len(listed) > _MAX_LISTED_NAMES
    )
    raise InvalidOperationError(message, hint=f"{description}: {shown}." if listed else f"{description}: nothing.")


# Commands as events.


def build_command_batch(later: TurnRequest, cancelled: Iterable[str], *, at: str) -> EventBatch:
    """Build the event of a resolved command; the texts that it attaches are stored with it."""
    event = PendingCommandsEvent(
        attached=tuple(map(to_stored_artifact, later.pending_attachments)),
        detach=later.detach,
        drop=later.drop,
        pin=later.pin,
        unpin=later.unpin,
        cancelled=tuple(cancelled),
        rules=later.rules,
        ended=later.removed_rules,
        warnings=later.warnings,
    )
    return build_event_batch(event, timestamp=at, contents=contents_of_artifacts(later.pending_attachments))


def list_content_hashes(events: Iterable[PendingCommandsEvent]) -> Sequence[str]:
    """Return the content hashes that commands refer to."""
    return tuple(dict.fromkeys(name for event in events for name in event.iter_content_hashes()))


def merge_commands(events: Iterable[PendingCommandsEvent], contents: ContentsByHash) -> TurnRequest:
    """Merge commands into one turn request; erased attachments are left out with a warning."""
    pending = NO_PENDING_COMMANDS
    for event in events:
        attached, gone = read_artifacts(event.attached, contents)
        later = TurnRequest(
            text="",
            pending_attachments=attached,
            detach=event.detach,
            drop=event.drop,
            pin=event.pin,
            unpin=event.unpin,
            rules=event.rules,
            removed_rules=event.ended,
            warnings=(*event.warnings, *(f"{name} was erased and is left out." for name in gone)),
        )
        pending = merge_requests(pending, later, cancelled=event.cancelled)
    return pending
