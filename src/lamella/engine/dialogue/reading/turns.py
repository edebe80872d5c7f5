"""Reading what a turn asks for: files, folders, tags, and whatever its templates name."""

from collections.abc import Iterable, Iterator, Sequence

from lamella.core.artifacts.kinds import KINDS, LATER_KIND, TEXT_KINDS, BlockForm, Medium
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.core.compaction.fitting import Rules
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Attachments, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.headings import PROJECT_OPENING
from lamella.core.prompt.layers.memory import MEMORY_HEADING
from lamella.core.prompt.state import State
from lamella.core.prompt.templates import (
    Expansion,
    Resolution,
    Template,
    TemplateKind,
    expand_instructions,
    expand_typed,
    match_note,
)
from lamella.core.text.content import normalise
from lamella.core.text.patterns import moment_pattern
from lamella.core.values import replace
from lamella.core.workflow.rendering import WORKFLOW_HEADING
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.choosing import choose_notes
from lamella.engine.dialogue.reading.embedded import with_images
from lamella.engine.dialogue.reading.moved import MovedFiles
from lamella.engine.dialogue.reading.pins import read_pins
from lamella.engine.dialogue.reading.rules import read_rules
from lamella.engine.dialogue.reading.working_set import (
    NOTHING_LEAVES,
    follow_sources,
    is_chosen,
    resolve_leaving,
    take_up,
)
from lamella.engine.dialogue.world import World
from lamella.errors import ArtifactError, BadInputError, SourceMissingError
from lamella.holdings import NoteList
from lamella.ports import Sources, no_vault


