"""``write_note`` and ``edit_note``: a change is shown to whoever may say yes, and written after that."""

from asyncio import Lock, to_thread
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf

from lamella.adapters.tools.consent import seek_yes
from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.adapters.writing.writer import NoteWriter
from lamella.attach import Tool
from lamella.holdings import NoteChange
from lamella.ports import AllowWrite

_PATH = ToolParameter("path", "Its path in the vault, such as garden/beans.md.", required=True)
# A person takes as long as it takes to read what would change.
_SECONDS = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePermit:
    """Who writes, and who says yes. Unless it ``asks``, whoever runs this has said yes to all of it beforehand."""

    writer: NoteWriter
    allow: AllowWrite | None
    asks: bool = True
    # One change at a time: two calls of one answer may mean the same note, and one person reads one question at a time.
    turn: Lock = field(default_factory=Lock)

    async def make(self, plan: Callable[[], NoteChange]) -> str:
        """Plan a change, have it allowed, and make it; what is told of it."""
        async with self.turn:
            change = await to_thread(plan)
            if change.is_empty:
                return f"{change.path} says that already; nothing was written."
            if self.asks:
                await seek_yes(change, self.allow)
            await to_thread(self.writer.write, change)
        made = "made" if change.before is None else "changed"
        return f"{change.path} was {made}. A backup is kept; the user can take it back."


def make_write_tool(permit: WritePermit) -> Tool:
    """Writing whole notes as a tool."""

    def run(given: Arguments) -> Awaitable[str]:
        path, content = str(given["path"]), str(given["content"])
        return permit.make(lambda: permit.writer.plan_write(path, content))

    return make_tool(
        "write_note",
        "Make a note in the user's vault, or put a whole new text in place of one. The user is shown the change and "
        "says yes or no.",
        parameters=(_PATH, ToolParameter("content", "All of its new text, in markdown.", required=True)),
        run=run,
        seconds=_SECONDS,
        changes=True,
    )


def make_edit_tool(permit: WritePermit) -> Tool:
    """Replacing a passage of a note as a tool."""

    def run(given: Arguments) -> Awaitable[str]:
        path, old, new = (str(given[name]) for name in ("path", "old", "new"))
        return permit.make(lambda: permit.writer.plan_edit(path, old, new))

    return make_tool(
        "edit_note",
        "Replace one passage of a note in the user's vault, or add to its end. Read the note first. The user is shown "
        "the change and says yes or no.",
        parameters=(
            _PATH,
            ToolParameter("old", "The passage to replace, word for word. Empty adds to the end.", required=True),
            ToolParameter("new", "What stands there instead.", required=True),
        ),
        run=run,
        seconds=_SECONDS,
        changes=True,
    )
