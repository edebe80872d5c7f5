"""Expand prompt templates in typed text and in instructions.

Templates are ``{activeNote}``, ``{[[Note]]}``, ``{#tag}``, ``{folder/path}``, and ``{}`` for the selection. In typed
text a template attaches what it names and is replaced by its id in quotes. In L1's instructions it is replaced by the
text. Braces that name nothing stay as typed.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import LIBRARY_KIND
from lamella.core.artifacts.model import Artifact

_BRACES = re.compile(r"\{([^{}\n]*)\}")
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]\Z")
_TAG = re.compile(r"#[^\s#,{}]+\Z")


class TemplateKind(StrEnum):
    """The kinds of things that a template can name."""

    ACTIVE_NOTE = "active_note"
    NOTE = "note"
    TAG = "tag"
    FOLDER = "folder"
    SELECTION = "selection"


class Template(NamedTuple):
    """One template in a text: its kind, the name in it, and the token as typed."""

    kind: TemplateKind
    name: str
    token: str


class TemplateResolution(NamedTuple):
    """The result of resolving a template: its id and the artifacts it names.

    If ``id`` is None the template names nothing; ``reason`` then gives the reason, if there is one to report.
    """

    id: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    reason: str | None = None


class TemplateExpansion(NamedTuple):
    """A text after expansion, with the artifacts it names and the warnings."""

    text: str
    artifacts: tuple[Artifact, ...] = ()
    warnings: tuple[str, ...] = ()


TemplateResolver = Callable[[Template], TemplateResolution]
_TemplateReplacement = Callable[[TemplateResolution, Sequence[Artifact]], str]


def expand_typed_text(text: str, resolve: TemplateResolver) -> TemplateExpansion:
    """Expand typed text: each template that resolves becomes its id in quotes, and its artifacts are attached."""
    return _expand_templates(text, resolve, _replace_by_quoted_id)


def expand_instructions(text: str, resolve: TemplateResolver) -> TemplateExpansion:
    """Expand instructions: each template becomes the text of its notes, each note once; ``{}`` stays literal."""
    return _expand_templates(text, resolve, _replace_by_note_text, skip=TemplateKind.SELECTION)


def _replace_by_quoted_id(resolved: TemplateResolution, _new: Sequence[Artifact] = ()) -> str:
    return f'"{resolved.id}"'


def _replace_by_note_text(resolved: TemplateResolution, new: Sequence[Artifact]) -> str:
    blocks = (render_block(artifact, kind=LIBRARY_KIND[artifact.kind]) for artifact in new)
    return "".join(blocks).removesuffix("\n") if new else _replace_by_quoted_id(resolved)


def _expand_templates(
    text: str, resolve: TemplateResolver, replace: _TemplateReplacement, *, skip: TemplateKind | None = None
) -> TemplateExpansion:
    found: dict[str, Artifact] = {}
    warnings: list[str] = []

    def put(match: re.Match[str]) -> str:
        template = _parse_template(match)
        resolved = TemplateResolution() if template.kind is skip or _is_blank_template(template) else resolve(template)
        if resolved.reason is not None:
            warnings.append(f"{template.token} was left as typed: {resolved.reason}")
        if resolved.id is None:
            return template.token
        new = [artifact for artifact in resolved.artifacts if artifact.id not in found]
        found.update((artifact.id, artifact) for artifact in new)
        return replace(resolved, new)

    expanded = _BRACES.sub(put, text)
    return TemplateExpansion(text=expanded, artifacts=tuple(found.values()), warnings=tuple(warnings))


def _is_blank_template(template: Template) -> bool:
    """Return whether braces contain only white space, dots or slashes, as in ``f() { }``.

    Such a name must not resolve as a folder, least of all as the whole vault.
    """
    return template.kind is TemplateKind.FOLDER and not template.name.strip("./ ")


def _parse_template(match: re.Match[str]) -> Template:
    token, name = match.group(), match.group(1).strip()
    link = _LINK.match(name)
    if not match.group(1):
        kind = TemplateKind.SELECTION
    elif name == "activeNote":
        kind = TemplateKind.ACTIVE_NOTE
    elif link:
        kind, name = TemplateKind.NOTE, _get_linked_note_name(link.group(1))
    elif all(_TAG.match(part.strip()) for part in name.split(",")):
        kind = TemplateKind.TAG
    else:
        kind = TemplateKind.FOLDER
    return Template(kind=kind, name=name, token=token)


def _get_linked_note_name(link: str) -> str:
    """Return the note name of a link: ``Note|shown as`` and ``Note#Heading`` both name Note."""
    return link.partition("|")[0].partition("#")[0].strip()


def find_matching_notes(name: str, notes: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """Return the notes that a link can mean: by path, with or without ``.md``, else by file name or title."""
    by_path = [note for note in notes if note.id in (name, f"{name}.md")]
    if by_path:
        return tuple(by_path)
    return tuple(note for note in notes if name in (note.title, note.id.rsplit("/", 1)[-1].removesuffix(".md")))
