"""Summaries that pass the checks, made from what a summary model is asked: quotations of the numbered messages."""

import re
from collections.abc import Sequence

from lamella import Message

_NUMBERED = re.compile(r"^\[(?P<number>\d+)\] (?P<author>User|Assistant): (?P<words>.{1,40})", re.MULTILINE)


def faithful_summary(messages: Sequence[Message], *, statements: int = 1) -> str:
    """Return statements that quote the first messages of the user that the request numbers."""
    found = [one for one in _NUMBERED.finditer(messages[-1].text) if one["author"] == "User"]
    return "\n".join(
        f'- [{one["number"]}] The user wrote: "{one["words"].removesuffix(" …").strip()}"' for one in found[:statements]
    )
