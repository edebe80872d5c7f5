"""Settings: read by wiring, from files, the environment and what the caller gives.

Every setting has a default, a name that is the same in a file (``window``), in the environment (``LAMELLA_WINDOW``),
in a transcript (``"window"``) and in the library (``window=``), and a line in ``docs/settings.md``.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

# More than any model takes, and small enough that shares of it are exact.
_Tokens = Annotated[int, Field(le=10**15)]


_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)

# What a profile sets where nothing else is given. ``seed-paper`` keeps the thresholds of staged paper writing: shrink
# as little as possible, and keep nothing back for the answer.
PROFILES: Mapping[str, Mapping[str, object]] = {
    "default": {},
    "seed-paper": {"reserve": 0, "warn": 0.60, "target": 0.849, "trigger": 0.85, "hard": 0.95},
}


class KindSettings(BaseModel):
    """How artifacts of a kind may shrink."""

    model_config = _STRICT

    preview_over: int | None = None
    handle_after: int | None = None
    shrink: bool | None = None


class SummarySettings(BaseModel):
    """How much a summary reads and writes, in tokens, and how many turns it is worth asking for."""

    model_config = _STRICT

    reads: int | None = None
    writes: int | None = None
    exact: int | None = None
    turns: int | None = None
    item: int | None = None


class ChainSettings(BaseModel):
    """How the chain runs."""

    model_config = _STRICT

    steps: list[str] | None = None
    words: list[str] | None = None
    every_kind: KindSettings = KindSettings()
    kinds: dict[str, KindSettings] = {}
    summary: SummarySettings = SummarySettings()


class CompactionSettings(ChainSettings):
    """The same for every runner, and what one of them does differently."""

    runners: dict[str, ChainSettings] = {}


class Settings(BaseModel):
    """Defaults of a conversation, by their types. What values mean is checked where they are used: in wiring."""

    model_config = _STRICT

    model: str | None = None
    profile: str = "default"
    window: _Tokens = 128_000
    reserve: _Tokens = 4_096
    layout: str = "library"
    carry_forward: str = "full"
    history: str = "full"
    history_turns: int | None = None
    warn: float = 0.60
    target: float = 0.70
    trigger: float = 0.85
    hard: float = 0.95
    compaction: CompactionSettings = CompactionSettings()
    image_notes: bool = False
    store: str = "sqlite:///~/.lamella/chats.db"
    model_facts: str | None = None


class Environment(BaseSettings, Settings):
    """The same settings from the environment, which is made of texts."""

    model_config = SettingsConfigDict(env_prefix="LAMELLA_", strict=False)
