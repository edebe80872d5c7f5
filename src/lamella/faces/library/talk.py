"""Talking: asking and replying, whatever keeps the conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from lamella.core.history.asked import Asked
from lamella.core.layers.system import PART_NAMES
from lamella.errors import SettingError
from lamella.faces.library.attach import Attachment, Tool, ToolResult
from lamella.runners.turns import Turn


class Runs(Protocol):
    """What walks turns: in memory, or into a store."""

    def ask(self, asked: Asked, *, at: datetime | None = None) -> Turn: ...

    def reply(self, text: str, *, at: datetime | None = None) -> None: ...


class Talk:
    """Ask gives what a model would be sent; reply records what it answered."""

    def __init__(self, runner: Runs, *, system: str | Mapping[str, str] | None) -> None:
        self._runner = runner
        self._system = {} if system is None else _parts(system)

    def ask(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        tools: Sequence[ToolResult] = (),
        tool_definitions: Sequence[Tool] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        fold: bool = False,
        at: datetime | None = None,
    ) -> Turn:
        """The next turn, built and checked. If it cannot be built, an error says why and nothing has changed."""
        parts = {**self._system, **(_parts(system) if system is not None else {})}
        asked = Asked(
            text=text,
            attach=tuple(one.attachment() for one in attach),
            results=tuple(one.attachment() for one in tools),
            system=parts,
            tools=None if tool_definitions is None else tuple(tool.definition() for tool in tool_definitions),
            model=model,
            drop=tuple(drop),
            fold=fold,
        )
        turn = self._runner.ask(asked, at=at)
        # From here on the conversation knows its system prompt, each branch its own.
        self._system = {}
        return turn

    def reply(self, text: str, *, at: datetime | None = None) -> None:
        """What the model answered to the turn asked last."""
        self._runner.reply(text, at=at)


def _parts(system: str | Mapping[str, str]) -> dict[str, str]:
    parts = {"base": system} if isinstance(system, str) else dict(system)
    unknown = sorted(set(parts) - set(PART_NAMES))
    if unknown:
        raise SettingError(
            f"The system prompt has no part {', '.join(unknown)}.",
            hint=f"Its parts are: {', '.join(PART_NAMES)}.",
        )
    return parts
