"""Images: read them from a vault, from the web, from data URIs or from bytes, and check them.

``ImageReader`` reads images, and ``parse_image`` checks that bytes are a complete image of a type that models accept.
File names and declared media types are not trusted. No pixel is decoded: the header already states the size of an
image that would exhaust memory. ``resolve_embed`` finds the file that a note embeds, by Obsidian's rules.
"""

import json
import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from posixpath import basename, dirname, normpath
from urllib.parse import unquote, unquote_to_bytes

import imagesize

from lamella.core.artifacts.kinds import make_image_artifact, make_image_data
from lamella.core.artifacts.model import Artifact, ImageData, UnresolvedAttachment
from lamella.core.text.content import is_web_address
from lamella.errors import (
    BadInputError,
    NotAvailableError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreadableError,
)
from lamella.ports import no_vault_error
from lamella.sources.obsidian import OBSIDIAN_SETTINGS_FILE

MAX_PICTURE_BYTES = 50_000_000
# The largest camera sensors have 200 million pixels. An image that claims more is made to exhaust memory.
MAX_PIXELS = 250_000_000
MAX_SIDE = 65_000

_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
IMAGE_TYPES = tuple(_SIGNATURES)
# Formats that users take for images and that models do not accept.
_UNSUPPORTED_SIGNATURES = {
    "an SVG drawing": re.compile(
        rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--|<!DOCTYPE svg|<svg)", re.IGNORECASE
    ),
    "a PDF": re.compile(rb"%PDF-"),
    "a TIFF picture": re.compile(rb"II\*\x00|MM\x00\*"),
    "an AVIF picture": re.compile(rb"....ftypavi", re.DOTALL),
    "a HEIC picture": re.compile(rb"....ftyp(?:hei|hev|mif|msf)", re.DOTALL),
    "a BMP picture": re.compile(rb"BM"),
    "an icon": re.compile(rb"\x00\x00\x01\x00"),
}
_SAVE_AS_HINT = "Save it as PNG, JPEG, GIF or WebP."


def parse_image(data: bytes, *, media_type: str | None, name: str) -> ImageData:
    """Return an image value with its size, after checking its bytes.

    Raises:
        SourceUnreadableError: The bytes are not a complete image of an accepted type, or not of ``media_type``.
        SourceTooLargeError: The image has too many bytes or pixels.
    """
    if len(data) > MAX_PICTURE_BYTES:
        raise SourceTooLargeError(
            f"{name} has {len(data):,} bytes; a picture may have {MAX_PICTURE_BYTES:,}.", hint="Make it smaller."
        )
    found = next((kind for kind, signature in _SIGNATURES.items() if signature.match(data)), None)
    if found is None:
        raise _not_an_image_error(data, name)
    width, height = _read_size(data)
    if width == 0 or height == 0:
        raise SourceUnreadableError(f"{name} is a picture of {width} by {height} pixels.", hint="Save it once more.")
    if width < 0 or height < 0 or not _COMPLETENESS_CHECKS[found](data):
        raise SourceUnreadableError(
            f"{name} is not a picture that models take: it begins as {found} and breaks off ({len(data):,} bytes).",
            hint="Save or download it once more.",
        )
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise SourceTooLargeError(
            f"{name} says that it has {width:,} by {height:,} pixels; a picture may have {MAX_PIXELS:,} in all.",
            hint="Make it smaller.",
        )
    if media_type not in (None, found):
        raise SourceUnreadableError(
            f"{name} is given as {media_type}, and its bytes are {found}.", hint=f"Give it the media type {found}."
        )
    return make_image_data(data, media_type=found, width=width, height=height)


def _read_size(data: bytes) -> tuple[int, int]:
    """Return the width and height stated in the bytes; negative numbers if they state none."""
    try:
        width, height = imagesize.get(BytesIO(data))
    except (ValueError, TypeError, OverflowError, IndexError, ArithmeticError):
        return -1, -1  # imagesize returns -1 for most broken files and raises for the rest
    return int(width), int(height)


