"""All settings with their types and defaults.

A setting has the same name in a file (``window``), in the environment (``LAMELLA_WINDOW``), in a transcript
(``"window"``) and in Python (``window=``). ``docs/reference/settings.md`` is generated from the descriptions here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from lamella.core.log.call import MAX_KEEP_ALIVES
from lamella.core.log.turn import IMAGE_NOTE_MODE_BY_BOOL, SecretPolicy, TurnSettings
from lamella.errors import SettingError

# Larger than any model's window, and small enough that a share of it is an exact float.
MAX_TOKENS = 10**15
_Tokens = Annotated[int, Meta(le=MAX_TOKENS)]

# Values that a profile sets if no other source does. ``seed-paper`` has the thresholds and compaction steps for writing
# a paper in stages: remove as little as possible, reserve no tokens for the answer, summarise whole turns, and do not
# touch the current stage.
_PAPER_COMPACTION_STEPS = ["chitchat", "oldest_stages", "summary", "recent_stages", "expendable"]
# Replies and whole turns leave by age, length and code, as one list of priorities.
_PRIORITY_COMPACTION_STEPS = [
    "chitchat", "handle", "preview", "tool_results", "oldest_stages", "replies", "summary", "recent_stages", "expendable",
]  # fmt: skip
SETTINGS_PROFILES: Mapping[str, Mapping[str, object]] = {
    "default": {},
    "seed-paper": {
        "reserve": 0,
        "warn": 0.60,
        "target": 0.849,
        "trigger": 0.85,
        "hard": 0.95,
        "compaction": {"steps": _PAPER_COMPACTION_STEPS, "keep_stage": True, "summary": {"whole_turns": True}},
    },
    "seed-priorities": {"compaction": {"steps": _PRIORITY_COMPACTION_STEPS}},
}


# The system prompt of interactive conversations if `system` is not set. It names no date, model or runner, so that it
# is the same in every request and stays cached.
DEFAULT_SYSTEM = (
    "You are a helpful assistant. Answer in the language of the question, from the attached notes and files where they "
    "help, and say so when you do not know."
)


class KindSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How compaction may reduce artifacts of one kind; None means the default."""

    preview_over: Annotated[
        int | None,
        Meta(
            description="Length in characters above which an attachment may be replaced by its outline. Default: 5000."
        ),
    ] = None
    handle_after: Annotated[
        int | None,
        Meta(
            description="Turns that an attachment stays in the prompt after it is no longer attached. Overrides "
            "`linger` for this kind."
        ),
    ] = None
    shrink: Annotated[
        bool | None, Meta(description="Whether compaction may shorten attachments of this kind. Default: true.")
    ] = None


class SummarySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How summaries are written; None means the default.

    ``reads``, ``writes`` and ``exact`` limit the tokens of the input, the summary and the exact quotes beside it.
    ``turns`` is the least number of turns worth a summary, and ``item`` the least size of an attachment worth one.
    """

    reads: Annotated[
        int | None, Meta(description="Tokens of the oldest history that one summary covers. Default: 16000.")
    ] = None
    writes: Annotated[int | None, Meta(description="Tokens that a summary may have. Default: 500.")] = None
    exact: Annotated[
        int | None, Meta(description="Tokens of exact quotes that are kept beside a summary. Default: 500.")
    ] = None
    turns: Annotated[int | None, Meta(description="The least number of turns that is worth a summary. Default: 3.")] = (
        None
    )
    item: Annotated[
        int | None,
        Meta(description="The least size in tokens of an attachment that is worth a summary. Default: 2000."),
    ] = None
    language: Annotated[
        str | None,
        Meta(
            description="Language of summaries, such as `Indonesian`; at most 80 characters. Default: the language "
            "of the text."
        ),
    ] = None
    form: Annotated[
        str | None,
        Meta(
            description="Form of summaries, as an instruction for the model; at most 80 characters. Default: 3 to 5 "
            "short bullets."
        ),
    ] = None
    whole_turns: Annotated[
        bool | None,
        Meta(description="Whether a summary also replaces the user's messages, not only replies. Default: false."),
    ] = None


class CompactionChainSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The compaction steps and their options; None means the default."""

    steps: Annotated[
        list[str] | None, Meta(description="Compaction steps that may run, in this order. Default: all.")
    ] = None
    words: Annotated[
        list[str] | None, Meta(description="Further acknowledgements that compaction may remove, such as `roger`.")
    ] = None
    keep_stage: Annotated[
        bool | None, Meta(description="Whether turns of the current workflow stage are never removed. Default: false.")
    ] = None
    cues: Annotated[
        list[str] | None, Meta(description="Further phrases that make a sentence of the user a directive.")
    ] = None
    word_lists: Annotated[
        list[str] | None,
        Meta(
            description="TOML files with further word lists, for other languages or for words that Lamella does not "
            "know. See docs/how-to/long-conversations.md."
        ),
    ] = None
    every_kind: Annotated[KindSettings, Meta(description="How attachments of every kind may be shortened.")] = (
        KindSettings()
    )
    kinds: Annotated[
        dict[str, KindSettings], Meta(description="The same for single kinds of attachments, by kind.")
    ] = {}
    summary: Annotated[SummarySettings, Meta(description="How summaries are written.")] = SummarySettings()


