"""Render artifacts as the blocks of text that a prompt contains.

Every block starts with ``<`` and ends with a line break. A tokenizer therefore never merges two adjacent blocks, so
counting one block at a time is exact (see ``core.budget``).
"""

import re

from lamella.core.artifacts.embeds import replace_pasted_images
from lamella.core.artifacts.kinds import KINDS, TEXT_KINDS, BlockFormat, EmbedHandling
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.text.content import escape_line
from lamella.core.text.outline import shorten_list

# Every tag that Lamella writes, whether content is inside it or beside it. ``escape_block_text`` also covers every name
# that ends in ``_context``, so that content cannot close a block of another version either.
_HEAD_TAGS = ("title", "path", "url", "id", "lines", "query", "name", "arguments", "made_from")
_BODY_TAGS = (
    "content",
    "preview",
    "diff",
    "output",
    "exact",
    "summary",
    "conversation_summary",
    "stage_digest",
    "standing_wishes",
    "user_rules",
    "earlier_messages",
)
_NO_ARGUMENTS = "{}"
_OTHER_TAGS = ("handle", "update", "left_out", "tool_call", "project_instructions", "project_memory")
_OWN_TAGS = frozenset(
    (*_HEAD_TAGS, *_BODY_TAGS, *_OTHER_TAGS, *(spec.tag for kind, spec in KINDS.items() if kind in TEXT_KINDS))
)
# Invisible characters: controls, and those that Unicode marks as ignorable by default. A model still recognises a tag
# that contains them, so a closing tag must be found in spite of them.
_INVISIBLE_RANGES = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_INVISIBLE_RANGES}]+")
# Only the tag name is compared: a closing tag with attributes or a slash after the name still closes. The quantifiers
# are possessive, so no character is scanned twice.
_CLOSING_TAG = re.compile(rf"<(?=[\s{_INVISIBLE_RANGES}]*+/[\s{_INVISIBLE_RANGES}]*+([\w:.\-{_INVISIBLE_RANGES}]++))")


def escape_block_text(text: str) -> str:
    r"""Escape text for use inside a block: a closing tag of Lamella becomes ``<\/tag>``.

    One backslash keeps the text readable for people and models. The text can no longer close the block around it.
    """
    if "<" not in text:
        return text
    return _CLOSING_TAG.sub(_escape_closing_tag, text)


def _escape_closing_tag(match: re.Match[str]) -> str:
    name = _INVISIBLE.sub("", match[1]).casefold()
    return "<\\" if name in _OWN_TAGS or name.endswith("_context") else "<"


def render_block(artifact: Artifact, *, kind: ArtifactKind | None = None) -> str:
    """Render the full text of the artifact, under the tag of ``kind`` if given."""
    form = KINDS[artifact.kind].block_format
    if form is BlockFormat.TOOL:
        return render_tool_result(artifact)
    if form is BlockFormat.EXPANDS:
        return _wrap_in_block(
            artifact, kind, [f"<left_out>\n{escape_block_text(text_for_model(artifact))}\n</left_out>"]
        )
    return _wrap_in_block(artifact, kind, [f"<content>\n{escape_block_text(text_for_model(artifact))}\n</content>"])


def text_for_model(artifact: Artifact) -> str:
    """Return the text that the model reads.

    Images pasted as base64 are replaced by a short note. The list of files that a folder or tag could not include is
    shortened.
    """
    if KINDS[artifact.kind].block_format is BlockFormat.EXPANDS:
        return shorten_list(artifact.text)
    if "data:image/" not in artifact.text or KINDS[artifact.kind].embed_handling is EmbedHandling.NONE:
        return artifact.text
    return replace_pasted_images(artifact.text)


def render_preview(artifact: Artifact, outline: str, *, kind: ArtifactKind | None = None) -> str:
    """Render the outline of the artifact with a note that says how to get the full text."""
    hint = f"[This is a preview. Attach {_get_name_to_reattach(artifact)} again for the whole text.]"
    return _wrap_in_block(artifact, kind, [f"<preview>\n{escape_block_text(outline)}\n{hint}\n</preview>"])


def render_summary(artifact: Artifact, summary: str, *, kind: ArtifactKind | None = None) -> str:
    """Render a model-written summary of the artifact with a note that says how to get the full text."""
    name = _get_name_to_reattach(artifact)
    hint = f"[A summary of {len(artifact.text):,} characters. Attach {name} with less beside it for the whole text.]"
    if KINDS[artifact.kind].block_format is BlockFormat.TOOL:
        return _wrap_tool_call_in_block(artifact, f"<summary>\n{escape_block_text(summary)}\n</summary>")
    return _wrap_in_block(artifact, kind, [f"<summary>\n{escape_block_text(summary)}\n{hint}\n</summary>"])


def render_handle(artifact: Artifact) -> str:
    """Render one line that names the artifact, its length and how to get its text."""
    name, title = escape_line(artifact.id), escape_line(artifact.title)
    return (
        f"<handle>{name}: {title}, {len(artifact.text):,} characters, is left out. "
        f"Attach {_get_name_to_reattach(artifact)} again for its text.</handle>\n"
    )


