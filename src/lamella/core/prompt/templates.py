"""Prompt templates: ``{activeNote}``, ``{[[Note]]}``, ``{#tag}``, ``{folder/path}``, and ``{}`` for the selection.

In typed text a template becomes an attachment and its token the attachment's id in quotes. In L1's instructions the
text is drawn in. A brace that names nothing stays as it was typed.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import LATER_KIND
from lamella.core.artifacts.model import Artifact

_BRACES = re.compile(r"\{([^{}\n]*)\}")
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]\Z")
_TAG = re.compile(r"#[^\s#,{}]+\Z")


class TemplateKind(StrEnum):
    """What a template names."""

    ACTIVE_NOTE = "active_note"
    NOTE = "note"
    TAG = "tag"
    FOLDER = "folder"
    SELECTION = "selection"


class Template(NamedTuple):
    """One template in a text: what it names, and the token as typed."""

    kind: TemplateKind
    name: str
    token: str


class Resolution(NamedTuple):
    """What a template stands for: its id, and the artifacts it draws in. No id: it names nothing, as ``why`` says."""

    id: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    why: str | None = None


class Expansion(NamedTuple):
    """A text after its templates."""

    text: str
    artifacts: tuple[Artifact, ...] = ()
    warnings: tuple[str, ...] = ()


Resolve = Callable[[Template], Resolution]
_Replace = Callable[[Resolution, Sequence[Artifact]], str]


def expand_typed(text: str, resolve: Resolve) -> Expansion:
    """Typed text: each token that names something becomes its id in quotes, and what it names is attached."""
    return _expand(text, resolve, _quote)


def expand_instructions(text: str, resolve: Resolve) -> Expansion:
    """L1's instructions: each token that names notes becomes their text, once. ``{}`` is literal here."""
    return _expand(text, resolve, _inline, skip=TemplateKind.SELECTION)


def _quote(resolved: Resolution, _new: Sequence[Artifact] = ()) -> str:
    return f'"{resolved.id}"'


def _inline(resolved: Resolution, new: Sequence[Artifact]) -> str:
    blocks = (render_block(artifact, kind=LATER_KIND[artifact.kind]) for artifact in new)
    return "".join(blocks).removesuffix("\n") if new else _quote(resolved)


def _expand(text: str, resolve: Resolve, replace: _Replace, *, skip: TemplateKind | None = None) -> Expansion:
    found: dict[str, Artifact] = {}
    warnings: list[str] = []

    def put(match: re.Match[str]) -> str:
        template = _read(match)
        resolved = Resolution() if template.kind is skip or _names_nothing(template) else resolve(template)
        if resolved.why is not None:
            warnings.append(f"{template.token} was left as typed: {resolved.why}")
        if resolved.id is None:
            return template.token
        new = [artifact for artifact in resolved.artifacts if artifact.id not in found]
        found.update((artifact.id, artifact) for artifact in new)
        return replace(resolved, new)

    expanded = _BRACES.sub(put, text)
    return Expansion(text=expanded, artifacts=tuple(found.values()), warnings=tuple(warnings))


def _names_nothing(template: Template) -> bool:
    """Braces around white space or dots alone, as in ``f() { }``: no folder, least of all the whole vault."""
    return template.kind is TemplateKind.FOLDER and not template.name.strip("./ ")


def _read(match: re.Match[str]) -> Template:
    token, name = match.group(), match.group(1).strip()
    link = _LINK.match(name)
    if not match.group(1):
        kind = TemplateKind.SELECTION
    elif name == "activeNote":
        kind = TemplateKind.ACTIVE_NOTE
    elif link:
        kind, name = TemplateKind.NOTE, _link_target(link.group(1))
    elif all(_TAG.match(part.strip()) for part in name.split(",")):
        kind = TemplateKind.TAG
    else:
        kind = TemplateKind.FOLDER
    return Template(kind=kind, name=name, token=token)


def _link_target(link: str) -> str:
    """``Note|shown as`` and ``Note#Heading`` both name Note."""
    return link.partition("|")[0].partition("#")[0].strip()


def match_note(name: str, notes: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """The notes a link can mean: by path, by path without ``.md``, else by file name or title."""
    by_path = [note for note in notes if note.id in (name, f"{name}.md")]
    if by_path:
        return tuple(by_path)
    return tuple(note for note in notes if name in (note.title, note.id.rsplit("/", 1)[-1].removesuffix(".md")))
