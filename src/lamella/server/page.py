"""The web page: the built files below ``static``, which everybody may read without a token.

``load_static_files`` reads them once, and ``list_page_routes`` serves them. Files whose names contain a hash of their content
may be cached for good; the others are revalidated with their ETag.
"""

import gzip
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lamella.server.caching import MIN_COMPRESSED_BYTES, accepts_gzip, has_etag

# No inline script or style, and nothing from elsewhere. Pictures may be pasted (``blob:``) or attached (``data:``).
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# By ending, because the types that the system knows differ between machines.
_MEDIA_TYPES = {
    "css": "text/css;charset=utf-8",
    "html": "text/html;charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript;charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain;charset=utf-8",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}
_INDEX = "index.html"
_HASHED_ASSET = re.compile(r"/assets/.*-[A-Za-z0-9_-]{8,}\.[a-z0-9.]+")


class StaticFile(NamedTuple):
    """A file of the page: its content, also compressed if that is shorter, and what its response says about it."""

    content: bytes
    compressed: bytes | None
    media_type: str
    etag: str
    cache_control: str


@cache
def load_static_files() -> Mapping[str, StaticFile]:
    """Return the files of the page by their path; the index is at ``/``."""
    found: dict[str, StaticFile] = {}
    _add_files(found, files("lamella.server") / "static", "")
    return found


def _add_files(found: dict[str, StaticFile], folder: Traversable, prefix: str) -> None:
    for one in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}/{one.name}"
        if one.is_dir():
            _add_files(found, one, path)
        elif not one.name.startswith("."):
            found["/" if path == f"/{_INDEX}" else path] = make_static_file(path, one.read_bytes())


def make_static_file(path: str, content: bytes) -> StaticFile:
    """Return a file of the page as it is served."""
    compressed = gzip.compress(content, mtime=0) if len(content) >= MIN_COMPRESSED_BYTES else content
    return StaticFile(
        content=content,
        compressed=compressed if len(compressed) < len(content) else None,
        media_type=_MEDIA_TYPES.get(path.rpartition(".")[2], "application/octet-stream"),
        etag=f'"{sha256(content).hexdigest()[:32]}"',
        cache_control="public,max-age=31536000,immutable" if _HASHED_ASSET.fullmatch(path) else "no-cache",
    )


def list_page_routes() -> list[Route]:
    """Return a route for each file of the page."""
    return [
        Route(path, _StaticEndpoint(file), methods=["GET", "HEAD"], include_in_schema=False)
        for path, file in load_static_files().items()
    ]


class _StaticEndpoint:
    """Serves one file."""

    def __init__(self, file: StaticFile) -> None:
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file, sent = self._file, Headers(scope=scope)
        headers = {
            "ETag": file.etag,
            "Cache-Control": file.cache_control,
            "Content-Security-Policy": PAGE_POLICY,
            "Vary": "Accept-Encoding",
        }
        if has_etag(sent, file.etag):
            await Response(status_code=304, headers=headers)(scope, receive, send)
            return
        content = file.content
        if file.compressed is not None and accepts_gzip(sent):
            content = file.compressed
            headers["Content-Encoding"] = "gzip"
        response = Response(content, headers={**headers, "Content-Type": file.media_type})
        await response(scope, receive, send)
