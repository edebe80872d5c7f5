"""Tools and resources of Lamella's MCP server: notes, conversations, what they cost, and code.

``list_server_tools`` returns the tools for one caller, and ``ServerResources`` what can be read by address. A caller sees
only the conversations of its engine. Without ``may_write`` nothing can be changed.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct, structs

from lamella.attach import DEFAULT_CODE_BUDGET, Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.conversation.threads import run_in_own_thread
from lamella.errors import InvalidOperationError, NotFoundError
from lamella.schemas.body import JsonBody
from lamella.schemas.code import selection_to_json
from lamella.schemas.compaction import plan_to_json, recall_to_json, receipts_to_json
from lamella.schemas.conversations import ConversationListJson, conversations_to_json
from lamella.schemas.ledger import LedgerJson, build_ledger_rows, ledger_to_json
from lamella.schemas.messages import ConversationJson, branch_to_json, markers_to_json, turns_to_json
from lamella.schemas.prompts import explanation_to_json, sent_turn_to_json
from lamella.sources.vault import Vault
from lamella.tools.schema import Arguments, ToolParameter, make_tool
from lamella.wiring import select_code

# Built-in tools for notes; those that change something need permission.
_NOTE_TOOLS = ("search_notes", "list_files", "read_note")
_NOTE_WRITING_TOOLS = ("edit_note", "write_note")
# The slowest tools read a whole repository or vault when they are first called.
_SLOW_SECONDS = 300.0
_MAX_LISTED = 100
_MAX_CODE_BUDGET = 100_000
_PERCENT = 100

_CONVERSATION = ToolParameter(
    "conversation", "Name or key of the conversation, as list_conversations returns it.", required=True
)
_TURN = ToolParameter("turn", "Number of the turn, from 1. Default: the last one.", "integer", minimum=1)
_TARGET = ToolParameter(
    "target_percent",
    "Target size in percent of the context window. Default: the conversation's setting.",
    "integer",
    minimum=1,
    maximum=_PERCENT,
)
# Reserves a conversation while something is changed in it.
Reserve = Callable[[str], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def reserve_nothing(_conversation_key: str) -> AsyncGenerator[None, None]:
    """Reserve nothing: the store itself refuses a second writer."""
    yield


class McpCaller(Struct, frozen=True, kw_only=True):
    """Whoever calls the server: their engine, the folder of notes and code, and whether they may change something."""

    engine: Engine
    vault: Path | None
    code_folder: Path | None
    may_write: bool
    reserve: Reserve = reserve_nothing

    def find_key(self, name: str) -> str:
        """Return the key of a conversation; raises ``NotFoundError`` for one of somebody else."""
        found = self.engine.find_conversation(name) if name.strip() else None
        if found is None or found.erased_at is not None:
            raise NotFoundError(
                f"There is no conversation {name[:200]!r}.", hint="list_conversations lists the conversations."
            )
        return found.conversation

    def open_conversation(self, arguments: Arguments) -> Conversation:
        """Return the conversation that the arguments of a tool name."""
        return self.engine.chat(self.find_key(str(arguments["conversation"])))


def encode_body(body: JsonBody) -> str:
    """Return a body as JSON."""
    return msgspec.json.encode(body).decode()


def list_server_tools(caller: McpCaller) -> list[Tool]:
    """Return the tools for a caller, sorted by name."""
    names = (*_NOTE_TOOLS, *(_NOTE_WRITING_TOOLS if caller.may_write else ()))
    tools = [tool for tool in caller.engine.tools() if tool.name in names]
    tools += [
        _make_conversation_list_tool(caller),
        _make_recall_tool(caller),
        _make_prompt_tool(caller),
        _make_item_tool(caller),
        _make_cache_tool(caller),
        _make_cost_tool(caller),
        _make_plan_tool(caller),
    ]
    tools += [] if caller.code_folder is None else [_make_code_tool(caller.code_folder)]
    tools += [_make_compact_tool(caller)] if caller.may_write else []
    return sorted(tools, key=lambda tool: tool.name)


def _make_conversation_list_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        limit = given.get("limit", _MAX_LISTED)
        assert isinstance(limit, int)
        listed = caller.engine.chats()
        archived = caller.engine.list_archived_keys(listed)
        current = [one for one in listed if one.conversation not in archived]
        return encode_body(ConversationListJson(total=len(current), chats=conversations_to_json(current[:limit])))

    return make_tool(
        "list_conversations",
        "List the stored conversations, the last changed first, with name, title and number of events.",
        parameters=(ToolParameter("limit", "How many to return at most.", "integer", minimum=1, maximum=_MAX_LISTED),),
        run=run,
    )


def _make_recall_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        query, limit = str(given["query"]), given.get("limit")
        assert limit is None or isinstance(limit, int)
        chat = caller.open_conversation(given)
        return encode_body(recall_to_json(chat.id, query, chat.recall(query, limit)))

    return make_tool(
        "recall",
        "Find messages, attachments and tool results of a conversation that are no longer in its prompt in full.",
        parameters=(
            _CONVERSATION,
            ToolParameter("query", 'Words, an "exact phrase", a path, a number or an id.', required=True),
            ToolParameter("limit", "How many results to return at most.", "integer", minimum=1, maximum=_MAX_LISTED),
        ),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_prompt_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        chat = caller.open_conversation(given)
        number = _turn_number(chat, given)
        turn = next(iter(chat.sent_turns(number, number)))
        question = chat.turns()[number - 1].message.question_event
        imprint = None if question is None else question.imprint
        return encode_body(sent_turn_to_json(chat.id, turn, imprint, with_texts=False))

    return make_tool(
        "explain_prompt",
        "Show what was in the prompt of a turn: five layers with every attachment and message, its form, position and "
        "tokens, what moved since the turn before, and the predicted cost. Texts are left out.",
        parameters=(_CONVERSATION, _TURN),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_item_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        chat = caller.open_conversation(given)
        return encode_body(explanation_to_json(chat.id, chat.why(str(given["item"]))))

    return make_tool(
        "explain_item",
        "Explain why an attachment or a message is in the next prompt of a conversation, or is not, and how to include "
        "it.",
        parameters=(
            _CONVERSATION,
            ToolParameter("item", "Attachment id, end of its path, title, or a message id.", required=True),
        ),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_cache_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        chat = caller.open_conversation(given)
        ledger = _build_ledger(chat)
        if given.get("turn") is not None:
            number = _turn_number(chat, given)
            turns = [row for row in ledger.turns if row.turn == number]
        else:
            turns = [row for row in ledger.turns if row.miss is not None or row.turn in ledger.unexplained]
        return encode_body(structs.replace(ledger, turns=turns))

    return make_tool(
        "explain_cache_misses",
        "Explain why the provider's cache missed in a conversation: for each turn with a miss the verdict with its "
        "cause, what moved, predicted and reported tokens, and what the miss cost. An empty list means no miss.",
        parameters=(_CONVERSATION, _TURN._replace(description="Only this turn, also without a miss.")),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_cost_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        return encode_body(structs.replace(_build_ledger(caller.open_conversation(given)), turns=()))

    return make_tool(
        "cost_of_conversation",
        "Return what a conversation has cost: tokens from and into the cache, billed dollars, what misses cost, and what "
        "it would have cost to send every attachment with every question.",
        parameters=(_CONVERSATION,),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_plan_tool(caller: McpCaller) -> Tool:
    def run(given: Arguments) -> str:
        chat = caller.open_conversation(given)
        # Without summaries: no model is asked, so that planning costs nothing.
        return encode_body(plan_to_json(chat.id, chat.plan(_target_share(given), summaries=False), committed=False))

    return make_tool(
        "plan_compaction",
        "Plan how to shorten the prompt of a conversation: what would be removed, what stays recallable, and what it "
        "saves. Nothing changes.",
        parameters=(_CONVERSATION, _TARGET),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _make_compact_tool(caller: McpCaller) -> Tool:
    def compact(given: Arguments, key: str) -> str:
        chat = caller.engine.chat(key)
        planned = chat.plan(_target_share(given), summaries=False)
        if planned.receipt is None:
            raise InvalidOperationError(
                f"There is nothing to compact: the next request has {planned.before.total:,} tokens, and up to "
                f"{planned.target_tokens:,} are aimed for.",
                hint="Aim lower with target_percent.",
            )
        chat.commit(planned)
        return encode_body(plan_to_json(chat.id, planned, committed=True))

    async def run(given: Arguments) -> str:
        key = caller.find_key(str(given["conversation"]))
        async with caller.reserve(key):
            return await run_in_own_thread(partial(compact, given, key), name="lamella-mcp-compact")

    return make_tool(
        "compact_conversation",
        "Shorten the prompt of a conversation. What leaves it stays recallable, and the user can undo it.",
        parameters=(_CONVERSATION, _TARGET),
        run=run,
        seconds=_SLOW_SECONDS,
        changes=True,
    )


def _make_code_tool(root: Path) -> Tool:
    def run(given: Arguments) -> str:
        budget = given.get("budget", DEFAULT_CODE_BUDGET)
        assert isinstance(budget, int)
        folder = (root / str(given.get("folder", ""))).resolve()
        if not folder.is_relative_to(root.resolve()):
            raise InvalidOperationError(
                f"The folder {given.get('folder')} is outside of {root}.", hint="Name a folder inside of it."
            )
        selection = select_code(folder, str(given["question"]), budget=budget)
        return selection.text if given.get("as") == "text" else encode_body(selection_to_json(selection, explain=True))

    return make_tool(
        "select_code",
        "Select the source files that a question is about, within a token budget: in full, as skeletons or by name, with "
        "the reason for each omission.",
        parameters=(
            ToolParameter(
                "question", "The question, with names of functions and files if you know some.", required=True
            ),
            ToolParameter("folder", "Folder to select from, relative to the served folder. Default: all of it."),
            ToolParameter("budget", "Tokens to select at most.", "integer", minimum=1, maximum=_MAX_CODE_BUDGET),
            ToolParameter("as", "`text` returns the selected text itself, `json` paths and reasons. Default: `json`."),
        ),
        run=run,
        seconds=_SLOW_SECONDS,
    )


def _build_ledger(chat: Conversation) -> LedgerJson:
    rows = build_ledger_rows(chat.turns(), chat.ledger(), chat.receipts(), chat.cache_misses())
    return ledger_to_json(chat.id, rows, chat.profile_mismatches())


def _target_share(given: Arguments) -> float | None:
    percent = given.get("target_percent")
    return percent / _PERCENT if isinstance(percent, int) else None


def _turn_number(chat: Conversation, given: Arguments) -> int:
    count = len(chat.turns())
    number = given.get("turn", count)
    assert isinstance(number, int)
    if not 1 <= number <= count:
        raise NotFoundError(f"There is no turn {number}.", hint=f"The conversation has {count} turns.")
    return number


# Resources.

_SCHEME = "lamella"
NOTE_TEMPLATE = f"{_SCHEME}://notes/{{+path}}"
CONVERSATION_TEMPLATE = f"{_SCHEME}://conversations/{{key}}"
RECEIPTS_TEMPLATE = f"{_SCHEME}://conversations/{{key}}/receipts"
_JSON, _MARKDOWN = "application/json", "text/markdown"


class ResourceEntry(Struct, frozen=True, kw_only=True):
    """A resource in a list: its address, its name for people and its media type."""

    uri: str
    name: str
    media_type: str


def list_resources(caller: McpCaller) -> list[ResourceEntry]:
    """Return the conversations and notes of a caller, conversations first, the last changed before the others."""
    listed = caller.engine.chats()
    archived = caller.engine.list_archived_keys(listed)
    found = [
        ResourceEntry(uri=f"{_SCHEME}://conversations/{one.conversation}", name=one.title or one.name, media_type=_JSON)
        for one in listed
        if one.conversation not in archived
    ]
    paths = [] if caller.vault is None else Vault(caller.vault).snapshot().list_all_note_paths()
    return found + [
        ResourceEntry(uri=f"{_SCHEME}://notes/{quote(path)}", name=path, media_type=_MARKDOWN) for path in paths
    ]


def read_resource(caller: McpCaller, uri: str) -> tuple[str, str]:
    """Return the text of a resource and its media type; raises ``NotFoundError`` if there is none."""
    parts = urlsplit(uri)
    names = [unquote(part) for part in parts.path.split("/") if part]
    if parts.scheme == _SCHEME and parts.netloc == "notes" and names and caller.vault is not None:
        return Vault(caller.vault).snapshot().read_text("/".join(names)), _MARKDOWN
    if parts.scheme == _SCHEME and parts.netloc == "conversations" and names:
        chat = caller.engine.chat(caller.find_key(names[0]))
        if names[1:] == ["receipts"]:
            return encode_body(receipts_to_json(chat.id, chat.receipts())), _JSON
        if len(names) == 1:
            return encode_body(_conversation_to_json(chat)), _JSON
    raise NotFoundError(
        f"There is no resource {uri[:200]!r}.",
        hint=f"There are: {NOTE_TEMPLATE}, {CONVERSATION_TEMPLATE} and {RECEIPTS_TEMPLATE}.",
    )


def _conversation_to_json(chat: Conversation) -> ConversationJson:
    messages = chat.messages()
    return ConversationJson(
        conversation=chat.id,
        name=chat.name,
        title=chat.title,
        head=chat.head,
        branches=[branch_to_json(head, chat.turns(head), active=head == chat.head) for head in chat.branches()],
        running=None,
        count=len(chat.turns()),
        turns=turns_to_json(messages.path, messages.contents, messages.sources, siblings=chat.siblings(), first=1),
        compactions=markers_to_json(messages.markers),
    )
