"""A manifest: what a project is, as it stands in L1, and what is said of sources that changed since."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from lamella.core.artifacts.blocks import neutralise
from lamella.core.messages.headings import PROJECT_OPENING
from lamella.core.text.content import escape_line
from lamella.holdings import ProjectFolder

# How many sources are listed; the rest is counted.
LISTED = 100
# How many names a note of changes has of each sort.
_NAMED = 20
_ENTRY = "- "


def write_project(folder: ProjectFolder) -> str:
    """L1's part for a project: what its own files say, then its sources by path."""
    return f"{write_opening(folder)}\n\n{_write_sources(list(folder.sources))}"


def write_opening(folder: ProjectFolder) -> str:
    """The part without the list of sources."""
    parts = [f"{PROJECT_OPENING}{escape_line(folder.name)}, a folder of notes and files."]
    if folder.instructions:
        parts.append(_wrap("project_instructions", folder.instructions))
    if folder.memory:
        parts.append(_wrap("project_memory", folder.memory))
    return "\n\n".join(parts)


def _wrap(tag: str, text: str) -> str:
    """What a file says, in a block that it cannot end."""
    return f"<{tag}>\n{neutralise(text)}\n</{tag}>"


def _write_sources(paths: Sequence[str]) -> str:
    if not paths:
        return "It has no sources yet."
    left = len(paths) - LISTED
    lines = [f"{_ENTRY}{escape_line(path)}" for path in paths[:LISTED]]
    more = [f"and {left:,} more, which are not listed"] if left > 0 else []
    return "\n".join(["Its sources, by path; what they say is not here:", *lines, *more])


def write_changes(before: str, folder: ProjectFolder, *, since: float) -> str:
    """What changed in the sources after a time, beside the part as it stood then; nothing where nothing did."""
    late = [path for path, at in folder.sources.items() if at > since]
    there = {f"{_ENTRY}{escape_line(path)}" for path in folder.sources}
    listed = before.removeprefix(write_opening(folder)).splitlines()
    left = [line.removeprefix(_ENTRY) for line in listed if line.startswith(_ENTRY) and line not in there]
    gone = [path for path in left if _find_time_around(path, folder) > since]
    told = [f"{word}: {_name(paths)}." for word, paths in (("New or changed", late), ("Gone", gone)) if paths]
    return " ".join(("Sources of the project changed since the last question.", *told)) if told else ""


def _find_time_around(path: str, folder: ProjectFolder) -> float:
    """When something last came into or went out of the nearest folder that is still there."""
    above = (str(parent) for parent in PurePosixPath(path).parents)
    return next((folder.folders[parent] for parent in above if parent in folder.folders), 0.0)


def _name(paths: Sequence[str]) -> str:
    named = [escape_line(path) for path in paths[:_NAMED]]
    left = len(paths) - _NAMED
    return ", ".join([*named, f"and {left:,} more"] if left > 0 else named)
