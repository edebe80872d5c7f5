"""Reading back the files that an archive only names: as they were, as they are now, or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lamella.adapters.archive.markdown.cargo import FileRef
from lamella.adapters.archive.markdown.recovery.lookup import FoundFile, Lookup
from lamella.core.artifacts.model import Artifact
from lamella.core.text.content import encode_text


@dataclass(slots=True, kw_only=True)
class Recovery:
    """What became of named files: contents, newer texts by path and the hash they had, and the hashes that are lost."""

    contents: dict[str, bytes] = field(default_factory=dict)
    changed: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every file still has the text it had."""
        return not self.lost


def recover_files(files: Iterable[FileRef], lookup: Lookup) -> Recovery:
    """Read each file; a text that is not the one named is used as it is now, and said."""
    recovery = Recovery()
    found = [(file, lookup.find(file.path, file.kind, wanted=file.hash)) for file in files]
    for file, answer in found:
        if answer.artifact is not None and answer.artifact.hash == file.hash:
            _keep(recovery, file, answer)
    for file, answer in found:
        # Two files of the same text: one that still has it speaks for both.
        if file.hash not in recovery.contents:
            _replace(recovery, file, answer)
    return recovery


def _keep(recovery: Recovery, file: FileRef, answer: FoundFile) -> None:
    if answer.artifact is not None:
        recovery.contents[file.hash] = encode_text(answer.artifact.text)
    if answer.moved_to is not None:
        recovery.warnings.append(f"{file.path} has moved to {answer.moved_to}; its text is the same.")


def _replace(recovery: Recovery, file: FileRef, answer: FoundFile) -> None:
    recovery.lost.add(file.hash)
    if answer.artifact is None:
        recovery.warnings.append(f"{file.path} is left out: {answer.why}.")
        return
    recovery.changed[file.path, file.hash] = answer.artifact
    if answer.moved_to is None:
        recovery.warnings.append(f"{file.path} has changed since; its text of now is used.")
    else:
        recovery.warnings.append(f"{file.path} has moved to {answer.moved_to} and changed; its text of now is used.")
