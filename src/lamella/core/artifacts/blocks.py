"""Blocks: an artifact as the text that stands in a prompt.

Every block starts with ``<`` and ends with a line break. Two blocks side by side therefore tokenise apart, which is
what makes counting one block at a time exact (see ``core.budget.counting``).
"""

import re

from lamella.core.artifacts.embeds import fold_pasted
from lamella.core.artifacts.kinds import KINDS, TEXT_KINDS, BlockForm, Embeds
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.text.content import escape_line
from lamella.core.text.outline import build_list

# Every tag of ours, whether content stands in it or beside it. Whatever ends in ``_context`` is one, too, so that a
# block of another version cannot be closed either.
_HEAD = ("title", "path", "url", "id", "lines", "query", "name", "arguments", "made_from")
_BODY = (
    "content",
    "preview",
    "diff",
    "output",
    "exact",
    "summary",
    "conversation_summary",
    "stage_digest",
    "standing_wishes",
)
_NO_ARGUMENTS = "{}"
_TOLD = ("handle", "update", "left_out", "tool_call", "project_instructions", "project_memory")
_TAGS = frozenset((*_HEAD, *_BODY, *_TOLD, *(spec.tag for kind, spec in KINDS.items() if kind in TEXT_KINDS)))
# What nobody sees: controls, and what Unicode says may be ignored by default. A model reads a tag with these in it.
_UNSEEN = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
# The name is all that counts: what follows it, attributes or a slash, closes as well. Nothing is looked at twice.
_CLOSER = re.compile(rf"<(?=[\s{_UNSEEN}]*+/[\s{_UNSEEN}]*+([\w:.\-{_UNSEEN}]++))")


def neutralise(text: str) -> str:
    r"""Text as it may stand inside a block: a closing tag of ours becomes ``<\/tag>``.

    One backslash keeps it readable for people and models, and the block cannot be broken out of.
    """
    if "<" not in text:
        return text
    return _CLOSER.sub(_break, text)


def _break(closer: re.Match[str]) -> str:
    name = _INVISIBLE.sub("", closer[1]).casefold()
    return "<\\" if name in _TAGS or name.endswith("_context") else "<"


def render_block(artifact: Artifact, *, kind: Kind | None = None) -> str:
    """The artifact in full."""
    form = KINDS[artifact.kind].block
    if form is BlockForm.TOOL:
        return render_tool(artifact)
    if form is BlockForm.EXPANDS:
        return _wrap(artifact, kind, [f"<left_out>\n{neutralise(shown_text(artifact))}\n</left_out>"])
    return _wrap(artifact, kind, [f"<content>\n{neutralise(shown_text(artifact))}\n</content>"])


def shown_text(artifact: Artifact) -> str:
    """The text as models read it: no picture rides in it as letters, and a list of what is left out is short."""
    if KINDS[artifact.kind].block is BlockForm.EXPANDS:
        return build_list(artifact.text)
    if "data:image/" not in artifact.text or KINDS[artifact.kind].embeds is Embeds.NONE:
        return artifact.text
    return fold_pasted(artifact.text)


def render_preview(artifact: Artifact, outline: str, *, kind: Kind | None = None) -> str:
    """The artifact as its outline, with the way back to the whole."""
    way_back = f"[This is a preview. Attach {_way_back(artifact)} again for the whole text.]"
    return _wrap(artifact, kind, [f"<preview>\n{neutralise(outline)}\n{way_back}\n</preview>"])


def render_condensed(artifact: Artifact, condensed: str, *, kind: Kind | None = None) -> str:
    """The artifact as a model's summary of it, with the way back to the whole."""
    name = _way_back(artifact)
    way_back = (
        f"[A summary of {len(artifact.text):,} characters. Attach {name} with less beside it for the whole text.]"
    )
    if KINDS[artifact.kind].block is BlockForm.TOOL:
        return _wrap_call(artifact, f"<summary>\n{neutralise(condensed)}\n</summary>")
    return _wrap(artifact, kind, [f"<summary>\n{neutralise(condensed)}\n{way_back}\n</summary>"])


