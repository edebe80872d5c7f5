"""The end of an answer over HTTP: its last bytes are read, so that the connection serves the next request, too."""

from asyncio import timeout
from collections.abc import AsyncIterator
from contextlib import suppress

# Servers close what they said within milliseconds; longer than this, a new connection costs less than waiting.
_MOMENT = 1.0


async def read_out(rest: AsyncIterator[object], *failures: type[Exception]) -> None:
    """Read what comes after an answer, for a moment. It is no part of it, and what fails there harms nothing."""
    with suppress(TimeoutError, *failures):
        async with timeout(_MOMENT):
            async for _ in rest:
                pass
