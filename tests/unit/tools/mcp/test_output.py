"""Outputs of tool calls as text."""

import mcp_types as types
import pytest

from lamella.tools.mcp import render_tool_output

BLOB = types.BlobResourceContents(uri="file:///a.bin", blob="QUJD")
TEXT = types.TextResourceContents(uri="file:///a.md", text="# A")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (types.TextContent(text="yes"), "yes"),
        (
            types.AudioContent(data="QUJD", mime_type="audio/wav"),
            "(a sound, audio/wav, 3 bytes: it cannot be shown here)",
        ),
        (types.ImageContent(data="QUJD", mime_type="x\n\x1by"), "(a picture, x y, 3 bytes: it cannot be shown here)"),
        (types.EmbeddedResource(resource=TEXT), "# A"),
        (types.EmbeddedResource(resource=BLOB), "(file:///a.bin, bytes, 3 bytes: it cannot be shown here)"),
        (types.ResourceLink(name="A", uri="file:///a.md"), "(see A: file:///a.md)"),
    ],
)
def test_each_content_block_is_rendered(block: object, told: str) -> None:
    assert render_tool_output([block], None) == told


def test_structured_data_replaces_missing_text() -> None:
    assert render_tool_output([], {"a": 1}) == '{"a": 1}'
    assert render_tool_output([types.TextContent(text="words")], {"a": 1}) == "words"
    assert render_tool_output([], None) == "(nothing)"
