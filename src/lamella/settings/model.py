"""The settings by name, type and default.

A setting has the same name in a file (``window``), in the environment (``LAMELLA_WINDOW``), in a transcript
(``"window"``) and in the library (``window=``), and a line in ``docs/settings.md``.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

# More than any model takes, and small enough that shares of it are exact.
MOST_TOKENS = 10**15
_Tokens = Annotated[int, Meta(le=MOST_TOKENS)]

# What a profile sets where nothing else is given. ``seed-paper`` keeps the thresholds and the chain of staged paper
# writing: shrink as little as possible, keep nothing back for the answer, take talk out by turns, and let the
# current stage be.
_PAPER_STEPS = ["chitchat", "oldest_stages", "summary", "recent_stages", "expendable"]
PROFILES: Mapping[str, Mapping[str, object]] = {
    "default": {},
    "seed-paper": {
        "reserve": 0,
        "warn": 0.60,
        "target": 0.849,
        "trigger": 0.85,
        "hard": 0.95,
        "compaction": {"steps": _PAPER_STEPS, "keep_stage": True, "summary": {"whole_turns": True}},
    },
}


# What people's conversations begin with where nobody set `system`. It says nothing that depends on a day, a model or a
# runner, so that it is the same in every request.
DEFAULT_SYSTEM = (
    "You are a helpful assistant. Answer in the language of the question, from the attached notes and files where they "
    "help, and say so when you do not know."
)


class KindSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How artifacts of a kind may shrink."""

    preview_over: int | None = None
    handle_after: int | None = None
    shrink: bool | None = None


class SummarySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much a summary reads and writes, in tokens, how many turns are worth one, its language and its form."""

    reads: int | None = None
    writes: int | None = None
    exact: int | None = None
    turns: int | None = None
    item: int | None = None
    language: str | None = None
    form: str | None = None
    whole_turns: bool | None = None


class ChainSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the chain runs."""

    steps: list[str] | None = None
    words: list[str] | None = None
    keep_stage: bool | None = None
    cues: list[str] | None = None
    every_kind: KindSettings = KindSettings()
    kinds: dict[str, KindSettings] = {}
    summary: SummarySettings = SummarySettings()


class CompactionSettings(ChainSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same for every runner, and what one of them does differently."""

    runners: dict[str, ChainSettings] = {}


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server: a command that starts it, or the address that it is at.

    ``env`` names the variables that it gets, ``token`` the one that has what an address wants to see. Unless it
    ``writes``, those of its tools are left out that may change something.
    """

    command: str | None = None
    args: list[str] = []
    env: list[str] = []
    url: str | None = None
    token: str | None = None
    seconds: float = 30
    writes: bool = False


class ServeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is reached, by whom, and within which bounds; see docs/server.md."""

    host: str = "127.0.0.1"
    port: int = 8765
    hosts: list[str] = []
    origins: list[str] = []
    tokens: str | None = None
    body_bytes: int = 20_000_000
    body_seconds: float = 30
    unread_seconds: float = 30
    rate: int = 600
    guesses: int = 10
    runs: int = 500
    grace: float = 15
    stop_seconds: float = 10
    preview: bool = False
    traces: str | None = None


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults of a conversation, by their types. What values mean is checked in ``meaning``."""

    model: str | None = None
    profile: str = "default"
    window: _Tokens = 128_000
    reserve: _Tokens = 4_096
    layout: str = "auto"
    carry_forward: str = "full"
    history: str = "full"
    history_turns: int | None = None
    warn: float = 0.60
    target: float = 0.40
    trigger: float = 0.85
    hard: float = 0.95
    compaction: CompactionSettings = CompactionSettings()
    image_notes: str = "text"
    system: str | dict[str, str] | None = None
    instructions: str | None = None
    instructions_file: str | None = None
    temperature: float | None = None
    reasoning_effort: str = "default"
    attachments: str = "turn"
    linger: int = 2
    cache_marks: str = "explicit"
    runner: str = "chat"
    steps: int = 8
    turn_seconds: float | None = 300
    turn_tokens: _Tokens | None = None
    max_cost: float | None = None
    tool_output: int = 50_000
    recall_hint: str = "off"
    memory: str = "chat"
    memory_folder: str | None = None
    memory_writes: str = "ask"
    workflow_folder: str | None = None
    mcp: dict[str, ServerSettings] = {}
    summarizer: str = "same"
    cache_storage: int = 0
    keep_alive: int = 0
    secrets: str = "warn"
    log_preview: bool = False
    note_writes: str = "ask"
    note_backups: str | None = None
    web_search: str | None = None
    store: str = "sqlite:///~/.lamella/chats.db"
    model_facts: str | None = None
    index_folder: str | None = None
    private_addresses: str | None = None
    page_bytes: int = 10_000_000
    page_seconds: float = 30
    video_languages: str = "en"
    document_seconds: float = 60
    document_memory: int = 1_000_000_000
    conversions: str | None = None
    conversions_bytes: int = 500_000_000
    serve: ServeSettings = ServeSettings()


NAMES: tuple[str, ...] = Settings.__struct_fields__
