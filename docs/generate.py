"""Markdown for the pages in docs/reference, generated from the code.

Each page calls these functions in cog blocks. ``make docs`` rewrites the pages, and a test runs ``cog --check``. The
result depends only on the code: not on the width of a terminal, the settings of the user or the current time.
"""

import enum
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, get_args, get_origin

# Typer reads this when it is imported. Without it, help has boxes as wide as the terminal.
os.environ["TYPER_USE_RICH"] = "0"

import typer
from msgspec import Struct
from msgspec.structs import fields

from lamella.errors import LamellaError
from lamella.schemas.body import JsonBody

_HELP_WIDTH = 100
_PUBLIC_MODULES = (
    "lamella",
    "lamella.attach",
    "lamella.providers",
    "lamella.testing",
    "lamella.notes",
    "lamella.code",
    "lamella.workflows",
)
# Methods of attachments that only the engine calls.
_INTERNAL_METHODS = frozenset({"to_artifact", "to_unresolved"})


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a markdown table."""
    lines = [_table_row(heads), "|" + "---|" * len(heads), *(_table_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _table_row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", r"\|") for cell in cells) + " |"


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def _plain_docstring(text: str) -> str:
    """Return a docstring with markdown code marks in place of double backquotes."""
    return text.replace("``", "`")


def _first_line(thing: object) -> str:
    return _plain_docstring((inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " "))


# Commands.


def cli() -> str:
    """Return the help of every command, in the order of ``lamella --help``."""
    from lamella.cli.app import build_click_command

    root = build_click_command()
    parts = ["## lamella\n", _help_block(root, ("lamella",))]
    for name, command in root.commands.items():
        # `paper` has the same commands as `workflow`.
        inner = {} if name == "paper" else getattr(command, "commands", {})
        parts += [f"## lamella {name}\n", _help_block(command, ("lamella", name))]
        for word, one in inner.items():
            parts += [f"### lamella {name} {word}\n", _help_block(one, ("lamella", name, word))]
        if name == "paper":
            parts.append("The commands are those of [`lamella workflow NAME`](#lamella-workflow).\n")
    return "\n".join(parts)


def _help_block(command: Any, path: Sequence[str]) -> str:  # noqa: ANN401 - a click command
    context = typer.Context(command, info_name=" ".join(path), terminal_width=_HELP_WIDTH)
    lines = [line.rstrip() for line in command.get_help(context).strip().splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def chat_commands() -> str:
    """Return the table of slash commands."""
    from lamella.cli.chat.slash import SLASH_COMMANDS

    return table(
        ("command", "effect"),
        ((_code(f"{one.name} {one.arguments}".strip()), one.description) for one in SLASH_COMMANDS.values()),
    )


def runners() -> str:
    """Return the table of runners."""
    from lamella.conversation.runner_context import list_runners
    from lamella.runners.registry import RUNNERS, RUNNERS_WITHOUT_TOOLS

    return table(
        ("runner", "how it answers", "offers Lamella's tools"),
        (
            (_code(name), _plain_docstring(description), "no" if name in RUNNERS_WITHOUT_TOOLS else "yes")
            for name, description in list_runners(RUNNERS).items()
        ),
    )


# Settings.


def settings() -> str:
    """Return the table of settings."""
    from lamella.settings.model import Settings, list_accepted_words

    rows = []
    for field in fields(Settings):
        words = list_accepted_words(field.name)
        rows.append(
            (
                _code(field.name),
                ", ".join(_code(word) for word in words) or _describe_type(field.type),
                _code(_format_default(field.default)),
                ", ".join(_setting_scopes(field.name)),
                _description(field.type),
            )
        )
    return table(("setting", "type", "default", "may be set in", "description"), rows)


def _setting_scopes(name: str) -> Iterator[str]:
    from lamella.archive.transcript import Transcript
    from lamella.cli.chat.setting_commands import SETTABLE_NAMES
    from lamella.server.routes.settings import CONVERSATION_SETTINGS
    from lamella.wiring import runner_context, server, setting_checks, sources

    user_only = {
        *setting_checks.USER_ONLY_SETTINGS,
        *sources.USER_ONLY_SETTINGS,
        *runner_context.USER_ONLY_SETTINGS,
        *server.USER_ONLY_SETTINGS,
    }
    yield "user"
    if name not in user_only:
        yield "project"
    if name in SETTABLE_NAMES:
        yield "conversation"
    if name in Transcript.model_fields:
        yield "transcript"
    if name in CONVERSATION_SETTINGS:
        yield "HTTP"


def setting_tables() -> str:
    """Return a table for each setting that is a table itself."""
    from lamella.settings.model import (
        CompactionSettings,
        HttpServerSettings,
        KindSettings,
        McpServerSettings,
        SummarySettings,
    )

    parts = []
    for heading, kind in (
        ("compaction", CompactionSettings),
        ("compaction.every_kind, compaction.kinds.KIND", KindSettings),
        ("compaction.summary", SummarySettings),
        ("mcp.NAME", McpServerSettings),
        ("serve", HttpServerSettings),
    ):
        rows = (
            (
                _code(field.name),
                _describe_type(field.type),
                _code(_format_default(field.default)),
                _description(field.type),
            )
            for field in fields(kind)
        )
        parts.append(f"### {heading}\n\n{table(('field', 'type', 'default', 'description'), rows)}")
    return "\n".join(parts)


def settings_profiles() -> str:
    """Return the table of settings profiles with the values they set."""
    from lamella.settings.model import SETTINGS_PROFILES

    def lines(name: str, value: object) -> Iterator[str]:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield from lines(f"{name}.{key}", inner)
        else:
            shown = ", ".join(value) if isinstance(value, list) else _format_default(value)
            yield f"`{name}` = {shown}"

    return table(
        ("profile", "sets"),
        (
            (
                _code(profile),
                "; ".join(line for name, value in sets.items() for line in lines(name, value)) or "nothing",
            )
            for profile, sets in SETTINGS_PROFILES.items()
        ),
    )


def _format_default(value: object) -> str:
    if isinstance(value, Struct):
        return "{}"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float | list | dict) else "{}"


def _describe_type(kind: Any) -> str:  # noqa: ANN401 - any type
    plain = _strip_type(kind)
    names: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "boolean", list: "list"}
    return names.get(get_origin(plain) or plain, "table")


def _strip_type(kind: Any) -> Any:  # noqa: ANN401 - any type
    while hasattr(kind, "__metadata__") or type(None) in get_args(kind):
        kind = (
            kind.__origin__ if hasattr(kind, "__metadata__") else next(x for x in get_args(kind) if x is not type(None))
        )
    return kind


def _description(kind: Any) -> str:  # noqa: ANN401 - any type
    found = [one.description for one in getattr(kind, "__metadata__", ()) if one.description]
    return str(found[-1])


# Limits.

# Each bound with its unit and its constant. A limit that a user can set is listed with the settings instead.
_LIMITS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Files and attachments",
        (
            ("a file of the vault", "bytes", "lamella.sources.vault:MAX_FILE_BYTES"),
            ("a file of a codebase", "bytes", "lamella.codebase.repository:MAX_FILE_BYTES"),
            ("a transcript or an archive", "bytes", "lamella.files:MAX_FILE_BYTES"),
            ("a settings file", "bytes", "lamella.files:MAX_SETTINGS_BYTES"),
            ("a workflow file", "bytes", "lamella.sources.workflow_files:_MAX_FILE_BYTES"),
            ("the memory", "bytes", "lamella.memory:MAX_MEMORY_BYTES"),
            (
                "`.lamella/instructions.md` or `.lamella/memory.md` of a project",
                "bytes",
                "lamella.sources.open_sources:MAX_PROJECT_FILE_BYTES",
            ),
            ("an image", "bytes", "lamella.sources.images:MAX_PICTURE_BYTES"),
            ("an image", "pixels", "lamella.sources.images:MAX_PIXELS"),
            ("a side of an image", "pixels", "lamella.sources.images:MAX_SIDE"),
            ("images of a turn", "images", "lamella.conversation.turn_reader:MAX_IMAGES"),
            ("images of a turn", "bytes", "lamella.conversation.turn_reader:MAX_IMAGE_BYTES"),
            ("an image from the clipboard", "bytes", "lamella.cli.clipboard:MAX_CLIPBOARD_BYTES"),
            ("standard input of `lamella ask`", "bytes", "lamella.cli.ask:_MAX_STDIN_BYTES"),
            ("notes embedded in a note", "characters", "lamella.sources.obsidian:_MAX_EMBEDDED_CHARACTERS"),
            ("front matter", "characters", "lamella.sources.markdown:_MAX_FRONT_MATTER_CHARS"),
            ("an unpacked office document", "bytes", "lamella.sources.converters:_MAX_UNPACKED_BYTES"),
            ("an address of a page", "characters", "lamella.sources.web:_MAX_URL_LENGTH"),
        ),
    ),
    (
        "Search and queries",
        (
            ("a search query", "characters", "lamella.retrieval.search:MAX_QUERY_CHARS"),
            ("hits of a search", "hits", "lamella.conversation.note_index:MAX_HITS"),
            ("indexed text of a note", "characters", "lamella.retrieval.index:MAX_INDEXED_CHARS"),
            ("a Dataview query", "characters", "lamella.sources.dataview.parser:MAX_QUERY_LENGTH"),
            ("nesting of a Dataview query", "levels", "lamella.sources.dataview.parser:MAX_NESTING_DEPTH"),
            ("a Dataview result", "characters", "lamella.sources.dataview.results:MAX_RESULT_CHARS"),
            ("a cell of a Dataview result", "characters", "lamella.sources.dataview.results:MAX_CELL_CHARS"),
            ("code attached for a question, unless set", "tokens", "lamella.attach:DEFAULT_CODE_BUDGET"),
            ("code attached for a question", "tokens", "lamella.wiring.code:MAX_CODE_BUDGET"),
        ),
    ),
    (
        "Turns, tools and recall",
        (
            ("an answer in Python, unless set", "tokens", "lamella.conversation.turn_runner:DEFAULT_ANSWER_TOKENS"),
            ("tool rounds of a turn, unless set", "rounds", "lamella.conversation.tool_executor:DEFAULT_STEPS"),
            ("a call of a tool, unless set", "seconds", "lamella.conversation.tool_executor:DEFAULT_CALL_TIMEOUT"),
            ("stored output of a tool", "characters", "lamella.conversation.tool_executor:MAX_OUTPUT_CHARS"),
            ("tokens of a recall, unless set", "tokens", "lamella.core.search.recall:RECALL_TOKENS"),
            ("hits of a recall, unless set", "hits", "lamella.core.search.recall:DEFAULT_LIMIT"),
            ("a text that recall returns whole", "tokens", "lamella.core.search.recall:WHOLE_TOKENS"),
            ("sentences of a longer one", "sentences", "lamella.core.search.recall:MAX_SENTENCES"),
            ("what the tool reads of one text at a time", "characters", "lamella.conversation.recall:MAX_ANSWER_CHARS"),
            ("parallel summaries", "requests", "lamella.conversation.summaries:MAX_PARALLEL_SUMMARIES"),
            ("memory in a prompt", "tokens", "lamella.conversation.memory:MAX_MEMORY_TOKENS"),
            ("a remembered fact", "characters", "lamella.core.prompt.layers.model:MAX_FACT_CHARS"),
            ("list of removed attachments", "tokens", "lamella.core.prompt.layers.library:MAX_HANDLE_LIST_TOKENS"),
            ("a note that a model writes", "characters", "lamella.vault_writer:MAX_NOTE_CHARS"),
            ("keep-alive requests", "requests", "lamella.core.log.call:MAX_KEEP_ALIVES"),
            ("calls planned by the runner `plus`", "calls", "lamella.runners.query_planning:MAX_PLANNED_CALLS"),
        ),
    ),
    (
        "MCP servers",
        (
            ("tools of a server", "tools", "lamella.tools.mcp:MAX_TOOLS"),
            ("the name of a tool", "characters", "lamella.tools.mcp:MAX_TOOL_NAME_CHARS"),
            ("the description of a tool", "characters", "lamella.tools.mcp:MAX_DESCRIPTION_CHARS"),
            ("the schema of a tool", "characters", "lamella.tools.mcp:MAX_SCHEMA_CHARS"),
            ("nesting of a schema", "levels", "lamella.tools.mcp:_MAX_SCHEMA_DEPTH"),
            ("the name of a server", "characters", "lamella.wiring.mcp:_MAX_SERVER_NAME_CHARS"),
            ("the setting `seconds`", "seconds", "lamella.wiring.mcp:_MAX_TIMEOUT_SECONDS"),
        ),
    ),
    (
        "Stores, providers and the server",
        (
            ("wait for a locked store", "seconds", "lamella.stores.open_store:DEFAULT_STORE_TIMEOUT"),
            ("connections to PostgreSQL per process", "connections", "lamella.stores.postgresql:_MAX_CONNECTIONS"),
            ("wait for a silent provider", "seconds", "lamella.conversation.turn_runner:DEFAULT_IDLE_TIMEOUT"),
            ("attachments of a request", "attachments", "lamella.server.turns:_MAX_ATTACHMENTS"),
            (
                "conversations of a page of a list",
                "conversations",
                "lamella.server.routes.conversations:_MAX_PAGE_SIZE",
            ),
            ("queued turns of a conversation", "turns", "lamella.conversation.runs:_MAX_QUEUED"),
            ("the file name of an archive", "bytes", "lamella.archive.markdown.archive:MAX_FILE_NAME_BYTES"),
            ("messages of an imported chat", "messages", "lamella.archive.markdown.legacy:_MAX_MESSAGES"),
        ),
    ),
)


def limits() -> str:
    """Return the tables of limits."""
    parts = []
    for heading, rows in _LIMITS:
        shown = (
            (what, f"{_constant(place):,g}" if unit.startswith("share") else f"{_constant(place):,.0f}", unit)
            for what, unit, place in rows
        )
        parts.append(f"## {heading}\n\n{table(('limit of', 'value', 'unit'), shown)}")
    return "\n".join(parts)


def secret_file_names() -> str:
    """Return the names of files that are never attached from a codebase."""
    from lamella.codebase import repository

    names = [*sorted(repository.SECRET_NAMES), *(f"{folder}/" for folder in sorted(repository.SECRET_FOLDERS))]
    return ", ".join(_code(name) for name in names) + "\n"


def _constant(place: str) -> Any:  # noqa: ANN401 - a number
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


# Python.


def python() -> str:
    """Return every public name with its signature and docstring."""
    parts, homes = [], dict[int, str]()
    for module_name in _PUBLIC_MODULES:
        module = import_module(module_name)
        parts.append(f"## {module_name}\n\n{_first_line(module)}\n")
        also = []
        for name in _public_names(module):
            thing = getattr(module, name)
            home = homes.setdefault(id(thing), module_name)
            if home != module_name:
                also.append(f"`{name}` ({home})")
                continue
            parts.append(_describe_name(name, thing))
        if also:
            parts.append(f"Also exported here: {', '.join(also)}.\n")
    # The end marker of cog may not be part of the text that it writes.
    return "\n".join(parts).replace("]]]", "]] ]")


def _public_names(module: ModuleType) -> list[str]:
    # `lamella.open` is not in `__all__`, so that a star import does not hide the builtin.
    return sorted([*module.__all__, *(["open"] if module.__name__ == "lamella" else [])], key=str.lower)


def _describe_name(name: str, thing: Any) -> str:  # noqa: ANN401 - any object
    parts = [f"### {name}\n"]
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        parts.append(f"{_docstring(thing)}Values: {', '.join(_code(one.value) for one in thing)}.\n")
        return "\n".join(parts)
    if not callable(thing) or get_origin(thing):
        members = ", ".join(_code(getattr(one, "__name__", one)) for one in get_args(thing))
        return "\n".join([*parts, f"One of: {members}.\n"])
    if isinstance(thing, type) and issubclass(thing, LamellaError):
        return "\n".join([*parts, _docstring(thing) + f"Code: [`{thing.code}`](errors.md).\n"])
    if isinstance(thing, type) and issubclass(thing, JsonBody):
        return "\n".join([*parts, f"{_docstring(thing)}Fields: [JSON output](json-output.md#{name.lower()}).\n"])
    signature = "" if getattr(thing, "_is_protocol", False) else _signature(name, thing)
    if signature:
        parts.append(f"```py\n{signature}\n```\n")
    if _docstring(thing):
        parts.append(_docstring(thing).rstrip("\n") + "\n")
    methods = list(_public_methods(thing)) if isinstance(thing, type) else []
    if methods:
        parts.append(table(("member", "description"), methods))
    return "\n".join(parts)


def _docstring(thing: object) -> str:
    text = (vars(thing).get("__doc__") if isinstance(thing, type) else inspect.getdoc(thing)) or ""
    return _plain_docstring(inspect.cleandoc(text)) + "\n\n" if text else ""


def _public_methods(thing: type) -> Iterator[tuple[str, str]]:
    own = (cls for cls in thing.__mro__ if cls.__module__.startswith("lamella"))
    seen: set[str] = set()
    for cls in own:
        for name, member in vars(cls).items():
            if name.startswith("_") or name in seen or name in _INTERNAL_METHODS:
                continue
            function = getattr(member, "__func__", member)
            if isinstance(member, property):
                seen.add(name)
                yield _code(name), _first_line(member)
            elif inspect.isfunction(function):
                seen.add(name)
                is_async = "async " if inspect.iscoroutinefunction(function) else ""
                yield _code(is_async + _signature(name, function, is_method=True)), _first_line(function)


def _signature(name: str, thing: Callable[..., Any], *, is_method: bool = False) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = list(found.parameters.values())
    if is_method and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown = found.replace(parameters=parameters)
    if isinstance(thing, type):
        shown = shown.replace(return_annotation=inspect.Signature.empty)
    text = _shorten_types(str(shown))
    line = f"{name}{text}"
    if is_method or len(line) <= _HELP_WIDTH:
        return line
    one_per_line = [
        _shorten_types(str(inspect.Signature([one])))[1:-1].removeprefix("*, ").removesuffix(", /")
        for one in parameters
    ]
    keyword_from = next((at for at, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY), None)
    if keyword_from is not None and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        one_per_line.insert(keyword_from, "*")
    ending = text[text.rindex(")") + 1 :] if text.rindex(")") > text.rfind("->") else text[text.rfind(" ->") :]
    return f"{name}(\n" + "".join(f"    {one},\n" for one in one_per_line) + f"){ending}"


def _shorten_types(text: str) -> str:
    text = re.sub(r"<(?:function|object|class|built-in)[^>]*>", "…", text)
    text = re.sub(r"<\w+\.(\w+): ('[^']*')>", r"\2", text)
    return re.sub(r"\b(?:lamella|typing|collections\.abc|datetime|decimal|pathlib|msgspec)\.(?:\w+\.)*(?=\w)", "", text)


# Errors.


def _error_classes(root: Any = None) -> Iterator[tuple[int, Any]]:  # noqa: ANN401 - an error class
    def walk(one: Any, depth: int) -> Iterator[tuple[int, Any]]:  # noqa: ANN401 - an error class
        yield depth, one
        for child in one.__subclasses__():
            if child.__module__ == "lamella.errors":
                yield from walk(child, depth + 1)

    yield from walk(root or LamellaError, 0)


def error_tree() -> str:
    """Return the tree of error classes."""
    lines = [f"{'    ' * depth}{one.__name__}" for depth, one in _error_classes()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def errors() -> str:
    """Return the table of errors."""
    from lamella.errors import BadInputError
    from lamella.server.errors import http_status

    return table(
        ("code", "class", "exit code", "HTTP status", "meaning", "remedy"),
        (
            (
                _code(one.code),
                _code(one.__name__),
                2 if issubclass(one, BadInputError) else 1,
                http_status(one.__new__(one)),
                _first_line(one),
                one.remedy,
            )
            for _, one in _error_classes()
        ),
    )


# HTTP.


def http() -> str:
    """Return the operations of the server, by tag."""
    from fastapi import FastAPI

    from lamella.server.app import ROUTERS
    from lamella.server.openapi import build_openapi

    app = FastAPI(title="Lamella", version="0", docs_url=None, redoc_url=None)
    for router in ROUTERS:
        app.include_router(router)
    by_tag: dict[str, list[tuple[str, str, str]]] = {}
    for path, operations in build_openapi(app)["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            answer = _response_body(operation)
            by_tag.setdefault(tag, []).append((_code(f"{method.upper()} {path}"), operation["summary"], answer))
    return "\n".join(
        f"### {tag}\n\n{table(('operation', 'summary', 'response body'), rows)}" for tag, rows in by_tag.items()
    )


def _response_body(operation: Mapping[str, Any]) -> str:
    kinds: dict[str, None] = {}
    for status, response in operation["responses"].items():
        for kind, content in response.get("content", {}).items():
            if status.startswith("2"):
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                kinds[_code(name) if name else kind] = None
    return " or ".join(kinds)


def access_scopes() -> str:
    """Return the scopes of access tokens."""
    from lamella.settings.tokens import AccessScope

    return ", ".join(_code(one.value) for one in AccessScope) + "\n"


def stream_events() -> str:
    """Return the events of a streamed answer with their bodies."""
    from lamella.schemas.answers import EVENTS

    return table(("event", "body"), ((_code(name), _code(body.__name__)) for name, body in EVENTS.items()))


def change_events() -> str:
    """Return the events of the stream of changes with their bodies."""
    from lamella.schemas.changes import CHANGE_EVENTS

    return table(("event", "body"), ((_code(name), _code(body.__name__)) for name, body in CHANGE_EVENTS.items()))


# JSON output.

_SCHEMA_MODULES = (
    "body",
    "catalog",
    "conversations",
    "messages",
    "answers",
    "prompts",
    "ledger",
    "library",
    "compaction",
    "code",
    "workflows",
    "strata",
    "session",
    "changes",
    "doctor",
)


def list_bodies() -> dict[str, type[Struct]]:
    """Return every JSON body by name, in the order of the page."""
    modules = [import_module(f"lamella.schemas.{name}") for name in _SCHEMA_MODULES]
    return {
        name: body
        for module in modules
        for name, body in vars(module).items()
        if isinstance(body, type) and body.__module__ == module.__name__ and name.endswith("Json")
    }


def json_bodies() -> str:
    """Return every JSON body with its fields."""
    from lamella.server.openapi import build_body_schemas

    bodies = list_bodies()
    schemas = build_body_schemas(bodies.values())
    parts = []
    for name, body in bodies.items():
        rows = _body_rows(schemas[name])
        fields_table = f"\n{table(('field', 'type', 'meaning'), rows)}" if rows else ""
        parts.append(f"### {name}\n\n{_first_line(body)}\n{fields_table}")
    return "\n".join(parts)


def _body_rows(schema: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (
            _code(name) + ("" if name in schema["required"] else " (optional)"),
            _schema_type(field),
            field.get("description", ""),
        )
        for name, field in schema["properties"].items()
    ]


# The body of each command's output. Commands add the field `lamella` to bodies without it.
_JSON_OUTPUTS: Mapping[str, str] = {
    "ask": "TurnAnswerJson",
    **dict.fromkeys(("attach", "detach", "drop", "pin", "unpin", "refresh"), "CommandResultJson"),
    "show": "LibraryJson",
    "ledger": "LedgerJson",
    "compact": "PlanJson",
    "recall": "RecallJson",
    "rules": "RuleListJson",
    "why": "PromptExplanationJson",
    "chats list": "ConversationListJson",
    "chats show": "ShownConversationJson",
    "chats export": "ExportResultsJson",
    "chats import": "ImportResultsJson",
    "chats fork": "ForkedConversationJson",
    **dict.fromkeys(("chats edit", "chats regenerate", "chats resume"), "TurnAnswerJson"),
    "chats remove": "RemovedMessageJson",
    "chats rename": "CreatedConversationJson",
    "chats search": "MessageHitListJson",
    "chats delete": "ErasureResultJson",
    **dict.fromkeys(
        (
            f"workflow {one}"
            for one in ("new", "status", "submit", "approve", "rewind", "references", "figure", "changes", "revise")
        ),
        "ProgressJson",
    ),
    "workflow check": "DocumentCheckJson",
    "workflow data": "StageDataJson",
    "workflow export": "WorkflowTextJson",
    "runners": "RunnerListJson",
    "plugins": "PluginListJson",
    "code select": "CodeSelectionJson",
    "code analyse": "CodeAnswerJson",
    "code fix": "CodeFixJson",
    "code state": "CodeStateJson",
    "code solve": "SolutionJson",
    "code filter": "FilterResponseJson",
    "search": "NoteHitsJson",
    "index": "IndexJson",
    "tools": "ToolListJson",
    "restore": "RestoredNoteJson",
    "store migrate": "SchemaVersionJson",
    "store stats": "StoreStatsJson",
    "store verify": "StoreVerificationJson",
    "store copy": "CopiedStoreJson",
    "memory list": "MemoryJson",
    "memory add": "AddedFactJson",
    "memory remove": "RemovedFactJson",
    **dict.fromkeys(("memory edit", "memory keep"), "FactJson"),
    "mcp list": "McpServerListJson",
    "mcp check": "McpReportListJson",
    "doctor": "DoctorJson",
    "replay": "ReplayJson",
    "request": "CommandRequestJson",
    "completion": "CompletionJson",
    "config show": "ConfigJson",
    "tokens list": "TokenListJson",
    "tokens add": "CreatedTokenJson",
    "tokens remove": "RemovedTokenJson",
    "trust list": "TrustListJson",
    "trust add": "TrustStateJson",
    "trust remove": "TrustStateJson",
    "workflow list": "WorkflowListJson",
    "config get": "SettingValueJson",
    "config set": "WrittenSettingJson",
    "config unset": "RemovedSettingJson",
    **dict.fromkeys(("config edit", "config path"), "SettingsFileJson"),
}


def json_commands() -> str:
    """Return the body of the output of each command; tests/journeys/test_json.py decodes the output into it."""
    bodies = list_bodies()
    rows = []
    for command, name in _JSON_OUTPUTS.items():
        fields_shown = ", ".join(_code(one.encode_name) for one in fields(bodies[name]) if one.name != "lamella")
        rows.append((_code(command), fields_shown, f"[{name}](#{name.lower()})"))
    return table(("command", "fields besides `lamella`", "body"), rows)


# The first byte that differs from the previous request, by cause.
_PREFIX_CAUSES = {
    "first_turn": "there is no earlier request",
    "system_changed": "in a part of the system prompt; `segment` names the part",
    "tools_changed": "in the tool definitions; `segment` names the tool",
    "model_changed": "irrelevant: another model shares no cache",
    "artifact_added": "where a new attachment entered the context library in the system message",
    "artifact_updated": "where the context library has a newer text of an attachment",
    "epoch_folded": "in an earlier message that lost its attachments, or where a dropped attachment was",
    "compacted": "where compaction removed text; `segment` names the step, or `undo`",
    "history_edited": "in an earlier turn that was edited",
    "branch": "where two branches of the conversation separate",
    "layout_changed": "where another layout puts attachments elsewhere",
    "renderer_changed": "where another version of Lamella renders differently",
    "none": "none: the request extends the previous one",
}


def prefix_causes() -> str:
    """Return the table of causes of prefix changes."""
    from lamella.core.log.call import PrefixChangeCause

    rows = ((_code(cause.value), _PREFIX_CAUSES[cause.value]) for cause in PrefixChangeCause)
    return table(("cause", "first byte that differs"), rows)


def _schema_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a JSON schema in words."""
    if "$ref" in schema:
        return _code(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return ", ".join(_code(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(_schema_type(one) for one in schema["anyOf"])
    kind = schema.get("type")
    if not isinstance(kind, str):
        return "any value"
    if kind == "array" and schema.get("prefixItems"):
        return f"list of {len(schema['prefixItems'])} values"
    if kind == "array":
        inner = _schema_type(schema.get("items", {}))
        return "list" if inner == "any value" else f"list of {inner}"
    return kind


# Models.


def tokenizers() -> str:
    """Return the table of tokenizer families."""
    from lamella.tokenizers.counter import FAMILIES, GENERIC_FAMILY

    return table(
        ("family", "names begin with", "factor", "per message", "per request", "accuracy"),
        (
            (
                one.name,
                ", ".join(_code(prefix) for prefix in one.prefixes) or "all others",
                one.factor,
                one.tokens_per_message,
                one.tokens_per_request,
                one.accuracy,
            )
            for one in (*FAMILIES, GENERIC_FAMILY)
        ),
    )


def cache_profiles() -> str:
    """Return the table of cache profiles."""
    from lamella.core.ledger.cache_profile import GENERIC_PROFILE
    from lamella.providers.models import CACHE_PROFILES

    known = [(_code(prefix), profile) for prefix, profile in CACHE_PROFILES]
    return table(
        ("model begins with", "profile", "minimum tokens", "granularity", "lifetime", "writes cost more"),
        (
            (
                prefix,
                one.name,
                f"{one.minimum:,}",
                one.granularity,
                "not documented" if one.lifetime is None else f"{one.lifetime} s",
                "yes" if one.bills_writes else "no",
            )
            for prefix, one in (*known, ("all others", GENERIC_PROFILE))
        ),
    )


def prices() -> str:
    """Return the prices of models with a profile, on the date of the bundled price data."""
    from lamella.core.log.call import CacheUsage
    from lamella.providers.facts.others import BundledPrices
    from lamella.providers.models import MODEL_PROFILES

    # Small requests, because some models cost more per token above a certain size.
    thousand = 1_000
    bundled = BundledPrices()
    rows = []
    for prefix, profile in MODEL_PROFILES:
        uses = [
            CacheUsage(**{"read": 0, "write": 0, "uncached": 0, kind: thousand})
            for kind in ("uncached", "read", "write")
        ]
        found = [bundled.price(prefix, use, None) for use in uses]
        total = bundled.price(prefix, CacheUsage(read=0, write=0, uncached=0), None, output=thousand)
        if found[0] is None:
            continue
        window = f"{profile.window:,}" if profile.window else "unknown"
        rows.append(
            (_code(prefix), window, *(f"{price * thousand:.3f}" for price in (*found, total) if price is not None))
        )
    return table(("model", "window", "input", "cache read", "cache write", "output"), rows)


def image_profiles() -> str:
    """Return the table of rules that count the tokens of images."""
    from lamella.profiles import GENERIC_IMAGE_PROFILE
    from lamella.providers.models import IMAGE_PROFILES

    def row(prefix: str, one: Any) -> list[str]:  # noqa: ANN401 - an image profile
        counted = (one.unit or None, one.fit, one.short, one.budget, one.base or None)
        bounds = (one.count, one.edge, one.size, one.payload)
        sizes = ["" if size is None else f"{size:,}" for size in (*counted, *bounds)]
        return [prefix, str(one.rule), *sizes[:5], f"{one.weight:g}", *sizes[5:]]

    known = [(_code(prefix), profile) for prefix, profile in IMAGE_PROFILES]
    return table(
        (
            "model begins with",
            "rule",
            "unit",
            "fit",
            "short",
            "budget",
            "base",
            "weight",
            "images",
            "pixels",
            "bytes each",
            "bytes in all",
        ),
        (row(prefix, one) for prefix, one in (*known, ("all others", GENERIC_IMAGE_PROFILE))),
    )


def providers() -> str:
    """Return the table of providers that can be opened."""
    from lamella.providers.registry import PROVIDERS

    return table(
        ("model name", "runs at", "API key"),
        (
            (
                _code(one.model_syntax),
                one.display_name or "this process",
                " or ".join(_code(name) for name in one.key_variables) or "none",
            )
            for one in PROVIDERS
            if one.create_provider is not None and one.model_syntax
        ),
    )


def dates() -> str:
    """Return the dates of the bundled facts."""
    from lamella.providers.facts.others import DEFAULT_PRICE_DATE, FACTS_DATE

    day = DEFAULT_PRICE_DATE.date().isoformat()
    return f"Cache and image profiles are as of {FACTS_DATE}, prices as of {day}.\n"


# Invariants, metrics and kinds.


def invariants() -> str:
    """Return the table of invariants."""
    from lamella.core.prompt.invariants import INVARIANTS

    return table(("invariant", "statement"), ((_code(one.name), one.statement) for one in INVARIANTS))


def metrics() -> str:
    """Return the table of metrics."""
    from lamella.server.observability import ServerMetrics

    rows = []
    for metric in ServerMetrics().registry.collect():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        rows.append((_code(name), metric.type, metric.documentation))
    return table(("metric", "type", "meaning"), rows)


def kinds() -> str:
    """Return the table of attachment kinds."""
    from lamella.core.artifacts.kinds import KINDS

    return table(
        ("kind", "fields", "block tag", "recoverable", "in the context library", "trust"),
        (
            (
                _code(kind.value),
                ", ".join(_code(field) for field in one.fields),
                _code(one.tag),
                "yes" if one.recoverable else "no",
                str(one.promotion).replace("_", " "),
                str(one.trust),
            )
            for kind, one in KINDS.items()
        ),
    )


def transcript_fields(name: str) -> str:
    """Return the fields of a part of a transcript."""
    from lamella.archive import attachments, transcript

    model = getattr(transcript, name, None) or getattr(attachments, name)
    schema = model.model_json_schema()
    rows = (
        (_code(key), _schema_type(one), "required" if key in schema.get("required", ()) else _transcript_default(one))
        for key, one in schema["properties"].items()
    )
    return table(("field", "type", "default"), rows)


def _transcript_default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else _code(_format_default(default))


# Dataview.


def dataview_functions() -> str:
    """Return the names of the functions of Dataview queries."""
    from lamella.sources.dataview.expressions import QUERY_FUNCTIONS

    return ", ".join(_code(name) for name in QUERY_FUNCTIONS) + "\n"


def dataview_file_fields() -> str:
    """Return the names of the fields of a file in Dataview queries."""
    from lamella.sources.dataview.parser import FILE_FIELDS

    return ", ".join(_code(f"file.{name}") for name in sorted(FILE_FIELDS)) + "\n"


def dataview_days() -> str:
    """Return the words for days in Dataview queries."""
    from lamella.sources.dataview.values import DAY_WORDS

    return ", ".join(_code(word) for word in DAY_WORDS) + "\n"


def dataview_limits() -> str:
    """Return the limits of Dataview queries."""
    from lamella.sources.dataview.blocks import MOST_BLOCKS
    from lamella.sources.dataview.parser import MAX_NESTING_DEPTH, MAX_QUERY_LENGTH, MAX_QUERY_TOKENS
    from lamella.sources.dataview.results import MAX_CELL_CHARS, MAX_RESULT_CHARS, MOST_ROWS
    from lamella.sources.dataview.values import MOST_STEPS

    size = f"{MAX_QUERY_LENGTH:,} characters, {MAX_QUERY_TOKENS:,} tokens, {MAX_NESTING_DEPTH} levels of nesting"
    result = f"{MOST_ROWS} rows, {MAX_RESULT_CHARS:,} characters, {MAX_CELL_CHARS} characters per cell"
    rows = (
        ("a query", size),
        ("its work", f"{MOST_STEPS:,} steps"),
        ("its result", result),
        ("queries of a note", MOST_BLOCKS),
    )
    return table(("limit of", "value"), rows)
