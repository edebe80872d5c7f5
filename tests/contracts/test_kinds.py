"""Every kind is complete: nothing that follows from being of a kind is left to chance."""

import ast
import re

import pytest
from msgspec import structs
from tests.contracts.repository import SRC, python_files, tree

import lamella.attach
from lamella.archive.attachments import AttachmentInput
from lamella.core.artifacts.blocks import escape_block_text, render_block
from lamella.core.artifacts.kinds import (
    KINDS,
    TEXT_KINDS,
    BlockFormat,
    EmbedHandling,
    KindSpec,
    LibraryPromotion,
    SourceMedium,
    make_artifact,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy, TrustLevel
from lamella.core.prompt.templates import TemplateKind


def test_every_kind_has_one_row_in_the_registry() -> None:
    assert set(KINDS) == set(ArtifactKind)
    assert [kind for kind, spec in KINDS.items() if spec.kind is not kind] == []


def test_kind_row_has_all_fields() -> None:
    assert [field.name for field in structs.fields(KindSpec)] == [
        "kind",
        "tag",
        "group",
        "block_format",
        "id_rule",
        "fields",
        "suffixes",
        "medium",
        "recoverable",
        "promotion",
        "trust",
        "embed_handling",
        "templates",
        "policy",
        "is_file_part",
    ]
    required = [field.name for field in structs.fields(KindSpec) if field.required]
    assert required == ["kind", "tag", "group"]


@pytest.mark.parametrize("kind", ArtifactKind)
def test_every_row_is_filled_with_values_of_the_right_type(kind: ArtifactKind) -> None:
    spec = KINDS[kind]
    assert re.fullmatch(r"[a-z_]+", spec.tag)
    assert re.fullmatch(r"[A-Z][A-Za-z ]*", spec.group)
    assert isinstance(spec.block_format, BlockFormat)
    assert callable(spec.id_rule)
    assert set(spec.fields) <= {*AttachmentInput.model_fields} - {"kind", "title", "policy"}
    assert all(re.fullmatch(r"\.[a-z]+", suffix) for suffix in spec.suffixes)
    assert isinstance(spec.medium, SourceMedium)
    assert isinstance(spec.recoverable, bool)
    assert isinstance(spec.promotion, LibraryPromotion)
    assert isinstance(spec.trust, TrustLevel)
    assert isinstance(spec.embed_handling, EmbedHandling)
    assert set(spec.templates) <= set(TemplateKind)
    assert spec.policy is None or isinstance(spec.policy, AttachmentPolicy)
    assert isinstance(spec.is_file_part, bool)


def test_suffixes_and_tags_are_unique_to_kind() -> None:
    suffixes = [suffix for spec in KINDS.values() for suffix in spec.suffixes]
    assert len(suffixes) == len(set(suffixes))
    tags = [KINDS[kind].tag for kind in TEXT_KINDS]
    assert len(tags) == len(set(tags))


@pytest.mark.parametrize("kind", ArtifactKind)
def test_each_kind_works_in_transcripts_and_python(kind: ArtifactKind) -> None:
    assert bool(KINDS[kind].fields) == (kind is not ArtifactKind.TOOL)
    made = {getattr(getattr(lamella.attach, name), "kind", None) for name in lamella.attach.__all__}
    by_other_names = {
        ArtifactKind.FOLDER: "Folder",
        ArtifactKind.TAG: "Tag",
        ArtifactKind.DATAVIEW: "Dataview",
        ArtifactKind.SELECTED_TEXT: "Selection",
        ArtifactKind.WEB_SELECTION: "Selection",
        ArtifactKind.UNKNOWN: "Unknown",
        ArtifactKind.TOOL: "ToolResult",
    }
    assert kind in made or by_other_names[kind] in lamella.__all__


def _artifact(kind: ArtifactKind, text: str) -> Artifact:
    if kind is ArtifactKind.TOOL:
        return make_tool_result("search", arguments={"q": text}, output=text)
    by_url = KINDS[kind].trust is TrustLevel.WEB
    source = ArtifactSource(
        path=None if by_url else "a.md", url="https://example.org/a" if by_url else None, query="LIST"
    )
    return make_artifact(kind, text=text, source=ArtifactSource() if kind is ArtifactKind.UNKNOWN else source)


@pytest.mark.parametrize("kind", sorted(TEXT_KINDS))
def test_block_of_kind_is_delimited_by_its_tag(kind: ArtifactKind) -> None:
    tag = KINDS[kind].tag
    block = render_block(_artifact(kind, f"text\n</{tag}>\nmore"))
    # A result says its call in the line of its tag.
    assert block.startswith(f"<{tag}>search(" if kind is ArtifactKind.TOOL else f"<{tag}>\n")
    assert block.endswith(f"\n</{tag}>\n")
    assert block.count(f"</{tag}>") == 1
    assert escape_block_text(f"</{tag}>") != f"</{tag}>"


# The members of ``Kind`` that code outside of the registry's room may name, by room, and why. A new kind is in none.
NAMED = {
    "attach.py": ({kind.name for kind in ArtifactKind}, "each public value is of a kind"),
    "archive": (
        {"UNKNOWN", "CODE", "NOTE", "FOLDER", "PDF", "URL", "WEB_TAB", "YOUTUBE"},
        "old archives have tags of their own for these, call texts notes, and have unknown blocks",
    ),
    "retrieval": ({"NOTE", "CANVAS"}, "of the files that are their own text, these have prose"),
    "sources": (
        {"FOLDER", "NOTE", "CANVAS", "CODE", "CODEBASE"},
        "a vault is a folder of notes, and of canvases told in words; source files are chosen from a codebase",
    ),
    "conversation": (
        {"NOTE", "IMAGE", "TAG", "FOLDER", "CODE", "CODEBASE"},
        "folders, tags, links and codebases mean files; a note embeds images; lines are those of the bare file",
    ),
    "codebase": ({"CODE", "CODEBASE", "FOLDER", "NOTE"}, "source files are selected from a codebase"),
    "runners": ({"INSTRUCTION"}, "which instructions stand in a prompt is looked up there"),
    "core/log": ({"IMAGE"}, "what is stored of a picture is its bytes"),
    "core/prompt": ({"TOOL", "IMAGE", "ACTIVE_NOTE"}, "a turn has its own results, pictures and open note"),
    "core/layout": ({"TOOL", "IMAGE", "ACTIVE_NOTE"}, "a turn has its own results, pictures and open note"),
    "core/compaction": ({"TOOL", "IMAGE"}, "neither is ever condensed"),
    "core/ledger": ({"IMAGE"}, "a picture's tokens are not those of a text"),
    "core/search": ({"TOOL"}, "a tool result is found by its call as well"),
}


def test_only_kinds_module_lists_every_kind() -> None:
    found: dict[str, set[str]] = {}
    for path in python_files("src/lamella"):
        parts = path.relative_to(SRC).parts
        package = "/".join(parts[:2]) if parts[0] == "core" else parts[0]
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ArtifactKind":
                found.setdefault(package, set()).add(node.attr)
    del found["core/artifacts"]
    allowed = {room: kinds for room, (kinds, _) in NAMED.items()}
    assert {room for room, names in found.items() if names - allowed.get(room, set())} == set()
