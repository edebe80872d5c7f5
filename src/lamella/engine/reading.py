"""Reading what a turn asks for: files, folders, tags, and whatever its templates name."""

from collections.abc import Iterable, Iterator, Sequence

from lamella.core.artifacts.ids import path_id
from lamella.core.artifacts.make import make_image
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.prompt.templates import Resolved, Template, TemplateKind, match_note
from lamella.core.values import replace
from lamella.engine.ask import Wanted
from lamella.errors import ArtifactError, SourceMissingError
from lamella.ports import SourceReader

_NOTES = (Kind.NOTE, Kind.ACTIVE_NOTE)


class Reading:
    """One turn's reads. ``known`` are artifacts of earlier turns, for links that no source can answer."""

    def __init__(self, sources: SourceReader | None, *, known: Iterable[Artifact]) -> None:
        self._sources = sources.glance() if sources is not None else None
        self._known = tuple(known)
        self._attached: tuple[Artifact, ...] = ()
        self.warnings: list[str] = []

    def read_wanted(self, attach: Sequence[Artifact | Wanted]) -> tuple[Artifact, ...]:
        """Every attachment as an artifact; a folder or tag becomes its notes."""
        self._attached = tuple(self._with_images(artifact) for item in attach for artifact in self._read(item))
        return self._attached

    def _read(self, item: Artifact | Wanted) -> Iterator[Artifact]:
        if isinstance(item, Artifact):
            yield item
            return
        if not item.name:
            raise ArtifactError(f"A {item.kind} attachment has no name.", hint="Give it a `path`, or a `tag`.")
        snapshot = self._snapshot(item)
        if snapshot is not None:
            yield snapshot
        elif item.kind is Kind.IMAGE:
            yield make_image(self._reader(item.name).read_image(item.name), title=item.title, path=item.name)
        elif item.kind in (Kind.FOLDER, Kind.TAG):
            yield from self._read_notes(item.kind, item.name, policy=item.policy)
        else:
            read = self._reader(item.name).read_file(item.name, item.kind, policy=item.policy)
            yield replace(read, title=item.title or read.title)

    def _snapshot(self, item: Wanted) -> Artifact | None:
        """What was attached as a snapshot is not read again, also when its file has gone."""
        if item.kind in (Kind.IMAGE, Kind.FOLDER, Kind.TAG) or item.policy not in (None, Policy.SNAPSHOT):
            return None
        name = path_id(Source(path=item.name), "")
        taken = (a for a in self._known if a.id == name and a.policy is Policy.SNAPSHOT)
        return next((replace(known, kind=item.kind) for known in taken), None)

    def _with_images(self, artifact: Artifact) -> Artifact:
        """Images are taken from the active note only; one that cannot be sent is said, not skipped."""
        if artifact.kind is not Kind.ACTIVE_NOTE or artifact.images or not artifact.has_images:
            return artifact
        if self._sources is None:
            self.warnings.append(f"The images of {artifact.id} are not sent: there is no vault to read them from.")
            return artifact
        images, missing = self._sources.read_embedded(artifact)
        self.warnings += [f"An image of {artifact.id} is not sent: {reason}" for reason in missing]
        return replace(artifact, images=tuple(images))

    def _read_notes(self, kind: Kind, name: str, *, policy: Policy | None = None) -> Iterator[Artifact]:
        reader = self._reader(name)
        paths = reader.list_folder(name) if kind is Kind.FOLDER else reader.list_tag(name)
        if not paths:
            self.warnings.append(f"The {kind} {name} holds no notes; nothing was attached for it.")
        self._say_left_out(reader, name if kind is Kind.FOLDER else ".")
        self._say_unsearched(reader)
        for path in paths:
            yield reader.read_file(path, Kind.NOTE, policy=policy, via=f"{kind}:{name}")

    def _say_left_out(self, reader: SourceReader, folder: str) -> None:
        left = reader.list_left_out(folder)
        self._say_once(f"{path} is left out: links out of the vault or to a folder are not followed." for path in left)

    def _say_unsearched(self, reader: SourceReader) -> None:
        self._say_once(f"Not searched for tags: {why}" for why in reader.list_unsearched())

    def _say_once(self, warnings: Iterable[str]) -> None:
        """What two tags or folders of a turn leave out is left out once."""
        self.warnings += [warning for warning in warnings if warning not in self.warnings]

    def _reader(self, name: str) -> SourceReader:
        if self._sources is None:
            raise SourceMissingError(
                f"{name} has no text, and there is no vault to read it from.",
                hint="Give the attachment its `text`, or name a `vault` folder.",
            )
        return self._sources

    def resolve(self, template: Template) -> Resolved:
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

    def _resolve_active(self) -> Resolved:
        active = next((a for a in self._attached if a.kind is Kind.ACTIVE_NOTE), None)
        if active is None:
            return Resolved(why="no active note is attached.")
        return Resolved(id=active.id, artifacts=(active,))

    def _resolve_selection(self) -> Resolved:
        selected = tuple(a for a in self._attached if a.kind in (Kind.SELECTED_TEXT, Kind.WEB_SELECTION))
        if not selected:
            return Resolved()
        return Resolved(id='", "'.join(a.id for a in selected), artifacts=selected)

    def _resolve_note(self, name: str) -> Resolved:
        """A link means what is attached now, else what the vault has, else what an earlier turn attached."""
        notes = match_note(name, [a for a in self._attached if a.kind in _NOTES])
        paths = self._sources.find_note(name) if self._sources and not notes else ()
        if len(paths) == 1 and self._sources:
            notes = (self._sources.read_file(paths[0], Kind.NOTE, via="template"),)
        elif not notes and not paths:
            notes = match_note(name, [a for a in self._known if a.kind in _NOTES])
        found = list(dict.fromkeys((*(note.id for note in notes), *paths)))
        if not found:
            return Resolved(why=f"no note is called {name}.")
        if len(found) > 1:
            return Resolved(why=f"{len(found)} notes are called {name}: {', '.join(found[:3])}. Name one by its path.")
        return Resolved(id=notes[0].id, artifacts=(notes[0],))

    def _resolve_tags(self, names: str) -> Resolved:
        tags = [name.strip() for name in names.split(",")]
        found = {tag: self._sources.list_tag(tag) if self._sources else () for tag in tags}
        paths = sorted({path for listed in found.values() for path in listed})
        if self._sources is not None:
            self._say_unsearched(self._sources)
        if not paths or self._sources is None:
            return Resolved(why=f"no note carries {names}.")
        self.warnings += [f"No note carries {tag}; nothing was attached for it." for tag in tags if not found[tag]]
        self._say_left_out(self._sources, ".")
        notes = tuple(self._sources.read_file(path, Kind.NOTE, via=f"template:{names}") for path in paths)
        return Resolved(id=", ".join(tags), artifacts=notes)

    def _resolve_folder(self, name: str) -> Resolved:
        if self._sources is None or not self._sources.has_folder(name):
            return Resolved()
        notes = tuple(
            self._sources.read_file(path, Kind.NOTE, via=f"template:{name}") for path in self._sources.list_folder(name)
        )
        self._say_left_out(self._sources, name)
        if not notes:
            return Resolved(why="the folder holds no notes.")
        return Resolved(id=name, artifacts=notes)
