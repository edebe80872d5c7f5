"""Reading back the files that an archive only names: as they were, as they are now, or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lamella.adapters.archive.markdown.carried import FileRef
from lamella.adapters.archive.markdown.lookup import Found, Lookup
from lamella.core.artifacts.model import Artifact
from lamella.core.text.content import encode_text


@dataclass(slots=True, kw_only=True)
class Resolved:
    """What became of named files: contents, newer texts by path and the hash they had, and the hashes that are lost."""

    contents: dict[str, bytes] = field(default_factory=dict)
    changed: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every file still has the text it had."""
        return not self.lost


def resolve_files(files: Iterable[FileRef], lookup: Lookup) -> Resolved:
    """Read each file; a text that is not the one named is used as it is now, and said."""
    resolved = Resolved()
    found = [(file, lookup.find(file.path, file.kind, wanted=file.hash)) for file in files]
    for file, answer in found:
        if answer.artifact is not None and answer.artifact.hash == file.hash:
            _keep(resolved, file, answer)
    for file, answer in found:
        # Two files of the same text: one that still has it speaks for both.
        if file.hash not in resolved.contents:
            _replace(resolved, file, answer)
    return resolved


def _keep(resolved: Resolved, file: FileRef, answer: Found) -> None:
    if answer.artifact is not None:
        resolved.contents[file.hash] = encode_text(answer.artifact.text)
    if answer.moved_to is not None:
        resolved.warnings.append(f"{file.path} has moved to {answer.moved_to}; its text is the same.")


def _replace(resolved: Resolved, file: FileRef, answer: Found) -> None:
    resolved.lost.add(file.hash)
    if answer.artifact is None:
        resolved.warnings.append(f"{file.path} is left out: {answer.why}.")
        return
    resolved.changed[file.path, file.hash] = answer.artifact
    if answer.moved_to is None:
        resolved.warnings.append(f"{file.path} has changed since; its text of now is used.")
    else:
        resolved.warnings.append(f"{file.path} has moved to {answer.moved_to} and changed; its text of now is used.")
