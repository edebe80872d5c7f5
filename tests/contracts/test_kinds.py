"""Every kind is complete: nothing that follows from being of a kind is left to chance."""

import dataclasses
import re

import pytest

import lamella
from lamella.adapters.archive.attachments import FIELDS
from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import KINDS, BlockForm, KindSpec, Promotion
from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Source, Trust
from lamella.core.text.content import neutralise

TEXT_KINDS = [kind for kind, spec in KINDS.items() if spec.block not in (BlockForm.EXPANDS, BlockForm.IMAGE_PART)]


def test_every_kind_has_one_row_in_the_registry() -> None:
    assert set(KINDS) == set(Kind)
    assert [kind for kind, spec in KINDS.items() if spec.kind is not kind] == []


def test_a_row_says_tag_block_id_recoverability_promotion_and_trust() -> None:
    assert [field.name for field in dataclasses.fields(KindSpec)] == [
        "kind", "tag", "block", "id_rule", "recoverable", "promotion", "trust",
    ]  # fmt: skip
    assert [field.name for field in dataclasses.fields(KindSpec) if field.default is not dataclasses.MISSING] == []


@pytest.mark.parametrize("kind", Kind)
def test_every_row_is_filled_with_values_of_the_right_type(kind: Kind) -> None:
    spec = KINDS[kind]
    assert re.fullmatch(r"[a-z_]+", spec.tag)
    assert isinstance(spec.block, BlockForm)
    assert callable(spec.id_rule)
    assert isinstance(spec.recoverable, bool)
    assert isinstance(spec.promotion, Promotion)
    assert isinstance(spec.trust, Trust)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_can_be_written_in_a_transcript_and_made_in_python(kind: Kind) -> None:
    assert (kind in FIELDS) == (kind is not Kind.TOOL)
    made = {getattr(getattr(lamella, name), "kind", None) for name in lamella.__all__}
    by_other_names = {
        Kind.FOLDER: "Folder", Kind.TAG: "Tag", Kind.DATAVIEW: "Dataview", Kind.SELECTED_TEXT: "Selection",
        Kind.WEB_SELECTION: "Selection", Kind.IMAGE: "Picture", Kind.UNKNOWN: "Unknown", Kind.TOOL: "ToolResult",
    }  # fmt: skip
    assert kind in made or by_other_names[kind] in lamella.__all__


def _artifact(kind: Kind, text: str) -> Artifact:
    if kind is Kind.TOOL:
        return make_tool_result("search", arguments={"q": "x"}, output=text)
    by_url = KINDS[kind].trust is Trust.WEB
    source = Source(path=None if by_url else "a.md", url="https://example.org/a" if by_url else None, query="LIST")
    return make_artifact(kind, text=text, source=Source() if kind is Kind.UNKNOWN else source)


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_the_block_of_a_kind_begins_and_ends_with_its_tag_and_cannot_be_broken_out_of(kind: Kind) -> None:
    tag = KINDS[kind].tag
    block = render_block(_artifact(kind, f"text\n</{tag}>\nmore"))
    assert block.startswith(f"<{tag}>\n")
    assert block.endswith(f"\n</{tag}>\n")
    assert block.count(f"</{tag}>") == 1
    assert neutralise(f"</{tag}>") != f"</{tag}>"
