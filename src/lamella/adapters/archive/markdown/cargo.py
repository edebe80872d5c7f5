"""What rides in an archive's comment, and what is only named because the vault has it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lamella.adapters.archive.markdown.refs import Ref, list_refs
from lamella.core.artifacts.kinds import KINDS, LATER_KIND, Medium
from lamella.core.artifacts.model import Kind, Policy
from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.records import EventKind, Record
from lamella.errors import BadInputError
from lamella.holdings import Chronicle
from lamella.ports import Sources

ASKING = (EventKind.MESSAGE, EventKind.EDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A content that rides by name only: the file it is the text of."""

    hash: str
    kind: Kind
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
    """A conversation's contents, parted into those that ride and those that are named."""

    files: tuple[FileRef, ...]
    contents: Mapping[str, bytes]


def part_contents(chronicle: Chronicle, sources: Sources | None) -> Cargo:
    """Part the contents. A file's newest text is named; all that a vault cannot give back as it was rides.

    That is everything but files, snapshots, and the older texts of a file that was edited between two turns. With
    ``sources`` at hand, so is every file that they do not give with this text now.
    """
    refs = list(list_all_refs(chronicle.records))
    newest = {ref.id: ref.hash for ref in refs if _is_file(ref)}
    riding = {ref.hash for ref in refs if not _is_file(ref) or newest[ref.id] != ref.hash}
    # What a tool gave back is what it was then, whatever becomes of a file with the same text.
    riding |= {name for record in chronicle.records if record.kind is EventKind.RESULTS for name in record.contents}
    named = {
        (ref.hash, ref.path): FileRef(hash=ref.hash, kind=LATER_KIND[ref.kind], path=ref.path)
        for ref in refs
        if ref.path is not None and ref.hash in chronicle.contents and ref.hash not in riding
    }
    files = tuple(file for file in named.values() if sources is None or _gives(sources, file))
    by_name = {file.hash for file in files}
    contents = {name: data for name, data in chronicle.contents.items() if name not in by_name}
    return Cargo(files=files, contents=contents)


def list_all_refs(records: Iterable[Record]) -> Iterable[Ref]:
    """Every reference of a log, in its order."""
    for record in records:
        if record.kind in ASKING:
            event = read_event(record)
            if isinstance(event, MessageEvent):
                yield from list_refs(event)


def _is_file(ref: Ref) -> bool:
    # The text of a PDF or an office file is what some program made of it: another version may make another.
    is_own_text = KINDS[ref.kind].medium in (Medium.FILE, Medium.CANVAS)
    return is_own_text and ref.path is not None and ref.policy is not Policy.SNAPSHOT


def _gives(sources: Sources, file: FileRef) -> bool:
    try:
        return sources.read(Wanted(kind=file.kind, name=file.path)).hash == file.hash
    except BadInputError:
        return False
