"""Read everything that a turn request names: files, folders, tags, templates and embedded images.

``read_turn`` builds the turn from a request, with an ``AttachmentResolver`` for its attachments. ``load_embedded_images`` adds
the images that the active note embeds; an image that cannot be sent gives a warning. ``check_no_secrets`` and
``with_secret_warnings`` refuse or report secrets in texts for a remote model. Messages never repeat a secret.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from lamella.conversation.adapters import Adapters
from lamella.conversation.library import (
    NOTHING_REMOVED,
    MovedFileFinder,
    is_from_codebase,
    refresh_earlier_attachments,
    reread_changed_sticky_attachments,
    resolve_drops_and_detaches,
    resolve_pins,
)
from lamella.conversation.note_selection import with_group_notes_that_fit
from lamella.conversation.rules import merge_rule_changes
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.embeds import embedded_images, is_url
from lamella.core.artifacts.kinds import KINDS, LIBRARY_KIND, TEXT_KINDS, BlockFormat, EmbedHandling, SourceMedium
from lamella.core.artifacts.model import (
    Artifact,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    ImageData,
    UnresolvedAttachment,
)
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import AttachmentMode, SecretPolicy, SystemParts, Turn, TurnSettings
from lamella.core.messages import PROJECT_INTRO, Message
from lamella.core.prompt.layers.model import MEMORY_HEADING
from lamella.core.prompt.rules import render_user_rules
from lamella.core.prompt.state import PromptState
from lamella.core.prompt.templates import (
    Template,
    TemplateExpansion,
    TemplateKind,
    TemplateResolution,
    expand_instructions,
    expand_typed_text,
    find_matching_notes,
)
from lamella.core.text.content import hash_text, is_web_address, normalize_line_ends
from lamella.core.text.exact_terms import date_time_pattern
from lamella.core.values import replace
from lamella.core.workflow.system_part import WORKFLOW_HEADINGS
from lamella.errors import ArtifactError, BadInputError, SecretError, SourceNotFoundError, SourceUnreachableError
from lamella.ports import NO_VAULT_MESSAGE, NoteList, SecretScanner, SourceReaders, no_vault_error

# Limits on images and bytes per note. The text of a note must not decide how much of the disk is read for a turn.
MAX_IMAGES = 100
MAX_IMAGE_BYTES = 100_000_000
# After this many unreachable URLs the rest are not tried: each may take a full timeout while the user waits.
MAX_UNREACHABLE_IMAGES = 2
_MAX_LISTED_WARNINGS = 10
_MAX_TARGET_CHARS = 200


def load_embedded_images(note: Artifact, sources: SourceReaders) -> tuple[Artifact, tuple[str, ...]]:
    """Return the active note with its embedded images, and warnings about images that are missing.

    Notes of other kinds are returned unchanged.
    """
    if KINDS[note.kind].embed_handling is not EmbedHandling.SENT:
        return note, ()
    targets, failures = embedded_images(note.text), list[str]()
    images = tuple(_read_images(targets[:MAX_IMAGES], note=note, sources=sources, failures=failures))
    warnings = [f"An image of {note.id} is not sent: {why}" for why in dict.fromkeys(failures[:_MAX_LISTED_WARNINGS])]
    omitted = max(0, len(failures) - _MAX_LISTED_WARNINGS) + max(0, len(targets) - MAX_IMAGES)
    if omitted:
        warnings.append(f"{omitted:,} more images of {note.id} are not sent; at most {MAX_IMAGES} of a note are read.")
    return replace(note, images=images), tuple(warnings)


def _read_images(
    targets: tuple[str, ...], *, note: Artifact, sources: SourceReaders, failures: list[str]
) -> Iterator[ImageData]:
    read = unreached = 0
    for target in targets:
        try:
            if is_web_address(target) and unreached >= MAX_UNREACHABLE_IMAGES:
                raise SourceUnreachableError(
                    f"{MAX_UNREACHABLE_IMAGES} others could not be reached.", hint="Try again later."
                )
            if read > MAX_IMAGE_BYTES:
                raise BadInputError(
                    f"its others have {read:,} bytes already, and {MAX_IMAGE_BYTES:,} are read for a note.",
                    hint="Embed fewer of them, or attach the ones that matter.",
                )
            for image in sources.read(
                UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=_resolve_image_name(target, note, sources))
            ).images:
                read += len(image.data)
                yield image
        except BadInputError as error:
            unreached += isinstance(error, SourceUnreachableError)
            failures.append(
                f"{_truncate_image_name(target)} stays a link. {error.message}"
                if is_web_address(target)
                else error.message
            )


def _truncate_image_name(target: str) -> str:
    return target if len(target) <= _MAX_TARGET_CHARS else f"{target[:_MAX_TARGET_CHARS]}…"


def _resolve_image_name(target: str, note: Artifact, sources: SourceReaders) -> str:
    """Return the name by which an image is read: its URL, or its path in the vault."""
    if is_url(target):
        return target
    if sources.catalog is None:
        raise SourceNotFoundError(NO_VAULT_MESSAGE, hint="Name a vault, or attach the picture.")
    return sources.catalog.resolve_embed_path(target, note_path=note.id)


# Attachments and templates.


class AttachmentReader:
    """Reads the attachments and templates of one turn.

    ``known`` lists the artifacts of earlier turns, for links that no source can resolve. ``question`` selects the files of a
    codebase, unless the codebase was attached with a question of its own.
    """

    def __init__(self, sources: SourceReaders, *, known: Callable[[], Iterable[Artifact]], question: str = "") -> None:
        self._sources = sources
        self._question = question
        self._list_known = known
        self._attached: tuple[Artifact, ...] = ()
        self.warnings: list[str] = []

    @cached_property
    def _earlier_artifacts(self) -> tuple[Artifact, ...]:
        # Most turns attach texts, and need no list of what is known.
        return tuple(self._list_known())

    @cached_property
    def _moved_files(self) -> MovedFileFinder | None:
        # Only files that earlier turns read can have been moved.
        return MovedFileFinder(self._earlier_artifacts, self._sources.catalog) if self._earlier_artifacts else None

    def read_attachments(self, attach: Sequence[Artifact | UnresolvedAttachment]) -> tuple[Artifact, ...]:
        """Return every attachment as artifacts; a folder or tag becomes its notes."""
        self._attached = tuple(
            self._with_images(artifact) for item in attach for artifact in self._read_attachment(item)
        )
        if any(isinstance(item, UnresolvedAttachment) for item in attach):
            self._warn_once(self._moved_files.warnings if self._moved_files else ())
        return self._attached

    def _read_attachment(self, item: Artifact | UnresolvedAttachment) -> Iterator[Artifact]:
        if isinstance(item, Artifact):
            yield item
            return
        if not item.name and item.data is None:
            raise ArtifactError(f"A {item.kind} attachment has no name.", hint="Give it a `path`, or a `tag`.")
        snapshot = self._find_snapshot(item)
        if snapshot is not None:
            yield snapshot
        elif KINDS[item.kind].block_format is BlockFormat.EXPANDS:
            yield from self._read_notes(item)
        elif KINDS[item.kind].medium is SourceMedium.CODEBASE:
            yield from self._select_code(item)
        else:
            yield self._read_again_or_keep(item) if item.read_again else self._read_file(item)

    def _read_file(self, attachment: UnresolvedAttachment) -> Artifact:
        """Read a file; if it was moved, it keeps the name it is known by."""
        moved = self._moved_files
        if moved is None:
            return self._sources.read(attachment)
        try:
            return moved.rename_if_moved(self._sources.read(attachment))
        except SourceNotFoundError:
            found = moved.find_moved(attachment.name)
            if found is None:
                raise
        known, place = found
        return moved.with_known_name(self._sources.read(replace(attachment, name=place)), known)

    def _read_again_or_keep(self, attachment: UnresolvedAttachment) -> Artifact:
        """Read an attachment without using cached copies; if that fails, keep the text sent before and warn."""
        known = self._find_earlier_artifact(attachment)
        try:
            found = self._read_file(attachment)
        except BadInputError as error:
            if known is None:
                raise
            self.warnings.append(f"{known.id} stays as it was sent last: {error.message}")
            return replace(known, kind=attachment.kind)
        if (
            known is None
            or known.policy is not AttachmentPolicy.SNAPSHOT
            or attachment.policy not in (None, AttachmentPolicy.SNAPSHOT)
        ):
            return found
        return found if found.hash == known.hash else replace(found, is_fresh=True)

    def _find_snapshot(self, attachment: UnresolvedAttachment) -> Artifact | None:
        """Return the snapshot that an earlier turn attached, or None.

        A snapshot is not read again, even if its file is gone.
        """
        if attachment.read_again or attachment.policy not in (None, AttachmentPolicy.SNAPSHOT):
            return None
        known = self._find_earlier_artifact(attachment)
        return (
            replace(known, kind=attachment.kind)
            if known is not None and known.policy is AttachmentPolicy.SNAPSHOT
            else None
        )

    def _find_earlier_artifact(self, attachment: UnresolvedAttachment) -> Artifact | None:
        """Return the artifact that an earlier turn attached under this name, or None."""
        spec = KINDS[attachment.kind]
        if attachment.kind not in TEXT_KINDS:
            return None
        by_url = spec.fields[0] == "url"
        source = (
            ArtifactSource(url=attachment.name)
            if by_url
            else ArtifactSource(path=attachment.name, query=attachment.query)
        )
        name = spec.id_rule(source, "")
        return next((known for known in self._earlier_artifacts if known.id == name), None)

    def _with_images(self, artifact: Artifact) -> Artifact:
        if not artifact.has_images or artifact.images:
            return artifact
        shown, warnings = load_embedded_images(artifact, self._sources)
        self.warnings += warnings
        return shown

    def _read_notes(self, attachment: UnresolvedAttachment) -> Iterator[Artifact]:
        catalog = self._sources.catalog
        if catalog is None:
            raise no_vault_error(attachment.name)
        listed = catalog.list_notes(attachment.kind, attachment.name)
        if not listed.paths:
            self.warnings.append(
                f"The {attachment.kind} {attachment.name} holds no notes; nothing was attached for it."
            )
        self._warn_omitted(listed)
        yield from self._read_notes_at(
            listed.paths, via=f"{attachment.kind}:{attachment.name}", policy=attachment.policy
        )

    def _select_code(self, attachment: UnresolvedAttachment) -> Sequence[Artifact]:
        chooser = self._sources.code
        if chooser is None:
            raise no_vault_error(attachment.name)
        question = attachment.query or self._question
        # Files of an earlier selection must not influence the next one.
        touched = {one.source.path for one in self._earlier_artifacts if one.source.path and not is_from_codebase(one)}
        chosen, warnings = chooser.select_files(attachment, question=question, recent_paths=touched)
        self._warn_once(warnings)
        return chosen

    def _read_note(self, path: str, *, via: str, policy: AttachmentPolicy | None = None) -> Artifact:
        return self._read_file(UnresolvedAttachment(kind=ArtifactKind.NOTE, name=path, via=via, policy=policy))

    def _read_notes_at(
        self, paths: Iterable[str], *, via: str, policy: AttachmentPolicy | None = None
    ) -> Iterator[Artifact]:
        """Yield the notes that can be read; each of the others gives a warning."""
        for path in paths:
            try:
                yield self._read_note(path, via=via, policy=policy)
            except BadInputError as error:
                self._warn_once([f"Left out: {error.message}"])

    def _warn_omitted(self, listed: NoteList) -> None:
        """Warn about notes that a user may expect in a list but that are not in it."""
        self._warn_once(
            f"{path} is left out: links out of the vault or to a folder are not followed."
            for path in listed.skipped_links
        )
        self._warn_once(f"Not searched for tags: {why}" for why in listed.unreadable)
        self._warn_once(f"Left out: {why}" for why in listed.left_out)

    def _warn_once(self, warnings: Iterable[str]) -> None:
        """Add warnings without duplicates; two folders or tags may omit the same note."""
        self.warnings += [warning for warning in warnings if warning not in self.warnings]

    def resolve_template(self, template: Template) -> TemplateResolution:
        """Return what a template names, from attached or known artifacts or from the vault."""
        match template.kind:
            case TemplateKind.ACTIVE_NOTE:
                return self._resolve_active()
            case TemplateKind.SELECTION:
                return self._resolve_selection()
            case TemplateKind.NOTE:
                return self._resolve_note(template.name)
            case TemplateKind.TAG:
                return self._resolve_tags(template.name)
            case TemplateKind.FOLDER:
                return self._resolve_folder(template.name)

    def _resolve_active(self) -> TemplateResolution:
        active = next(iter(_artifacts_for_template(TemplateKind.ACTIVE_NOTE, self._attached)), None)
        if active is None:
            return TemplateResolution(reason="no active note is attached.")
        return TemplateResolution(id=active.id, artifacts=(active,))

    def _resolve_selection(self) -> TemplateResolution:
        selected = tuple(_artifacts_for_template(TemplateKind.SELECTION, self._attached))
        if not selected:
            return TemplateResolution()
        return TemplateResolution(id='", "'.join(a.id for a in selected), artifacts=selected)

    def _resolve_note(self, name: str) -> TemplateResolution:
        """Resolve a link: first among this turn's attachments, then in the vault, then among earlier attachments."""
        catalog = self._sources.catalog
        notes = find_matching_notes(name, _artifacts_for_template(TemplateKind.NOTE, self._attached))
        paths = catalog.find_notes_named(name) if catalog and not notes else ()
        if len(paths) == 1:
            notes = (self._read_note(paths[0], via="template"),)
        elif not notes and not paths:
            notes = find_matching_notes(name, _artifacts_for_template(TemplateKind.NOTE, self._earlier_artifacts))
        found = list(dict.fromkeys((*(note.id for note in notes), *paths)))
        if not found:
            return TemplateResolution(reason=f"no note is called {name}.")
        if len(found) > 1:
            return TemplateResolution(
                reason=f"{len(found)} notes are called {name}: {', '.join(found[:3])}. Name one by its path."
            )
        return TemplateResolution(id=notes[0].id, artifacts=(notes[0],))

    def _resolve_tags(self, names: str) -> TemplateResolution:
        tags = [name.strip() for name in names.split(",")]
        catalog = self._sources.catalog
        listed = {tag: catalog.list_notes(ArtifactKind.TAG, tag) for tag in tags} if catalog else {}
        paths = sorted({path for found in listed.values() for path in found.paths})
        for found in listed.values():
            self._warn_omitted(found)
        if not paths:
            return TemplateResolution(reason=f"no note carries {names}.")
        empty = (tag for tag in tags if not listed[tag].paths)
        self.warnings += [f"No note carries {tag}; nothing was attached for it." for tag in empty]
        notes = tuple(self._read_notes_at(paths, via=f"template:{names}"))
        return TemplateResolution(id=", ".join(tags), artifacts=notes)

    def _resolve_folder(self, name: str) -> TemplateResolution:
        catalog = self._sources.catalog
        if catalog is None or not catalog.has_folder(name):
            return TemplateResolution()
        listed = catalog.list_notes(ArtifactKind.FOLDER, name)
        notes = tuple(self._read_notes_at(listed.paths, via=f"template:{name}"))
        self._warn_omitted(listed)
        if not notes:
            return TemplateResolution(reason="the folder holds no notes.")
        return TemplateResolution(id=name, artifacts=notes)


