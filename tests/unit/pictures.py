"""Small pictures, made of bytes."""

import struct
import zlib
from base64 import b64decode

# Six by four pixels, grey.
GIF = b64decode("R0lGODdhBgAEAIEAAFpaWgAAAAAAAAAAACwAAAAABgAEAAAICwABCBxIsKDBgQEBADs=")
WEBP = b64decode("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoGAAQAB0CWJaQAA3AA/t9WAAA=")
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI/////////////////////////////////////////////"
    "///////wAALCAAEAAYBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1"
    "FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKT"
    "lJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AI6//9k="
)


def png(width: int, height: int, shade: int = 0) -> bytes:
    """A grey PNG of this size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes([shade]) * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def claim_size(width: int, height: int) -> bytes:
    """A PNG of one pixel that says that it has another size."""
    made = png(1, 1)
    return made[:16] + struct.pack(">II", width, height) + made[24:]
