"""What a turn asks for, before anything is read."""

from dataclasses import dataclass, field

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.artifacts.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One turn as the user asks it: typed text with its templates, and attachments, read or still to be read.

    ``results`` are tool results that ride as text, ``tools`` what the model may call from now on.
    """

    text: str
    attach: tuple[Artifact | Wanted, ...] = ()
    results: tuple[Artifact, ...] = ()
    system: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    fold: bool = False