def _artifacts_for_template(template: TemplateKind, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return the artifacts that a template of this kind can mean."""
    return [artifact for artifact in artifacts if template in KINDS[artifact.kind].templates]


def read_turn(
    turn_request: TurnRequest,
    state: PromptState,
    adapters: Adapters,
    *,
    turn_settings: TurnSettings,
    settings: PromptSettings,
    receipts: Sequence[CompactionReceipt] = (),
) -> Turn:
    """Build the turn from a request: read everything it names and expand its templates.

    ``receipts`` are compactions that no earlier turn was asked under.
    """
    sources = adapters.open_sources()
    reader = AttachmentReader(sources, known=partial(list_linkable_artifacts, state), question=turn_request.text)
    pins = turn_request.pin or turn_request.unpin or turn_request.previously_pinned is not None
    policy_changes, pinned = resolve_pins(turn_request, state, receipts) if pins else ((), None)
    attached = with_default_policies(reader.read_attachments(turn_request.attach), turn_request, state)
    expands = "{" in turn_request.text and not turn_request.is_verbatim
    expansion = (
        expand_typed_text(turn_request.text, reader.resolve_template)
        if expands
        else TemplateExpansion(text=turn_request.text)
    )
    rules = (
        merge_rule_changes(turn_request, state)
        if turn_request.rules or turn_request.removed_rules or turn_request.rule_changes is not None
        else None
    )
    if rules is not None:
        turn_request = replace(turn_request, system={**turn_request.system, "rules": render_user_rules(rules)})
    changes = turn_request.system or "{" in state.system.typed_instructions
    system, system_warnings = _read_system(turn_request, state, reader) if changes else (None, ())
    drop, detach, warnings = NOTHING_REMOVED
    if turn_request.drop or turn_request.detach:
        drop, detach, warnings = resolve_drops_and_detaches(
            turn_request, state, turn_settings, system=system or state.system
        )
    attached = (*attached, *expansion.artifacts)
    attached = apply_given_policy_to_every_mention(attached) if len(attached) > 1 else attached
    if turn_request.pending_attachments:
        earlier, new_warnings = refresh_earlier_attachments(
            turn_request.pending_attachments, sources, turn_settings, except_for={artifact.id for artifact in attached}
        )
        attached, warnings = (*earlier, *attached), (*new_warnings, *warnings)
    if turn_settings.attachments is AttachmentMode.STICKY:
        excluded_ids = {*drop, *detach, *(artifact.id for artifact in attached)}
        reread = reread_changed_sticky_attachments(state, sources, except_for=excluded_ids)
        attached, warnings = (*attached, *reread.changed), (*warnings, *reread.warnings)
    attached = _with_changed_policies(attached, policy_changes) if policy_changes else attached
    turn = Turn(
        text=expansion.text,
        typed=turn_request.text,
        attached=attached,
        tool_results=turn_request.results,
        system=system,
        # Tools that are unchanged are not stored with the turn again.
        tools=None if turn_request.tools == state.tools and state.turn_count else turn_request.tools,
        model=turn_request.model or (state.model if state.turn_settings is None else None),
        drop=drop,
        detach=detach,
        fold=turn_request.fold,
        pinned=pinned,
        rules=rules,
        turn_settings=turn_settings,
        names_images=any(artifact.kind is ArtifactKind.IMAGE for artifact in attached),
        sources=turn_request.citations,
        warnings=(
            *turn_request.warnings,
            *reader.warnings,
            *expansion.warnings,
            *system_warnings,
            *warnings,
            *dict.fromkeys(sources.warnings),
        ),
    )
    if any(one.source.via is not None for one in attached):
        return with_group_notes_that_fit(turn, state, settings, rank=adapters.rank_notes)
    return turn


def with_default_policies(
    attached: tuple[Artifact, ...], turn_request: TurnRequest, state: PromptState
) -> tuple[Artifact, ...]:
    """Give new artifacts without a policy the default policy of their kind; known artifacts keep theirs."""
    if not any(one.policy is None and KINDS[one.kind].policy for one in attached):
        return attached
    given = {one.id for one in attached if one.policy is not None}
    dropped = {name for name in turn_request.drop if name in state.library and not _is_pinned(state, name)}
    return tuple(
        one
        if one.id in given or (one.id in state.library and one.id not in dropped)
        else replace(one, policy=KINDS[one.kind].policy)
        for one in attached
    )


def apply_given_policy_to_every_mention(attached: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Apply a policy given for an artifact to every mention of it in the turn, for example through a tag."""
    given = {one.id: one.policy for one in attached if one.policy is not None}
    return tuple(
        replace(one, policy=given[one.id]) if one.policy is None and one.id in given else one for one in attached
    )


def _with_changed_policies(attached: tuple[Artifact, ...], policy_changes: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """Return the attachments with changed policies, plus artifacts attached only to change their policy.

    If the turn attaches an artifact with a newer text, that text stays.
    """
    policies = {one.id: one.policy for one in policy_changes}
    now = {one.id for one in attached}
    updated = tuple(replace(one, policy=policies[one.id]) if one.id in policies else one for one in attached)
    return (*updated, *(one for one in policy_changes if one.id not in now))


def _is_pinned(state: PromptState, name: str) -> bool:
    return state.library[name].artifact.policy is AttachmentPolicy.PIN


def _read_system(
    turn_request: TurnRequest, state: PromptState, reader: AttachmentReader
) -> tuple[SystemParts | None, tuple[str, ...]]:
    """Return the system prompt with its templates expanded, or None if unchanged; and warnings."""
    parts = {
        **state.system.typed_parts(),
        **{name: normalize_line_ends(text) for name, text in turn_request.system.items()},
    }
    instructions = parts.get("instructions", "")
    drawn = (
        expand_instructions(instructions, reader.resolve_template)
        if "{" in instructions
        else TemplateExpansion(text=instructions)
    )
    system = SystemParts(
        **{**parts, "instructions": drawn.text}, inlined=drawn.artifacts, typed_instructions=instructions
    )
    return None if system == state.system else system, (*drawn.warnings, *_warn_about_times(system, state.system))


def _warn_about_times(system: SystemParts, previous_system: SystemParts) -> Iterator[str]:
    """Warn about dates and times in changed system prompt parts, including notes that instructions include."""
    known = previous_system.typed_parts()
    for name, text in system.typed_parts().items():
        # Parts that Lamella writes itself are exempt. Dates in memory, in a workflow's data and in file names do not
        # change with the current day.
        ours = (
            name == "rules"
            or text == known.get(name, "")
            or text.startswith((MEMORY_HEADING, *WORKFLOW_HEADINGS, PROJECT_INTRO))
        )
        found = None if ours else date_time_pattern().search(text)
        if found is not None:
            yield (
                f'The system prompt\'s {name} has a date or a time in it, "{found.group()}". Each time it changes, all '
                "that was cached is sent anew: put it into the question."
            )


def list_linkable_artifacts(state: PromptState) -> list[Artifact]:
    """Return the known artifacts that a link can mean, with their full text and the kind for later turns."""
    known = [entry.artifact for entry in state.library.values()]
    plain = [one.condensed is None and one.kind is LIBRARY_KIND[one.kind] for one in known]
    return [
        one if is_plain else replace(one, kind=LIBRARY_KIND[one.kind], condensed=None)
        for one, is_plain in zip(known, plain, strict=True)
    ]


# Secrets in texts that are sent to a model.

# A text that is sent to a model, after a name for it that users know.
LabeledText = tuple[str, str]
_UNNAMED_MODEL = "a model"


def with_secret_warnings(
    turn: Turn, state: PromptState, texts: Iterable[LabeledText], *, scanner: SecretScanner, policy: SecretPolicy
) -> Turn:
    """Return the turn with a warning for each secret in texts that it is the first to send.

    Raises ``SecretError`` if the policy refuses secrets.
    """
    model = turn.model or state.model
    places = _describe_secret_locations(texts, scanner, model=model)
    if places and policy is SecretPolicy.REFUSE:
        raise SecretError(places, model=model or _UNNAMED_MODEL)
    warnings = [f"{place}, and goes to {model or _UNNAMED_MODEL}." for place in places]
    return replace(turn, warnings=(*turn.warnings, *(line for line in warnings if line not in turn.warnings)))


def check_no_secrets(
    texts: Sequence[LabeledText], *, model: str, scanner: SecretScanner | None, policy: SecretPolicy
) -> None:
    """Raise ``SecretError`` if a text looks like a secret, goes to a remote model, and the policy refuses that."""
    if scanner is None or policy is not SecretPolicy.REFUSE:
        return
    if any(anchor in text for _, text in texts for anchor in scanner.anchors):
        places = _describe_secret_locations(texts, scanner, model=model)
        if places:
            raise SecretError(places, model=model)


def _describe_secret_locations(texts: Iterable[LabeledText], scanner: SecretScanner, *, model: str | None) -> list[str]:
    """Describe where secrets are in texts for a remote model, without repeating them; empty for a local model."""
    if model is not None and scanner.is_local_model(model):
        return []
    return [
        f"Line {line:,} of {name} looks like {what}"
        for name, text in texts
        for line, what in scanner.find_secrets(text, hash_text(text))
    ]


def secret_warnings(
    messages: Sequence[Message], model: str, *, scanner: SecretScanner | None, policy: SecretPolicy
) -> list[str]:
    """Describe the kinds of secrets in messages for a remote model, without repeating them."""
    if scanner is None or policy is SecretPolicy.OFF or scanner.is_local_model(model):
        return []
    texts = [message.text for message in messages]
    kinds = [kind for text in texts for _, kind in scanner.find_secrets(text, hash_text(text))]
    return [f"looks like {kind}" for kind in dict.fromkeys(kinds)]