class TurnReader:
    """One turn's reads. ``known`` are artifacts of earlier turns, for links that no source can answer.

    Files of a codebase are chosen for the ``question``, unless that was attached with one of its own.
    """

    def __init__(self, sources: Sources, *, known: Iterable[Artifact], question: str = "") -> None:
        self._sources = sources
        self._question = question
        self._known = tuple(known)
        # Where nothing was read before, nothing can have been moved.
        self._moved = MovedFiles(self._known, sources.catalog) if self._known else None
        self._attached: tuple[Artifact, ...] = ()
        self.warnings: list[str] = []

    def read_wanted(self, attach: Sequence[Artifact | Wanted]) -> tuple[Artifact, ...]:
        """Every attachment as an artifact; a folder or tag becomes its notes."""
        self._attached = tuple(self._with_images(artifact) for item in attach for artifact in self._read(item))
        self._say_once(self._moved.told if self._moved else ())
        return self._attached

    def _read(self, item: Artifact | Wanted) -> Iterator[Artifact]:
        if isinstance(item, Artifact):
            yield item
            return
        if not item.name and item.data is None:
            raise ArtifactError(f"A {item.kind} attachment has no name.", hint="Give it a `path`, or a `tag`.")
        snapshot = self._snapshot(item)
        if snapshot is not None:
            yield snapshot
        elif KINDS[item.kind].block is BlockForm.EXPANDS:
            yield from self._read_notes(item)
        elif KINDS[item.kind].medium is Medium.CODEBASE:
            yield from self._choose_code(item)
        else:
            yield self._read_anew(item) if item.fresh else self._read_file(item)

    def _read_file(self, item: Wanted) -> Artifact:
        """A file, under the name it is known by if it was moved since."""
        moved = self._moved
        if moved is None:
            return self._sources.read(item)
        try:
            return moved.recognise(self._sources.read(item))
        except SourceMissingError:
            found = moved.find(item.name)
            if found is None:
                raise
        known, place = found
        return moved.rename(self._sources.read(replace(item, name=place)), known)

    def _read_anew(self, item: Wanted) -> Artifact:
        """What is read whatever is kept of it. Where that fails, what was sent stays, and that is said."""
        known = self._find_known(item)
        try:
            found = self._read_file(item)
        except BadInputError as error:
            if known is None:
                raise
            self.warnings.append(f"{known.id} stays as it was sent last: {error.message}")
            return replace(known, kind=item.kind)
        if known is None or known.policy is not Policy.SNAPSHOT or item.policy not in (None, Policy.SNAPSHOT):
            return found
        return found if found.hash == known.hash else replace(found, anew=True)

    def _snapshot(self, item: Wanted) -> Artifact | None:
        """What was attached as a snapshot is not read again, also when its file has gone."""
        if item.fresh or item.policy not in (None, Policy.SNAPSHOT):
            return None
        known = self._find_known(item)
        return replace(known, kind=item.kind) if known is not None and known.policy is Policy.SNAPSHOT else None

    def _find_known(self, item: Wanted) -> Artifact | None:
        """What an earlier turn attached of this."""
        spec = KINDS[item.kind]
        if item.kind not in TEXT_KINDS:
            return None
        by_url = spec.fields[0] == "url"
        source = Source(url=item.name) if by_url else Source(path=item.name, query=item.query)
        name = spec.id_rule(source, "")
        return next((known for known in self._known if known.id == name), None)

    def _with_images(self, artifact: Artifact) -> Artifact:
        if not artifact.has_images or artifact.images:
            return artifact
        shown, told = with_images(artifact, self._sources)
        self.warnings += told
        return shown

    def _read_notes(self, item: Wanted) -> Iterator[Artifact]:
        catalog = self._sources.catalog
        if catalog is None:
            raise no_vault(item.name)
        listed = catalog.list_notes(item.kind, item.name)
        if not listed.paths:
            self.warnings.append(f"The {item.kind} {item.name} holds no notes; nothing was attached for it.")
        self._say_missing(listed)
        yield from self._read_each(listed.paths, via=f"{item.kind}:{item.name}", policy=item.policy)

    def _choose_code(self, item: Wanted) -> Sequence[Artifact]:
        chooser = self._sources.code
        if chooser is None:
            raise no_vault(item.name)
        question = item.query or self._question
        # What came by a choice before does not choose itself again.
        touched = {one.source.path for one in self._known if one.source.path and not is_chosen(one)}
        chosen, told = chooser.choose(item, question=question, touched=touched)
        self._say_once(told)
        return chosen

    def _read_note(self, path: str, *, via: str, policy: Policy | None = None) -> Artifact:
        return self._read_file(Wanted(kind=Kind.NOTE, name=path, via=via, policy=policy))

    def _read_each(self, paths: Iterable[str], *, via: str, policy: Policy | None = None) -> Iterator[Artifact]:
        """Those of many notes that can be read: one that cannot is said, and stops none of the others."""
        for path in paths:
            try:
                yield self._read_note(path, via=via, policy=policy)
            except BadInputError as error:
                self._say_once([f"Left out: {error.message}"])

    def _say_missing(self, listed: NoteList) -> None:
        """What is not in a list although somebody may look for it there."""
        self._say_once(
            f"{path} is left out: links out of the vault or to a folder are not followed." for path in listed.links
        )
        self._say_once(f"Not searched for tags: {why}" for why in listed.unread)
        self._say_once(f"Left out: {why}" for why in listed.left_out)

    def _say_once(self, warnings: Iterable[str]) -> None:
        """What two tags or folders of a turn leave out is left out once."""
        self.warnings += [warning for warning in warnings if warning not in self.warnings]

    def resolve(self, template: Template) -> Resolution:
        """What a template names, from what is attached or known, else from the vault."""
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

    def _resolve_active(self) -> Resolution:
        active = next(iter(_named_by(TemplateKind.ACTIVE_NOTE, self._attached)), None)
        if active is None:
            return Resolution(why="no active note is attached.")
        return Resolution(id=active.id, artifacts=(active,))

    def _resolve_selection(self) -> Resolution:
        selected = tuple(_named_by(TemplateKind.SELECTION, self._attached))
        if not selected:
            return Resolution()
        return Resolution(id='", "'.join(a.id for a in selected), artifacts=selected)

    def _resolve_note(self, name: str) -> Resolution:
        """A link means what is attached now, else what the vault has, else what an earlier turn attached."""
        catalog = self._sources.catalog
        notes = match_note(name, _named_by(TemplateKind.NOTE, self._attached))
        paths = catalog.find_note(name) if catalog and not notes else ()
        if len(paths) == 1:
            notes = (self._read_note(paths[0], via="template"),)
        elif not notes and not paths:
            notes = match_note(name, _named_by(TemplateKind.NOTE, self._known))
        found = list(dict.fromkeys((*(note.id for note in notes), *paths)))
        if not found:
            return Resolution(why=f"no note is called {name}.")
        if len(found) > 1:
            return Resolution(
                why=f"{len(found)} notes are called {name}: {', '.join(found[:3])}. Name one by its path."
            )
        return Resolution(id=notes[0].id, artifacts=(notes[0],))

    def _resolve_tags(self, names: str) -> Resolution:
        tags = [name.strip() for name in names.split(",")]
        catalog = self._sources.catalog
        listed = {tag: catalog.list_notes(Kind.TAG, tag) for tag in tags} if catalog else {}
        paths = sorted({path for found in listed.values() for path in found.paths})
        for found in listed.values():
            self._say_missing(found)
        if not paths:
            return Resolution(why=f"no note carries {names}.")
        empty = (tag for tag in tags if not listed[tag].paths)
        self.warnings += [f"No note carries {tag}; nothing was attached for it." for tag in empty]
        notes = tuple(self._read_each(paths, via=f"template:{names}"))
        return Resolution(id=", ".join(tags), artifacts=notes)

    def _resolve_folder(self, name: str) -> Resolution:
        catalog = self._sources.catalog
        if catalog is None or not catalog.has_folder(name):
            return Resolution()
        listed = catalog.list_notes(Kind.FOLDER, name)
        notes = tuple(self._read_each(listed.paths, via=f"template:{name}"))
        self._say_missing(listed)
        if not notes:
            return Resolution(why="the folder holds no notes.")
        return Resolution(id=name, artifacts=notes)