def _not_an_image_error(data: bytes, name: str) -> SourceUnreadableError:
    other = next((what for what, signature in _UNSUPPORTED_SIGNATURES.items() if signature.match(data)), None)
    if other is not None:
        return SourceUnreadableError(f"{name} is {other}, which is not a picture that models take.", hint=_SAVE_AS_HINT)
    return SourceUnreadableError(
        f"{name} is not a picture that models take ({len(data):,} bytes).",
        hint=f"Use one of: {', '.join(IMAGE_TYPES)}.",
    )


def _is_complete_png(data: bytes) -> bool:
    at = 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        at += 12 + length
        if name == b"IEND":
            return at <= len(data)
    return False


def _is_complete_jpeg(data: bytes) -> bool:
    """Return whether the image data begins and its end marker follows.

    The segments before it are skipped by their length, because a thumbnail inside them has end markers of its own.
    """
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        if data[at + 1] == 0xDA:
            return data.find(b"\xff\xd9", at) > 0
        # A fill byte has no length. Every other segment states its length.
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return False


def _is_complete_gif(data: bytes) -> bool:
    return data.rstrip(b"\0").endswith(b";")


def _is_complete_webp(data: bytes) -> bool:
    return int.from_bytes(data[4:8], "little") + 8 <= len(data)


_COMPLETENESS_CHECKS: dict[str, Callable[[bytes], bool]] = {
    "image/png": _is_complete_png,
    "image/jpeg": _is_complete_jpeg,
    "image/gif": _is_complete_gif,
    "image/webp": _is_complete_webp,
}


# Embedded files: no guesses, and never outside the vault.

_MAX_NAMED_FILES = 3


def resolve_embed(
    target: str,
    *,
    note_path: str,
    has_file: Callable[[str], bool],
    find_files_named: Callable[[str], Sequence[str]],
    get_attachment_folder: Callable[[], str],
) -> str:
    """Return the path of the file that a note embeds.

    It is searched beside the note, from the root, in the attachment folder, and by a unique name. ``find_files_named``
    returns files by name in any folder and case. ``get_attachment_folder`` returns the attachment folder of the vault's
    settings, relative to the root or, with ``./``, to the note. It is called only if the first two places have no such
    file.

    Raises:
        SourceNotFoundError: No file or several files match.
    """
    names, folder = tuple(_iter_candidate_names(target)), dirname(note_path)
    for find_parents in (lambda: (folder, ""), lambda: (_join_folder(folder, get_attachment_folder()),)):
        for path in _iter_candidate_paths(names, find_parents()):
            if has_file(path):
                return path
    found = next(filter(None, (_list_files_ending_with(name, find_files_named(basename(name))) for name in names)), ())
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceNotFoundError(
            f"{target} is in the vault {len(found)} times: {', '.join(found[:_MAX_NAMED_FILES])}.",
            hint="Embed it by a path that names one file.",
        )
    raise SourceNotFoundError(f"{target} is not in the vault.", hint="Embed a file that is there, by its name or path.")


def read_attachment_folder(read_text: Callable[[str], str]) -> str:
    """Return the vault's attachment folder from Obsidian's settings; the root if they do not say."""
    try:
        found = json.loads(read_text(OBSIDIAN_SETTINGS_FILE))
    except (BadInputError, ValueError, RecursionError):
        return ""
    kept = found.get("attachmentFolderPath") if isinstance(found, dict) else None
    return kept if isinstance(kept, str) else ""


def _iter_candidate_names(target: str) -> Iterator[str]:
    """Yield a target as written, percent-decoded, and without the query and fragment that only a browser uses."""
    plain = target.partition("?")[0].partition("#")[0]
    yield from dict.fromkeys(name for name in (target, unquote(target), plain, unquote(plain)) if name)


def _join_folder(folder: str, attachment_folder: str) -> str:
    return f"{folder}/{attachment_folder}" if attachment_folder.startswith(".") else attachment_folder


def _iter_candidate_paths(names: Sequence[str], parents: Sequence[str]) -> Iterator[str]:
    for name in names:
        for parent in ("",) if name.startswith("/") else parents:
            path = normpath(f"{parent}/{name}".lstrip("/"))
            if not path.startswith("../"):
                yield path


