"""Read the content blocks of a prompt: the question, its attachments, and notices for the user.

A file inside the session's folder becomes an attachment by its path, so that it is sent once and updated when it
changes. Its text comes from the editor, which may have unsaved changes, if the editor offers to read files. Otherwise
it is read from the folder. The text that an editor puts into a block is used only for a file that cannot be read there:
some editors shorten it.
"""

import base64
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from lamella.attach import (
    Attachment,
    Code,
    Folder,
    Image,
    Note,
    Selection,
    Unknown,
    Url,
    attachment_for_path,
    attachment_for_url,
)
from lamella.conversation.threads import run_in_own_thread
from lamella.core.artifacts.model import Artifact
from lamella.errors import InvalidOperationError, LamellaError
from lamella.hints import Hints

if TYPE_CHECKING:
    from lamella.wiring import AttachmentResolver

ContentBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
# Returns the text of a file as the editor has it, by its absolute path; None if the editor cannot read it.
ReadEditorFile = Callable[[str], Awaitable[str | None]]

# Lines in the fragment of an address: #L10, #L10-20, #L10:20, #L10-L20.
_LINES = re.compile(r"L?(\d+)(?:[-:]L?(\d+))?")
_MAX_READ_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLocation:
    """A file that an address names: its path, and the lines of a selection if it names some."""

    path: Path
    lines: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class PromptContent:
    """The question of a prompt, its attachments without duplicates, and notices for the user."""

    text: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def parse_file_uri(uri: str) -> FileLocation | None:
    """Return the file that an address names, or None if it is the address of something else.

    Editors write paths, ``file:`` addresses, and lines as a fragment.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file":
        path, fragment = Path(url2pathname(parts.path)), parts.fragment
    elif Path(uri).is_absolute():
        name, _, fragment = uri.partition("#")
        path = Path(name)
    else:
        return None
    found = _LINES.fullmatch(unquote(fragment))
    if found is None or int(found[1]) < 1:
        return FileLocation(path=path)
    first = int(found[1])
    return FileLocation(path=path, lines=(first, max(first, int(found[2] or first))))


def path_in_folder(path: Path, folder: Path) -> str | None:
    """Return the path of a file relative to a folder, with slashes, or None if it is outside of it."""
    plain = Path(os.path.normpath(path))
    for inner, outer in ((plain, folder), (plain.resolve(), folder.resolve())):
        if inner.is_relative_to(outer):
            return inner.relative_to(outer).as_posix()
    return None


def read_text_file(path: Path) -> str | None:
    """Return the text of a file, or None if it cannot be read as text."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_READ_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