class CompactionSettings(CompactionChainSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compaction settings for every runner, and overrides for single runners."""

    runners: Annotated[
        dict[str, CompactionChainSettings], Meta(description="The same fields for single runners, by runner.")
    ] = {}


class McpServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server: a command that starts it, or its address.

    ``env`` lists the environment variables that the server gets. ``token`` names the variable with the access token
    for an address. Unless ``writes`` is set, tools that may change something are left out.
    """

    command: Annotated[
        str | None,
        Meta(
            description="Program that starts the server, by name or path. A relative path in a project file is "
            "relative to that file."
        ),
    ] = None
    args: Annotated[list[str], Meta(description="Arguments of the command.")] = []
    env: Annotated[
        list[str],
        Meta(
            description="Names of environment variables that the server gets besides the common ones, such as `PATH` "
            "and `HOME`."
        ),
    ] = []
    url: Annotated[
        str | None, Meta(description="Address of a server that speaks Streamable HTTP, in place of a command.")
    ] = None
    token: Annotated[
        str | None, Meta(description="Name of the environment variable with the access token for the address.")
    ] = None
    seconds: Annotated[float, Meta(description="Seconds that a start, a list or a call may take.")] = 30
    writes: Annotated[bool, Meta(description="Whether models may call tools that may change something.")] = False


class HttpServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How Lamella's own HTTP server is reached, by whom, and within which limits; see docs/reference/settings.md."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(description="Port to listen on.")] = 8765
    hosts: Annotated[
        list[str],
        Meta(
            description="Further host names of the server, such as the name of a proxy. If there is one, every "
            "request needs a token."
        ),
    ] = []
    origins: Annotated[
        list[str], Meta(description="Origins of web pages that may send requests, such as `https://notes.example`.")
    ] = []
    tokens: Annotated[
        str | None, Meta(description="File with the access tokens. Default: `tokens.json` beside your settings file.")
    ] = None
    body_bytes: Annotated[int, Meta(description="Bytes that a request may have.")] = 20_000_000
    body_seconds: Annotated[
        float, Meta(description="Seconds in which the head of a request, and then its body, must arrive.")
    ] = 30
    unread_seconds: Annotated[
        float, Meta(description="Seconds after which the connection of a client that does not read is closed.")
    ] = 30
    rate: Annotated[
        int, Meta(description="Requests per minute and token, or per address without a token, in each process.")
    ] = 600
    guesses: Annotated[int, Meta(description="Wrong tokens per minute and address.")] = 10
    runs: Annotated[int, Meta(description="Turns that may run at the same time in each process.")] = 500
    grace: Annotated[
        float, Meta(description="Seconds that a turn continues after its last client has disconnected.")
    ] = 15
    stop_seconds: Annotated[float, Meta(description="Seconds that streams may take to end when the server stops.")] = 10
    preview: Annotated[bool, Meta(description="Whether the log shows the beginning of each answer.")] = False
    recall: Annotated[
        bool,
        Meta(
            description="Whether the compatibility endpoints keep the texts that a named conversation sends, and offer "
            "models a tool that finds those that the client has left out since."
        ),
    ] = False
    late_instructions: Annotated[
        bool,
        Meta(
            description="Whether the compatibility endpoints send instructions in the middle of a history as marked "
            "parts of the user's messages, to models that take instructions only at the beginning."
        ),
    ] = False
    traces: Annotated[str | None, Meta(description="Address of an OTLP collector that gets traces.")] = None


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings by type. Only types are checked here; ``meaning`` checks the values."""

    model: Annotated[
        str | None,
        Meta(
            description="The model, as `provider:name` or `name`. It decides the tokenizer, the cache profile and "
            "the price."
        ),
    ] = None
    profile: Annotated[
        str, Meta(description="Set of defaults for several settings: `default`, `seed-paper` or `seed-priorities`.")
    ] = "default"
    window: Annotated[
        _Tokens,
        Meta(
            description="Context window of the model in tokens. Default for stored conversations: the window of a "
            "known model, if it is smaller."
        ),
    ] = 128_000
    reserve: Annotated[
        _Tokens,
        Meta(description="Tokens that stay free for the answer. The limit of a request is the window minus this."),
    ] = 4_096
    layout: Annotated[
        str,
        Meta(
            description="Position of earlier attachments: `library` (system message), `in_place` (the message they "
            "came with) or `auto` (the cheaper one)."
        ),
    ] = "auto"
    carry_forward: Annotated[
        str,
        Meta(
            description="Form of earlier attachments in the context library: `full`, or `preview` (long ones become "
            "an outline until they are attached again)."
        ),
    ] = "full"
    history: Annotated[
        str,
        Meta(
            description="Part of the history that is sent: `full`, `window` (the last turns) or `strip` (a summary, "
            "then the last turns)."
        ),
    ] = "full"
    history_turns: Annotated[
        int | None, Meta(description="Turns that `history` shows. Default: 10 with `window`, 2 with `strip`.")
    ] = None
    warn: Annotated[float, Meta(description="Share of the limit above which a turn has a warning.")] = 0.60
    target: Annotated[float, Meta(description="Share of the limit that compaction reduces a request to.")] = 0.40
    trigger: Annotated[
        float, Meta(description="Share of the limit above which a request is compacted before it is sent.")
    ] = 0.85
    hard: Annotated[
        float, Meta(description="Share of the limit above which a request is not sent: `budget_exceeded`.")
    ] = 0.95
    compaction: Annotated[
        CompactionSettings,
        Meta(description="Compaction steps and their options, also for single kinds of attachments and runners."),
    ] = CompactionSettings()
    image_notes: Annotated[
        str,
        Meta(
            description="Form of an earlier note with images in the context library: its `text`, or a `handle` of "
            "one line."
        ),
    ] = "text"
    system: Annotated[
        str | dict[str, str] | None,
        Meta(
            description="The system prompt: a text, or a table of its parts. Default in chats: a short general "
            "prompt. Empty means none."
        ),
    ] = None
    instructions: Annotated[
        str | None,
        Meta(
            description="Your instructions, as a part of the system prompt. Templates such as `{[[Note]]}` are "
            "expanded."
        ),
    ] = None
    instructions_file: Annotated[
        str | None,
        Meta(description="File with these instructions. A relative path in a settings file is relative to that file."),
    ] = None
    temperature: Annotated[
        float | None, Meta(description="Sampling temperature from 0 to 2. Default: the provider's.")
    ] = None
    reasoning_effort: Annotated[
        str,
        Meta(
            description="How much the model reasons before it answers, from `none` to `max`; `default` leaves it to "
            "the model."
        ),
    ] = "default"
    attachments: Annotated[
        str,
        Meta(
            description="How long attachments stay: `turn` (their turn, then `linger` turns) or `sticky` (until you "
            "detach them). Default in interactive chats: `sticky`."
        ),
    ] = "turn"
    linger: Annotated[
        int,
        Meta(
            description="Turns that an attachment stays in the prompt after it is no longer attached. Unless you set "
            "it, it becomes 0 once two turns in a row list something that the turn before them listed, too."
        ),
    ] = 2
    cache_marks: Annotated[
        str,
        Meta(
            description="Who places cache breakpoints at providers that need them: `explicit` (Lamella) or "
            "`automatic` (the provider)."
        ),
    ] = "explicit"
    runner: Annotated[str, Meta(description="The runner that answers, if a question names none.")] = "chat"
    steps: Annotated[int, Meta(description="Tool rounds that a turn may have.")] = 8
    turn_seconds: Annotated[float | None, Meta(description="Seconds after which a turn calls no more tools.")] = 300
    turn_tokens: Annotated[
        _Tokens | None, Meta(description="Tokens of requests and answers after which a turn calls no more tools.")
    ] = None
    max_cost: Annotated[float | None, Meta(description="US dollars after which a turn calls no more tools.")] = None
    tool_output: Annotated[
        int,
        Meta(description="Characters of a tool result that the model gets. The rest is stored and can be recalled."),
    ] = 50_000
    recall_hint: Annotated[
        str, Meta(description="With `on`, questions get excerpts of related messages that left the prompt.")
    ] = "off"
    memory: Annotated[
        str,
        Meta(
            description="Conversations whose prompts include the memory: `on` (all), `chat` (interactive ones) or "
            "`off`."
        ),
    ] = "chat"
    memory_folder: Annotated[str | None, Meta(description="Folder of the memory. Default: `~/.lamella/memory`.")] = None
    memory_writes: Annotated[str, Meta(description="Whether models may save facts: `ask`, `allow` or `off`.")] = "ask"
    workflow_folder: Annotated[
        str | None, Meta(description="Folder of your own workflow files. Default: `~/.lamella/workflows`.")
    ] = None
    mcp: Annotated[
        dict[str, McpServerSettings], Meta(description="MCP servers by name, whose tools models may call.")
    ] = {}
    summarizer: Annotated[
        str,
        Meta(
            description="Model that writes summaries: `same` (the model of the conversation), `off`, or another model."
        ),
    ] = "same"
    summary_check: Annotated[
        str,
        Meta(
            description="What checks a summary before it is used: `rules`, or `model` (the rules, and then the "
            "summarizer confirms each statement, which costs a request per statement)."
        ),
    ] = "rules"
    cache_storage: Annotated[
        int,
        Meta(
            description="Requests per hour that you expect. Above 0, Lamella creates Gemini caches where they save "
            "money."
        ),
    ] = 0
    keep_alive: Annotated[
        int,
        Meta(
            description="How often the last request is repeated while a conversation is idle or a tool waits, to keep "
            "the provider's cache; at most 2."
        ),
    ] = 0
    secrets: Annotated[
        str,
        Meta(
            description="Policy for text that looks like a secret before it goes to a remote model: `warn`, `refuse` "
            "or `off`."
        ),
    ] = "warn"
    log_preview: Annotated[
        bool, Meta(description="Whether the log of your program shows the first 200 characters of each answer.")
    ] = False
    note_writes: Annotated[
        str, Meta(description="Whether models may write notes of the vault: `ask`, `allow` or `off`.")
    ] = "ask"
    note_backups: Annotated[
        str | None,
        Meta(
            description="Folder for copies of notes before they are changed. Default: the system's folder for user "
            "data."
        ),
    ] = None
    web_search: Annotated[
        str | None,
        Meta(
            description="Address of a search engine with SearXNG's JSON API. With it, models get a tool for web search."
        ),
    ] = None
    doi_lookup: Annotated[
        bool,
        Meta(description="Whether the details of a reference that is given by its DOI are fetched from doi.org."),
    ] = False
    store: Annotated[str, Meta(description="Address of the store: `sqlite:///FILE` or `postgresql://…`.")] = (
        "sqlite:///~/.lamella/chats.db"
    )
    model_facts: Annotated[
        str | None,
        Meta(
            description="TOML file with your own facts about models. A relative path in a settings file is relative "
            "to that file."
        ),
    ] = None
    index_folder: Annotated[
        str | None,
        Meta(description="Folder for the search indexes of vaults and code. Default: the system's folder for caches."),
    ] = None
    private_addresses: Annotated[
        str | None,
        Meta(
            description="Hosts and networks that are not public and may be fetched from, such as `wiki.home, "
            "10.1.0.0/16`."
        ),
    ] = None
    page_bytes: Annotated[int, Meta(description="Bytes that a fetched page may have, uncompressed.")] = 10_000_000
    page_seconds: Annotated[float, Meta(description="Seconds that fetching a page may take, with all redirects.")] = 30
    video_languages: Annotated[
        str, Meta(description="Languages of video transcripts in order of preference, such as `id, en`.")
    ] = "en"
    document_seconds: Annotated[float, Meta(description="Seconds that converting a page or document may take.")] = 60
    document_memory: Annotated[
        int, Meta(description="Bytes of memory that converting a page or document may take.")
    ] = 1_000_000_000
    conversions: Annotated[
        str | None, Meta(description="Folder of the conversion cache. Default: the system's folder for caches.")
    ] = None
    conversions_bytes: Annotated[int, Meta(description="Bytes that the conversion cache may have.")] = 500_000_000
    serve: Annotated[HttpServerSettings, Meta(description="Options of the HTTP server.")] = HttpServerSettings()


SETTING_NAMES: tuple[str, ...] = Settings.__struct_fields__


# Accepted values of each setting in words, and suggestions for misspelt names and values.

# The similarity (difflib ratio) from which a name counts as a misspelling of another: one or two letters differ.
MIN_NAME_SIMILARITY = 0.78
# The highest temperature that any provider accepts. Some accept at most 1.
MAX_TEMPERATURE = 2
# Shorter excerpts of a tool result are useless: the line that says how to read on takes a hundred characters by itself.
MIN_TOOL_OUTPUT = 500
# Shorter words are part of too many names to suggest one.
_MIN_MATCHED_CHARS = 3


class MemoryScope(StrEnum):
    """Conversations whose prompts include the memory: all, interactive ones only, or none."""

    ON = "on"
    CHAT = "chat"
    OFF = "off"


class RecallHintMode(StrEnum):
    """Whether excerpts of related messages that left the prompt are added to a question."""

    OFF = "off"
    ON = "on"


class SummaryCheck(StrEnum):
    """What checks a summary before it is used."""

    RULES = "rules"
    MODEL = "model"


# The turn settings that accept only certain words, with their enums.
TURN_SETTING_CHOICES: Mapping[str, type[StrEnum]] = {
    term.name: term.type
    for term in fields(TurnSettings)
    if isinstance(term.type, type) and issubclass(term.type, StrEnum)
}


class WritePermission(StrEnum):
    """Whether models may write notes, or to the memory, from the loosest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    OFF = "off"


# Other settings of this kind, which are not stored with a turn.
_OTHER_CHOICES: Mapping[str, type[StrEnum]] = {
    "memory": MemoryScope,
    "recall_hint": RecallHintMode,
    "summary_check": SummaryCheck,
    "secrets": SecretPolicy,
    "note_writes": WritePermission,
    "memory_writes": WritePermission,
}
_SHARE_DESCRIPTION = "a share of the window between 0 and 1, with warn < trigger < hard, and target < trigger"
_FOLDER_SETTINGS = ("index_folder", "conversions", "note_backups", "memory_folder", "workflow_folder")
# Accepted values that the type alone does not tell.
_ACCEPTED_VALUES: Mapping[str, str] = {
    "model": "the name of a model, such as local or anthropic:NAME",
    "profile": f"one of: {', '.join(SETTINGS_PROFILES)}",
    "window": "a whole number of tokens, more than reserve",
    "reserve": "a whole number of tokens from 0, less than window",
    "history_turns": "a whole number of turns from 1",
    **dict.fromkeys(("warn", "target", "trigger", "hard"), _SHARE_DESCRIPTION),
    "system": "a text, or a table of its parts",
    "instructions_file": "the path of a file",
    "temperature": f"a number from 0, which is steady, to {MAX_TEMPERATURE}",
    "linger": "a whole number of turns from 0",
    "keep_alive": f"a whole number of requests from 0 to {MAX_KEEP_ALIVES}",
    "cache_storage": "a whole number of requests that are expected in an hour, or 0",
    "store": "the URL of a store, such as sqlite:///chats.db",
    "model_facts": "the path of a file",
    "mcp": "a table of servers by name, each with a command or a url",
    "serve": "a table, as in docs/reference/settings.md: host, port, hosts, origins, rate and others",
    "runner": "the name of a runner, a way of answering",
    "steps": "a whole number of rounds from 1",
    "turn_seconds": "a number of seconds above 0",
    "turn_tokens": "a whole number of tokens from 1",
    "max_cost": "a number of US dollars above 0",
    "tool_output": f"a whole number of characters from {MIN_TOOL_OUTPUT:,}",
    "summarizer": "same, off, or the name of another model, such as anthropic:NAME",
    "log_preview": "true or false",
    "doi_lookup": "true or false",
    "web_search": "the address of a search engine that answers as SearXNG does",
    **dict.fromkeys(_FOLDER_SETTINGS, "the path of a folder"),
    "private_addresses": "hosts and networks with commas between them, such as wiki.home, 10.1.0.0/16",
    "video_languages": "languages with commas between them, such as id, en",
}


def describe_setting_values(name: str, type_description: str) -> str:
    """Describe which values a setting accepts; ``type_description`` is the description of its type."""
    words = ", ".join(list_accepted_words(name))
    return f"{name} takes {f'one of: {words}' if words else _ACCEPTED_VALUES.get(name, type_description)}."


def list_accepted_words(name: str) -> tuple[str, ...]:
    """Return the words that a setting accepts; empty if it is not limited to certain words."""
    return tuple({**TURN_SETTING_CHOICES, **_OTHER_CHOICES}.get(name, ()))


def find_closest_match(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``word`` probably means, or None.

    This is the most similar name, or else the only name that shares a whole part (``_`` separates parts) with the word
    or starts with it.
    """
    from difflib import get_close_matches  # imported late: only a misspelt name needs it

    names = list(known)
    plain = word.strip().casefold().replace("-", "_")
    similar = get_close_matches(plain, names, n=1, cutoff=MIN_NAME_SIMILARITY)
    if similar or len(plain) < _MIN_MATCHED_CHARS:
        return similar[0] if similar else None
    parts = [name for name in names if plain in name.split("_") or name.startswith(plain) or name in plain.split("_")]
    return parts[0] if len(parts) == 1 else None


# Masking of secrets in addresses before they are shown.

# A password may contain any character, so everything up to the last @ of an address counts as the password. Query
# fields with a name such as `token` are secrets as well.
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*):[^\s]*@")
_SECRET_FIELD = re.compile(r"(?i)([?&][^=&#\s]*(?:password|passwd|key|token|secret)[^=&#\s]*=)[^&#\s]*")


def mask_url_secrets(text: str) -> str:
    """Replace passwords and secret query fields in addresses with ``***``."""
    return _SECRET_FIELD.sub(r"\1***", _URL_PASSWORD.sub(r"\1:***@", text))


# Validation of setting values against their types, with errors that name the setting and its value.

_DOCS_HINT = "See docs/reference/settings.md."
# Names with "token" are secrets, but names with "tokens" are counts.
_SECRET_NAME = re.compile(r"key|token(?!s)|secret|password", re.IGNORECASE)
_EXPECTED_TYPES: Mapping[object, str] = {
    bool: "a valid boolean",
    int: "a valid integer",
    float: "a valid number",
    str: "a valid string",
    list: "a valid list",
}
_TYPE_DESCRIPTIONS: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
}
_UNKNOWN_SETTING = "unknown"
# The path of a setting, its value, and the problem. For an unknown setting the value is the sequence of known names.
_SettingFault = tuple[tuple[str, ...], object, str]


def validate_settings(values: Mapping[str, object], *, where: str = "") -> Settings:
    """Return the settings with these values and the defaults for the rest.

    ``where`` names the file or variable the values come from, for the error message. Raises ``SettingError`` for the
    first value that is wrong.
    """
    # `image_notes` also accepts a boolean, which stands for one of its words.
    switch = values.get("image_notes")
    if isinstance(switch, bool):
        values = {**values, "image_notes": IMAGE_NOTE_MODE_BY_BOOL[switch].value}
    try:
        return convert(values, Settings)
    except (ValidationError, OverflowError, RecursionError) as error:
        # msgspec does not report the value it rejects, so walk the values again to find it.
        fault = next(_iter_faults(values, Settings, ()), ((), values, "input cannot be read"))
        raise setting_error(fault, where=where) from error


def check_name(name: str, *, known: Sequence[str] = SETTING_NAMES) -> None:
    """Raise ``SettingError`` if no setting has this name; the hint suggests the closest one.

    ``known`` restricts the check to these names.
    """
    if name not in known:
        raise _unknown_setting_error((name,), known, where="")


def setting_error(fault: _SettingFault, *, where: str) -> SettingError:
    """Build the error for a setting from its path, its value and the problem."""
    path, value, wrong = fault
    if wrong == _UNKNOWN_SETTING and isinstance(value, Sequence):
        return _unknown_setting_error(path, value, where=where)
    name = ".".join(path) or "a setting"
    try:
        shown = mask_url_secrets(repr(value))
        # repr() raises ValueError for integers above Python's limit on digits.
    except ValueError:
        shown = "a number of thousands of digits"
    takes = f"{describe_accepted_values(path[0])} " if path else ""
    return SettingError(f"{where}The setting {name} is {shown}: {wrong}.", hint=takes + _DOCS_HINT)


def _unknown_setting_error(path: Sequence[str], known: Sequence[str], *, where: str) -> SettingError:
    *above, last = path
    name, table = ".".join(path), ".".join(above)
    kept = "Keys are read from the environment alone, and never from a file. " if _SECRET_NAME.search(last) else ""
    similar = find_closest_match(last, known)
    meant = f"Did you mean {'.'.join((*above, similar))}? " if similar else ""
    listed = f"Settings {f'of {table} ' if table else ''}are: {', '.join(known)}. {_DOCS_HINT}"
    return SettingError(f"{where}There is no setting {name}.", hint=kept + meant + listed)


def describe_accepted_values(name: str) -> str:
    """Describe in words which values a setting accepts."""
    kind = get_setting_value_type(name)
    return describe_setting_values(name, _TYPE_DESCRIPTIONS.get(get_origin(kind) or kind, "a table"))


def get_setting_value_type(name: str) -> Any:  # noqa: ANN401 - types have no common supertype
    """Return the type of the values of a setting, without its bounds and without ``None``."""
    return _strip_annotations(next(field.type for field in fields(Settings) if field.name == name))


def describe_expected_type(kind: object) -> str:
    """Describe what a value of a type should be, as the second half of an error message."""
    return f"input should be {_EXPECTED_TYPES.get(get_origin(kind) or kind, 'a table')}"


def _iter_faults(value: object, kind: Any, path: tuple[str, ...]) -> Iterator[_SettingFault]:  # noqa: ANN401 - any type
    plain = _strip_annotations(kind)
    if value is None and _accepts_none(kind):
        return
    inner = _list_inner_values(value, plain)
    if inner is None:
        yield from ((path, value, wrong) for wrong in _iter_value_problems(value, kind))
        return
    for name, one, type_ in inner:
        if type_ is None:
            yield (*path, name), tuple(field.name for field in fields(plain)), _UNKNOWN_SETTING
        else:
            yield from _iter_faults(one, type_, (*path, name))


def _list_inner_values(value: object, kind: Any) -> list[tuple[str, object, Any]] | None:  # noqa: ANN401 - any type
    """List the values inside a table or list, each with its name and type; return None for anything else.

    A type of None marks a key that the table does not know.
    """
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, Mapping):
        types = {field.name: field.type for field in fields(kind)}
        known = [(name, value[name], types[name]) for name in types if name in value]
        return [*known, *((str(name), one, None) for name, one in value.items() if name not in types)]
    if get_origin(kind) is dict and isinstance(value, Mapping):
        return [(str(name), one, get_args(kind)[1]) for name, one in value.items()]
    if get_origin(kind) is list and isinstance(value, list):
        return [(str(number), one, get_args(kind)[0]) for number, one in enumerate(value)]
    return None


def _iter_value_problems(value: object, kind: Any) -> Iterator[str]:  # noqa: ANN401 - any type
    try:
        convert(value, kind)
    except (ValidationError, OverflowError):
        too_large = isinstance(value, int) and not isinstance(value, bool) and _strip_annotations(kind) is int
        yield (
            f"input should be less than or equal to {MAX_TOKENS}"
            if too_large
            else describe_expected_type(_strip_annotations(kind))
        )


def _strip_annotations(kind: Any) -> Any:  # noqa: ANN401 - any type
    if get_origin(kind) is Annotated:
        return _strip_annotations(get_args(kind)[0])
    if get_origin(kind) is UnionType:
        return _strip_annotations(next(one for one in get_args(kind) if one is not type(None)))
    return kind


def _accepts_none(kind: Any) -> bool:  # noqa: ANN401 - any type
    return type(None) in get_args(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
