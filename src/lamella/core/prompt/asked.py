"""What a turn asks for, before anything is read."""

from dataclasses import dataclass, field

from lamella.core.artifacts.model import Artifact, Kind, Policy, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An attachment that must be read or expanded first: a file, a picture, a folder or a tag.

    ``data`` are the bytes of a picture that is given and only has to be understood; ``via`` says how it came in.
    """

    kind: Kind
    name: str
    policy: Policy | None = None
    title: str = ""
    via: str | None = None
    data: bytes | None = field(default=None, repr=False)
    media_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One turn as the user asks it: typed text with its templates, and attachments, read or still to be read."""

    text: str
    attach: tuple[Artifact | Wanted, ...] = ()
    results: tuple[Artifact, ...] = ()
    system: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    fold: bool = False