class PromptReader:
    """Reads the prompts of one session.

    - ``folder``: the session's folder, which is the vault of its conversation.
    - ``files``: resolves names that the user typed.
    - ``read_editor_file``: reads a file through the editor; None if the editor does not offer that.
    """

    def __init__(
        self, folder: Path, files: "AttachmentResolver", read_editor_file: ReadEditorFile | None, hints: Hints
    ) -> None:
        self._folder = folder
        self._files = files
        self._read_editor_file = read_editor_file
        self._hints = hints

    async def read(self, blocks: Sequence[ContentBlock]) -> PromptContent:
        """Return the question, the attachments and the notices of a prompt.

        Raises ``LamellaError`` for an image that is none and for audio.
        """
        content = PromptContent()
        texts: list[str] = []
        last_text = max((at for at, one in enumerate(blocks) if isinstance(one, TextContentBlock)), default=-1)
        for at, block in enumerate(blocks):
            if isinstance(block, TextContentBlock):
                texts.append(block.text)
                continue
            name = await self._read_block(block, content)
            # A mention in the middle of a sentence keeps its name there; the file itself is attached.
            if name and texts and at < last_text:
                texts.append(f"`{name}`")
        content.text = "".join(texts)
        await self._attach_mentions(content)
        content.attachments = _without_duplicates(content.attachments)
        return content

    async def reread_through_editor(self, attached: Mapping[str, Artifact]) -> list[Attachment]:
        """Return those of the attached files, by path, that the editor has in another version than they were sent in.

        A file that the editor has not changed is read from the folder when the turn is built.
        """
        if self._read_editor_file is None:
            return []
        found: list[Attachment] = []
        for path, known in attached.items():
            one = await self._read_file(self._folder / path, path)
            if isinstance(one, Note | Code) and _is_due(one, known):
                found.append(one)
        return found

    async def _attach_mentions(self, content: PromptContent) -> None:
        """Attach what the question names with ``@`` and ``[[…]]``; a name that attaches nothing gives a notice."""
        if "@" not in content.text and "[[" not in content.text:
            return
        resolve = partial(self._files.resolve_mentions, content.text)
        for outcome in await run_in_own_thread(resolve, name="lamella-mentions"):
            for one in outcome.attachments:
                is_plain_file = isinstance(one, Note | Code) and one.text is None
                path = one.path if isinstance(one, Note | Code) else ""
                content.attachments.append(await self._read_file(self._folder / path, path) if is_plain_file else one)
            if not outcome.attachments:
                content.notices.append(f"{outcome.token} is sent as plain text. {outcome.format_for(self._hints)}")

    async def _read_block(self, block: ContentBlock, content: PromptContent) -> str:
        """Add what a block attaches to the content, and return its name for the question."""
        match block:
            case ResourceContentBlock(uri=uri, name=name):
                return await self._read_link(uri, block.title or name, content)
            case EmbeddedResourceContentBlock(resource=resource):
                return await self._read_resource(resource, content)
            case ImageContentBlock(data=data, uri=uri):
                content.attachments.append(self._read_image(data, title=_last_part(uri or "") or "image"))
                return ""
            case _:
                raise InvalidOperationError(
                    "Audio cannot be sent to a model here.", hint="Send the words as text, or attach a transcript."
                )

    async def _read_link(self, uri: str, name: str, content: PromptContent) -> str:
        location = parse_file_uri(uri)
        if location is not None:
            found = await self._read_location(location, None)
            if found is None:
                content.notices.append(
                    f"{location.path} is not attached: it is outside of {self._folder}, or cannot be read."
                )
                return name
            content.attachments.append(found)
            return _display_name(found) or name
        if urlsplit(uri).scheme in ("http", "https"):
            content.attachments.append(attachment_for_url(uri))
            return uri
        content.notices.append(f"{name} is not attached: {uri[:200]} is neither a file nor a web page.")
        return name

    async def _read_resource(
        self, resource: TextResourceContents | BlobResourceContents, content: PromptContent
    ) -> str:
        location = parse_file_uri(resource.uri)
        text = resource.text if isinstance(resource, TextResourceContents) else None
        name = _last_part(resource.uri)
        if location is not None:
            found = await self._read_location(location, text)
            if found is not None:
                content.attachments.append(found)
                return _display_name(found) or name
        if text is not None and urlsplit(resource.uri).scheme in ("http", "https"):
            content.attachments.append(Url(url=resource.uri, text=text))
            return resource.uri
        if text is not None:
            content.attachments.append(Unknown(text=text, title=resource.uri))
            return name
        assert isinstance(resource, BlobResourceContents)
        if (resource.mime_type or "").startswith("image/"):
            content.attachments.append(self._read_image(resource.blob, title=name))
        else:
            content.notices.append(f"{name} is not attached: it is outside of {self._folder} and no picture.")
        return name

    async def _read_location(self, location: FileLocation, embedded_text: str | None) -> Attachment | None:
        """Return the attachment for a file or for lines of it, or None if nothing of it can be read."""
        path = path_in_folder(location.path, self._folder)
        if path is not None and location.path.is_dir():
            return Folder(path=path)
        if location.lines is not None:
            return await self._read_lines(location, path, embedded_text)
        if path is not None and location.path.is_file():
            return await self._read_file(location.path, path)
        text = await self._editor_text(location.path)
        if text is None:
            text = embedded_text
        if text is None:
            return None
        name = path or location.path.as_posix()
        kind = type(attachment_for_path(name))
        return Code(path=name, text=text) if kind is Code else Note(path=name, text=text)

    async def _read_lines(
        self, location: FileLocation, path: str | None, embedded_text: str | None
    ) -> Attachment | None:
        """Return the selected lines of a file; an editor that sends their text knows it best."""
        assert location.lines is not None
        text = embedded_text
        if text is None:
            whole = await self._editor_text(location.path)
            # A link in the folder may lead out of it.
            if whole is None and location.path.resolve().is_relative_to(self._folder.resolve()):
                whole = await run_in_own_thread(partial(read_text_file, location.path), name="lamella-read")
            if whole is None:
                return None
            first, last = location.lines
            text = "\n".join(whole.splitlines()[first - 1 : last])
        return Selection(text=text, path=path or location.path.as_posix(), lines=location.lines)

    async def _read_file(self, file: Path, path: str) -> Attachment:
        """Return the attachment of a file in the folder, with the editor's text if that differs from the file's.

        Without a text the file is read when the turn is built, with the notes that it embeds.
        """
        attachment = attachment_for_path(path)
        if not isinstance(attachment, Note | Code):
            return attachment
        text = await self._editor_text(file)
        if text is None or text == await run_in_own_thread(partial(read_text_file, file), name="lamella-read"):
            return attachment
        return type(attachment)(path=path, text=text)

    async def _editor_text(self, file: Path) -> str | None:
        return None if self._read_editor_file is None else await self._read_editor_file(str(file))

    def _read_image(self, data: str, *, title: str) -> Image:
        """Return an image from base64; raises ``LamellaError`` if it is none."""
        try:
            decoded = base64.b64decode(data, validate=True)
        except ValueError as error:
            raise InvalidOperationError(
                f"The data of the picture {title} is not base64.", hint="Attach the picture again."
            ) from error
        return self._files.image_attachment(decoded, title=title)


def describe_error(error: LamellaError, hints: Hints) -> str:
    """Return the message and the hint of an error in one line for the user."""
    from lamella.wiring import mask_keys  # only failures need it

    return f"{mask_keys(error.message)} {error.hint_for(hints)}"


def _is_due(attachment: Note | Code, known: Artifact) -> bool:
    """Return whether an attached file must be attached again to be sent as it is now."""
    if attachment.text is None:
        # Text that came from the editor is never read again from the folder, unless the file is attached again.
        return not known.source.is_rereadable
    now = attachment.to_artifact()
    return isinstance(now, Artifact) and now.hash != known.hash


def _last_part(uri: str) -> str:
    return unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2] or uri


def _display_name(attachment: Attachment) -> str:
    return str(getattr(attachment, "path", None) or "")


def _without_duplicates(attachments: Sequence[Attachment]) -> list[Attachment]:
    """Return each attachment once; of two for the same file, the one that has its text."""
    found: dict[object, Attachment] = {}
    for one in attachments:
        path = getattr(one, "path", None)
        is_file = isinstance(one, Note | Code)
        key = (type(one), path) if is_file else repr(one)
        known = found.get(key)
        if known is None or (is_file and getattr(known, "text", None) is None):
            found[key] = one
    return list(found.values())