def render_handle(artifact: Artifact) -> str:
    """One line in place of the artifact: what it is, how long, and the way back."""
    name, title = escape_line(artifact.id), escape_line(artifact.title)
    return (
        f"<handle>{name}: {title}, {len(artifact.text):,} characters, is left out. "
        f"Attach {_way_back(artifact)} again for its text.</handle>\n"
    )


def render_listed(artifact: Artifact, *, told: str = "") -> str:
    """The same as one line of a list that says for all of them what they are, and what is ``told`` of this one."""
    name, title = escape_line(artifact.id), escape_line(artifact.title)
    called = "" if title in name else f" ({title})"
    return f"- {name}{called}{told}\n"


def _way_back(artifact: Artifact) -> str:
    """What has to be attached to have the text again: of a part of a file, the file."""
    whole = artifact.source.path if KINDS[artifact.kind].part else None
    return escape_line(whole or artifact.id)


def render_unseen(picture: Artifact) -> str:
    """A picture as a line of words, for models that do not see."""
    sizes = [f", {image.width} by {image.height} pixels" for image in picture.images if image.width and image.height]
    return f"[Picture: {escape_line(picture.title)}{''.join(sizes[:1])}. You cannot see it: say so if it matters.]\n"


def render_refused(picture: Artifact, why: str) -> str:
    """A picture as a line of words, for a model that sees and does not take this one."""
    title = escape_line(picture.title)
    return f"[Picture: {title}. It is not sent: {escape_line(why)}. You cannot see it: say so if it matters.]\n"


def render_update(artifact: Artifact, *, diff: str | None) -> str:
    """The artifact's new text, or how it differs from the copy above, marked as replacing that copy."""
    if diff is None:
        body = f"<content>\n{neutralise(shown_text(artifact))}\n</content>"
        return _wrap(artifact, None, ["<update>This text replaces the copy above.</update>", body])
    body = f"<diff>\n{neutralise(diff)}\n</diff>"
    return _wrap(artifact, None, ["<update>The copy above, changed by this diff, is the text now.</update>", body])


def render_tool(artifact: Artifact) -> str:
    """A tool's call and its output, together, and little more than plain text would take."""
    return _wrap_call(artifact, neutralise(artifact.text))


def render_tool_stub(artifact: Artifact) -> str:
    """A tool's call without its output: the call is the way back."""
    size, name = f"{len(artifact.text):,} characters", escape_line(artifact.id)
    return _wrap_call(artifact, f"<left_out>{size} of output. Make the call again, or recall {name}.</left_out>")


def render_call_line(artifact: Artifact) -> str:
    """The same in no more than a line, for prompts that are read again and again: recall finds the rest by the call."""
    return f"<call {render_call(artifact)}>\n"


def render_call(artifact: Artifact) -> str:
    """The call that a tool's output came of, as it is written in code."""
    arguments = artifact.source.arguments or _NO_ARGUMENTS
    return f"{escape_line(artifact.source.tool or '')}({escape_line(arguments if arguments != _NO_ARGUMENTS else '')})"


def _wrap_call(artifact: Artifact, body: str) -> str:
    return f"<tool_result>{render_call(artifact)}\n{body}\n</tool_result>\n"


def _wrap(artifact: Artifact, kind: Kind | None, body: list[str]) -> str:
    spec = KINDS[kind or artifact.kind]
    lines = [f"<{spec.tag}>", *_head(artifact, spec.block), *body, f"</{spec.tag}>", ""]
    return "\n".join(lines)


def _head(artifact: Artifact, form: BlockForm) -> list[str]:
    source = artifact.source
    head = [] if form is BlockForm.BARE and not artifact.title else [f"<title>{escape_line(artifact.title)}</title>"]
    # Its path is no place to look: what it tells how to do stands in its title.
    if source.path is not None and form is not BlockForm.NAMED:
        head.append(f"<path>{escape_line(source.path)}</path>")
    if source.url is not None:
        head.append(f"<url>{escape_line(source.url)}</url>")
    if artifact.id not in (source.path, source.url):
        # A reference line names the id; a block whose place is not its id says it, so that the two can be matched.
        head.append(f"<id>{escape_line(artifact.id)}</id>")
    if source.lines is not None:
        head.append(f"<lines>{source.lines[0]}-{source.lines[1]}</lines>")
    if source.query is not None:
        head.append(f"<query>{escape_line(source.query)}</query>")
    return head
