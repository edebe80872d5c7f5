"""Bodies: how large a request may be, how long it may take to arrive, and in which form."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from lamella.refusals import RequestRefusedError, RequestSlowError, RequestTooLargeError


def check_headers(headers: Headers, *, most: int) -> None:
    """Refuses a body that says itself that it is too large, or that is compressed."""
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise RequestRefusedError(f"A body in {encoding[:20]!a} is not read.", hint="Send it as it is, uncompressed.")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:18]) > most:
        raise _too_large(most)


async def read_body(receive: Receive, *, most: int, seconds: float) -> Receive:
    """The whole body, read within its bounds; what gives it out again, and tells afterwards when the client leaves."""
    parts: list[Message] = []
    left = most
    try:
        async with asyncio.timeout(seconds):
            while not parts or parts[-1].get("more_body", False):
                parts.append(await receive())
                left -= len(parts[-1].get("body", b""))
                if left < 0:
                    raise _too_large(most)
    except TimeoutError as error:
        raise RequestSlowError(
            f"The request did not arrive within {seconds:g} s.", hint="Send it again, or in smaller parts."
        ) from error
    parts.reverse()

    async def give() -> Message:
        return parts.pop() if parts else await receive()

    return give


def _too_large(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(f"The request has more than {most:,} bytes.", hint="Send less at once.")
