"""Rendering: a selection as the artifacts that it is attached as, and their text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.text.content import escape_line
from lamella.holdings import CodeFile, CodeForm, CodeSelection

_QUESTION_CHARS = 200
_MARKS = re.compile(r"`{3,}")


def name_code(root: str, path: str) -> str:
    """What a file of a folder is called where the folder is called so."""
    return (PurePosixPath(root or ".") / path).as_posix()


def make_overview(root: str, *, question: str, text: str, policy: Policy | None = None) -> Artifact:
    """The artifact that stands for a selection, and leaves with all that came by it."""
    source = Source(path=root or ".", query=question, via=name_via(root))
    return make_artifact(Kind.CODEBASE, text=text, source=source, policy=policy)


def make_code(root: str, path: str, *, text: str, policy: Policy | None = None, read: bool = False) -> Artifact:
    """A file of a selection, in full."""
    source = Source(path=name_code(root, path), via=name_via(root), read=read)
    return make_artifact(Kind.CODE, text=text, source=source, policy=policy)


def name_via(root: str) -> str:
    """How what a selection brings says so."""
    return f"{Kind.CODEBASE}:{root or '.'}"


def make_artifacts(selection: CodeSelection, *, policy: Policy | None = None, read: bool = False) -> list[Artifact]:
    """All that a selection attaches: what stands for it, then its files in full."""
    root = selection.root
    overview = make_overview(root, question=selection.question, text=selection.overview, policy=policy)
    full = (one for one in selection.files if one.form is CodeForm.FULL)
    return [overview, *(make_code(root, one.path, text=one.text, policy=policy, read=read) for one in full)]


def render_full(root: str, path: str, text: str) -> str:
    """A file in full, as it stands in a prompt."""
    return render_block(make_code(root, path, text=text))


def render_selection(root: str, question: str, files: Sequence[CodeFile], *, count: int) -> tuple[str, str]:
    """The overview of a selection of so many files, and the whole of it as it stands in a prompt."""
    overview = render_overview(root, question, files, count=count)
    blocks = [render_block(make_overview(root, question=question, text=overview))]
    blocks += [render_full(root, one.path, one.text) for one in files if one.form is CodeForm.FULL]
    return overview, "".join(blocks)


def render_overview(root: str, question: str, files: Sequence[CodeFile], *, count: int) -> str:
    """What was chosen, the skeletons, and the names."""
    by_form = {form: [one for one in files if one.form is form] for form in CodeForm}
    asked = " ".join(question.split())
    shown = asked if len(asked) <= _QUESTION_CHARS else f"{asked[:_QUESTION_CHARS]}…"
    told = (
        f"Chosen from {count:,} files of {escape_line(root or '.')} for the question: {escape_line(shown)}\n"
        f"{len(by_form[CodeForm.FULL]):,} in full, {len(by_form[CodeForm.SKELETON]):,} as skeletons, "
        f"{len(by_form[CodeForm.NAME]):,} by name. Attach a path for its whole text."
    )
    pieces = [told, *(render_skeleton(root, one.path, one.text) for one in by_form[CodeForm.SKELETON])]
    return "\n\n".join((*pieces, *_list_names(root, by_form[CodeForm.NAME])))


def render_skeleton(root: str, path: str, text: str) -> str:
    """A skeleton under the name of its file."""
    return f"## {escape_line(name_code(root, path))}\n{_fence(text)}"


def render_name(root: str, path: str) -> str:
    """A file by its name alone."""
    return f"- {escape_line(name_code(root, path))}"


def _fence(text: str) -> str:
    """A text between marks that it does not have itself."""
    longest = max((len(found) for found in _MARKS.findall(text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{text}\n{marks}"


def _list_names(root: str, files: Iterable[CodeFile]) -> Iterator[str]:
    names = [render_name(root, one.path) for one in files]
    if names:
        yield "\n".join(("## Others that may matter", *names))