def _named_by(template: TemplateKind, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Those that a template of this kind can mean."""
    return [artifact for artifact in artifacts if template in KINDS[artifact.kind].templates]


def read_turn(
    asked: Ask, state: State, world: World, *, terms: Terms, rules: Rules, receipts: Sequence[Receipt] = ()
) -> Turn:
    """What is asked, once everything that it names is read and its templates are expanded.

    ``receipts`` are compactions that it is the first to be asked under.
    """
    sources = world.sources()
    reader = TurnReader(sources, known=list_newest(state), question=asked.text)
    pins = asked.pin or asked.unpin or asked.pinned is not None
    again, pinned = read_pins(asked, state, receipts) if pins else ((), None)
    attached = settle_policies(reader.read_wanted(asked.attach), asked, state)
    expands = "{" in asked.text and not asked.verbatim
    typed = expand_typed(asked.text, reader.resolve) if expands else Expansion(text=asked.text)
    changes = asked.system or "{" in state.system.typed_instructions
    system, told = _read_system(asked, state, reader) if changes else (None, ())
    drop, detach, said = NOTHING_LEAVES
    if asked.drop or asked.detach:
        drop, detach, said = resolve_leaving(asked, state, terms, system=system or state.system)
    attached = (*attached, *typed.artifacts)
    attached = share_policies(attached) if len(attached) > 1 else attached
    if asked.earlier:
        earlier, told_of = take_up(asked.earlier, sources, terms, but={artifact.id for artifact in attached})
        attached, said = (*earlier, *attached), (*told_of, *said)
    if terms.attachments is Attachments.STICKY:
        but = {*drop, *detach, *(artifact.id for artifact in attached)}
        changed, told_of = follow_sources(state, sources, but=but)
        attached, said = (*attached, *changed), (*said, *told_of)
    attached = _attach_again(attached, again) if again else attached
    turn = Turn(
        text=typed.text,
        typed=asked.text,
        attached=attached,
        results=asked.results,
        system=system,
        # What is told of already is not written down once more.
        tools=None if asked.tools == state.tools and state.turns else asked.tools,
        model=asked.model or (state.model if state.terms is None else None),
        drop=drop,
        detach=detach,
        fold=asked.fold,
        pinned=pinned,
        rules=read_rules(asked, state) if asked.rules or asked.ended or asked.book is not None else None,
        terms=terms,
        sources=asked.sources,
        warnings=(*asked.warnings, *reader.warnings, *typed.warnings, *told, *said, *dict.fromkeys(sources.told)),
    )
    if any(one.source.via is not None for one in attached):
        return choose_notes(turn, state, rules, rank=world.rank)
    return turn


def settle_policies(attached: tuple[Artifact, ...], asked: Ask, state: State) -> tuple[Artifact, ...]:
    """What is new has the policy of its kind where none is given; what is known goes on as it does."""
    if not any(one.policy is None and KINDS[one.kind].policy for one in attached):
        return attached
    given = {one.id for one in attached if one.policy is not None}
    dropped = {name for name in asked.drop if name in state.library and not _is_pinned(state, name)}
    known = given | (state.library.keys() - dropped)
    return tuple(one if one.id in known else replace(one, policy=KINDS[one.kind].policy) for one in attached)


def share_policies(attached: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """A policy that is given for an artifact is given for it however else the turn names it, by a tag for example."""
    given = {one.id: one.policy for one in attached if one.policy is not None}
    return tuple(
        replace(one, policy=given[one.id]) if one.policy is None and one.id in given else one for one in attached
    )


def _attach_again(attached: tuple[Artifact, ...], again: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """What is attached, and what has another policy from now on: in the text that comes now, if one does."""
    policies = {one.id: one.policy for one in again}
    now = {one.id for one in attached}
    kept = tuple(replace(one, policy=policies[one.id]) if one.id in policies else one for one in attached)
    return (*kept, *(one for one in again if one.id not in now))


def _is_pinned(state: State, name: str) -> bool:
    return state.library[name].artifact.policy is Policy.PIN


def _read_system(asked: Ask, state: State, reader: TurnReader) -> tuple[SystemParts | None, tuple[str, ...]]:
    """The system prompt with what its templates mean now, none where it is as it was; and what is to be said of it."""
    parts = {**state.system.as_typed(), **{name: normalise(text) for name, text in asked.system.items()}}
    instructions = parts.get("instructions", "")
    drawn = expand_instructions(instructions, reader.resolve) if "{" in instructions else Expansion(text=instructions)
    system = SystemParts(
        **{**parts, "instructions": drawn.text}, inlined=drawn.artifacts, typed_instructions=instructions
    )
    return None if system == state.system else system, (*drawn.warnings, *_warn_of_moments(system, state.system))


def _warn_of_moments(system: SystemParts, before: SystemParts) -> Iterator[str]:
    """What is to be said of dates and times in parts that are new; a note that instructions draw in may have some."""
    known = before.as_typed()
    for name, text in system.as_typed().items():
        # Days of earlier conversations are what they were, whatever day it is; so are those that work is about, and
        # those that files are named by.
        ours = text == known.get(name, "") or text.startswith((MEMORY_HEADING, WORKFLOW_HEADING, PROJECT_OPENING))
        found = None if ours else moment_pattern().search(text)
        if found is not None:
            yield (
                f'The system prompt\'s {name} has a date or a time in it, "{found.group()}". Each time it changes, all '
                "that was cached is sent anew: put it into the question."
            )


def list_newest(state: State) -> list[Artifact]:
    """What a link can mean without reading: what is known, as it is in a later turn, with its whole text."""
    known = [entry.artifact for entry in state.library.values()]
    plain = [one.condensed is None and one.kind is LATER_KIND[one.kind] for one in known]
    return [
        one if is_plain else replace(one, kind=LATER_KIND[one.kind], condensed=None)
        for one, is_plain in zip(known, plain, strict=True)
    ]