def _list_files_ending_with(name: str, files: Sequence[str]) -> Sequence[str]:
    """Return the files whose path ends like the target; all of them if none does, since the file may have moved."""
    suffix = f"/{normpath(name).lstrip('./').casefold()}"
    return [path for path in files if f"/{path.casefold()}".endswith(suffix)] or files


# Data URIs, such as ``data:image/png;base64,…``.

PASTED_IMAGE_NAME = "The pasted picture"
_PASTE_AGAIN_HINT = "Paste it once more, or attach the file itself."
_DATA_URI_HEAD = re.compile(r"data:([^,;]{0,100})((?:;[^,;]{0,100}){0,8}),", re.IGNORECASE)
_WHITESPACE = re.compile(rb"\s+")


def is_data_uri(name: str) -> bool:
    """Return whether a name is a data URI."""
    return name[:5].lower() == "data:"


def decode_data_uri(uri: str) -> bytes:
    """Return the bytes of a data URI. Its declared media type is ignored; the bytes show their own type."""
    head = _DATA_URI_HEAD.match(uri)
    if head is None:
        raise SourceUnreadableError(
            f"{PASTED_IMAGE_NAME} has no comma between its type and its bytes.", hint=_PASTE_AGAIN_HINT
        )
    if len(uri) > 3 * MAX_PICTURE_BYTES:
        raise SourceTooLargeError(
            f"{PASTED_IMAGE_NAME} has {len(uri):,} letters; a picture may have {MAX_PICTURE_BYTES:,} bytes.",
            hint="Make it smaller.",
        )
    if not head[2].lower().endswith(";base64"):
        return unquote_to_bytes(uri[head.end() :])
    letters = _WHITESPACE.sub(b"", unquote_to_bytes(uri[head.end() :])).rstrip(b"=")
    try:
        return b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
    except (Error, ValueError) as error:
        raise SourceUnreadableError(f"{PASTED_IMAGE_NAME} is not base64: {error}.", hint=_PASTE_AGAIN_HINT) from error


# The reader.

_MAX_SHOWN_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReader:
    """Reads images that models accept: files, images on the web, and bytes passed in.

    ``read_bytes`` reads a file of the vault and is None without one. ``fetch`` fetches an image from the web. It is
    responsible for refusing addresses and for limits of size and time. Without it, an image on the web stays a link.
    """

    read_bytes: Callable[[str], bytes] | None = None
    fetch: Callable[[str], bytes] | None = None

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        if attachment.data is not None:
            name = attachment.title or attachment.name or "The picture"
            image = parse_image(attachment.data, media_type=attachment.media_type, name=name)
            location = (
                {"url" if is_web_address(attachment.name) else "path": attachment.name} if attachment.name else {}
            )
            return make_image_artifact(image, title=attachment.title, **location)
        if is_data_uri(attachment.name):
            image = parse_image(
                decode_data_uri(attachment.name), media_type=None, name=attachment.title or PASTED_IMAGE_NAME
            )
            return make_image_artifact(image, title=attachment.title)
        if is_web_address(attachment.name):
            image = parse_image(
                self._fetch(attachment.name), media_type=None, name=attachment.name[:_MAX_SHOWN_NAME_LENGTH]
            )
            return make_image_artifact(image, title=attachment.title, url=attachment.name)
        image = parse_image(self._read_file(attachment.name), media_type=None, name=attachment.name)
        return make_image_artifact(image, title=attachment.title, path=attachment.name)

    def _read_file(self, name: str) -> bytes:
        if self.read_bytes is None:
            raise no_vault_error(name)
        return self.read_bytes(name)

    def _fetch(self, url: str) -> bytes:
        if self.fetch is None:
            raise NotAvailableError(
                f"{url[:_MAX_SHOWN_NAME_LENGTH]} is not fetched: nothing here reads pictures of the web.",
                hint="Save the picture as a file, and attach or embed that.",
            )
        return self.fetch(url)
