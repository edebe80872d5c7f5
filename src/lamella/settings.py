"""Settings: read once, by wiring, from the environment and from what the caller gives.

Every setting has a default, a name that is the same in the environment (``LAMELLA_WINDOW``), in a transcript
(``"window"``) and in the library (``window=``), and a line in ``docs/settings.md``.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

# More than any model takes, and small enough that shares of it are exact.
_Tokens = Annotated[int, Field(le=10**15)]


class Settings(BaseModel):
    """Defaults of a conversation, by their types. What values mean is checked where they are used: in wiring."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model: str | None = None
    window: _Tokens = 128_000
    reserve: _Tokens = 4_096
    layout: str = "library"
    carry_forward: str = "full"
    history: str = "full"
    warn: float = 0.60
    target: float = 0.70
    trigger: float = 0.85
    hard: float = 0.95
    image_notes: bool = False
    store: str = "sqlite:///~/.lamella/chats.db"


class Environment(BaseSettings, Settings):
    """The same settings from the environment, which is made of texts."""

    model_config = SettingsConfigDict(env_prefix="LAMELLA_", strict=False)