def render_list_line(artifact: Artifact, *, suffix: str = "") -> str:
    """Render the artifact as one line of a list, followed by ``suffix``.

    The list itself explains what its lines are, so that no line repeats it.
    """
    name, title = escape_line(artifact.id), escape_line(artifact.title)
    called = "" if title in name else f" ({title})"
    return f"- {name}{called}{suffix}\n"


def _get_name_to_reattach(artifact: Artifact) -> str:
    """Return the name to attach to get the text again; for a part of a file this is the file."""
    whole = artifact.source.path if KINDS[artifact.kind].is_file_part else None
    return escape_line(whole or artifact.id)


def render_image_as_text(picture: Artifact) -> str:
    """Render an image as a line of text for models without vision."""
    sizes = [f", {image.width} by {image.height} pixels" for image in picture.images if image.width and image.height]
    return f"[Picture: {escape_line(picture.title)}{''.join(sizes[:1])}. You cannot see it: say so if it matters.]\n"


def render_rejected_image(picture: Artifact, reason: str) -> str:
    """Render an image as a line of text for a model with vision that does not accept this image."""
    title = escape_line(picture.title)
    return f"[Picture: {title}. It is not sent: {escape_line(reason)}. You cannot see it: say so if it matters.]\n"


def render_removed_image(picture: Artifact) -> str:
    """Render the line that names an image which is no longer sent with its question."""
    return f"[Picture: {escape_line(picture.title)}. It is left out here; attach it again to see it.]\n"


def render_update(artifact: Artifact, *, diff: str | None) -> str:
    """Render the new text of the artifact, or its ``diff``, marked as replacing the copy above."""
    if diff is None:
        body = f"<content>\n{escape_block_text(text_for_model(artifact))}\n</content>"
        return _wrap_in_block(artifact, None, ["<update>This text replaces the copy above.</update>", body])
    body = f"<diff>\n{escape_block_text(diff)}\n</diff>"
    return _wrap_in_block(
        artifact, None, ["<update>The copy above, changed by this diff, is the text now.</update>", body]
    )


def render_tool_result(artifact: Artifact) -> str:
    """Render a tool call together with its output.

    The block has no head lines, so it takes little more than plain text would.
    """
    return _wrap_tool_call_in_block(artifact, escape_block_text(artifact.text))


def render_tool_stub(artifact: Artifact, *, names_recall: bool) -> str:
    """Render a tool call without its output; the model can repeat the call to get the output."""
    size, name = f"{len(artifact.text):,} characters", escape_line(artifact.id)
    if names_recall:
        return _wrap_tool_call_in_block(
            artifact, f"<left_out>{size} of output. Make the call again, or recall {name}.</left_out>"
        )
    return _wrap_tool_call_in_block(
        artifact, f"<left_out>{size} of output: {name}. Make the call again to read it.</left_out>"
    )


def render_call_line(artifact: Artifact) -> str:
    """Render a tool call in a single line, for prompts that are sent again and again.

    Recall finds the output by the call.
    """
    return f"<call {render_call(artifact)}>\n"


def render_call(artifact: Artifact) -> str:
    """Render the call that produced a tool output, written like a function call in code."""
    arguments = artifact.source.arguments or _NO_ARGUMENTS
    return f"{escape_line(artifact.source.tool or '')}({escape_line(arguments if arguments != _NO_ARGUMENTS else '')})"


def _wrap_tool_call_in_block(artifact: Artifact, body: str) -> str:
    return f"<tool_result>{render_call(artifact)}\n{body}\n</tool_result>\n"


def _wrap_in_block(artifact: Artifact, kind: ArtifactKind | None, body: list[str]) -> str:
    spec = KINDS[kind or artifact.kind]
    lines = [f"<{spec.tag}>", *_list_block_head_lines(artifact, spec.block_format), *body, f"</{spec.tag}>", ""]
    return "\n".join(lines)


def _list_block_head_lines(artifact: Artifact, block_format: BlockFormat) -> list[str]:
    source = artifact.source
    head = (
        []
        if block_format is BlockFormat.BARE and not artifact.title
        else [f"<title>{escape_line(artifact.title)}</title>"]
    )
    # The path of an instruction is its name, not a file to look at, and the title already shows that name.
    if source.path is not None and block_format is not BlockFormat.NAMED:
        head.append(f"<path>{escape_line(source.path)}</path>")
    if source.url is not None:
        head.append(f"<url>{escape_line(source.url)}</url>")
    if artifact.id not in (source.path, source.url):
        # Reference lines name the id. If it is neither the path nor the URL, the block must show it to be matched.
        head.append(f"<id>{escape_line(artifact.id)}</id>")
    if source.lines is not None:
        head.append(f"<lines>{source.lines[0]}-{source.lines[1]}</lines>")
    if source.query is not None:
        head.append(f"<query>{escape_line(source.query)}</query>")
    return head
