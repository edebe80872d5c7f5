"""Recall for clients that shorten their own history: what their conversation sent earlier, offered to the model as a tool.

Nothing here happens unless the operator switches it on, because it needs the texts that clients send. ``RecallStore``
keeps them for conversations that a client names itself, per owner. A text can be recalled if the same conversation sent
it and then left it out, as a client does that cuts off or summarises the beginning of its history. A text that the client
changed or took back is forgotten: recall never undoes a redaction or an edit.
"""

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from hashlib import blake2b
from math import log
from typing import Any, NamedTuple
from zlib import compress, decompress

from lamella.ports import Clock, SharedTable
from lamella.server.compat.identity import CONVERSATION_HEADER, find_session_id, without_breakpoints
from lamella.server.compat.neutral import Json, ToolSpec, parse_object
from lamella.server.compat.requests import ClientRequest
from lamella.server.compat.wires import MESSAGES_FIELD, ApiFormat

RECALL_TOOL = "lamella_recall"
RECALL_HEADER = "x-lamella-recall"
MAX_ROUNDS = 8
_KEPT_FOR = timedelta(days=30)
# Most characters of a conversation that are kept, and most messages that are compared.
_MAX_CHARS = 4_000_000
_MAX_MESSAGES = 4_000
_MAX_HITS = 5
_HIT_CHARS = 3_000
# Most requests of a conversation that are remembered at once, if they do not continue each other.
_MAX_THREADS = 4
# A message that has so many of the words of a message that is gone is taken for a changed copy of it.
_SAME_WORDS = 0.5
_WORD = re.compile(r"\w+")
_DESCRIPTION = (
    "Search earlier messages of this conversation that are no longer shown. Returns the best matches word for word. "
    "Use it when something from earlier is needed and not in the messages."
)
_SCHEMA: Json = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "Words of the earlier message."}},
    "required": ["query"],
    "additionalProperties": False,
}
RECALL_SPEC = ToolSpec(RECALL_TOOL, _DESCRIPTION, _SCHEMA, own_name=RECALL_TOOL)


class SentMessage(NamedTuple):
    """A message of a client: the hash of its content, its role and its texts."""

    hash: str
    role: str
    text: str


class RecallableMessages(NamedTuple):
    """Earlier messages that a conversation has left out, oldest first."""

    messages: tuple[SentMessage, ...]

    def run_recall_tool(self, arguments: str) -> str:
        """Return the result of a call of the tool."""
        given = parse_object(arguments) or {}
        words = Counter(_split_words(str(given.get("query") or "")))
        if not words:
            return "The query is empty. Call it again with words of the earlier message."
        found = _rank_by_words(words, self.messages)[:_MAX_HITS]
        if not found:
            return "No earlier message of this conversation has these words."
        shown = (f"[{one.role}]\n{_excerpt(one.text, words)}" for one in found)
        return "\n\n".join(shown)


def _rank_by_words(words: Mapping[str, int], messages: Sequence[SentMessage]) -> list[SentMessage]:
    texts = [set(_split_words(one.text)) for one in messages]
    counts = {word: sum(word in text for text in texts) for word in words}
    scores = [sum(log(1 + len(texts) / counts[word]) for word in words if word in text) for text in texts]
    best = sorted(range(len(texts)), key=lambda at: (-scores[at], -at))
    return [messages[at] for at in best if scores[at]]


def _excerpt(text: str, words: Mapping[str, int]) -> str:
    """Return a text, or its part around the first word of the query."""
    if len(text) <= _HIT_CHARS:
        return text
    first = next((found.start() for found in _WORD.finditer(text) if found.group().lower() in words), 0)
    begin = max(min(first - _HIT_CHARS // 3, len(text) - _HIT_CHARS), 0)
    return f"… {text[begin : begin + _HIT_CHARS]} …"


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def find_recall_conversation(headers: Mapping[str, str], body: Mapping[str, Any]) -> str | None:
    """Return the name that a client gives this one conversation, or None.

    Fields that programs also use for many conversations at once, such as ``prompt_cache_key``, do not count.
    """
    options = body.get("lamella")
    named = options.get("conversation") if isinstance(options, dict) else None
    found = headers.get(CONVERSATION_HEADER) or named or find_session_id(headers)
    return found if isinstance(found, str) and found.strip() else None


def is_recall_refused(headers: Mapping[str, str], body: Mapping[str, Any]) -> bool:
    """Return whether a client wants nothing of this conversation to be kept or found."""
    options = body.get("lamella")
    return headers.get(RECALL_HEADER, "").lower() == "off" or (
        isinstance(options, dict) and options.get("recall") is False
    )


def can_offer_recall(body: Mapping[str, Any]) -> bool:
    """Return whether a request leaves the model free to call a tool, and its answer has a form that can be merged."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return (
        kind in (None, "auto")
        and body.get("n") in (None, 1)
        and not body.get("logprobs")
        and not body.get("functions")
        and isinstance(body.get("tools"), list | None)
        and RECALL_TOOL not in json.dumps(body.get("tools"))
    )


def to_sent_messages(client: ClientRequest, formats: Mapping[ApiFormat, Any]) -> list[SentMessage]:
    """Return the messages of a request with their texts."""
    field = MESSAGES_FIELD[client.wire]
    found = []
    for message in client.messages:
        plain = without_breakpoints(message)
        texts = formats[client.wire].collect_texts({field: [message]})
        data = json.dumps(plain, sort_keys=True).encode()
        role = str(message.get("role") or message.get("type"))
        role = "system" if role == "developer" else role
        found.append(SentMessage(blake2b(data, digest_size=16).hexdigest(), role, "\n".join(texts)))
    return found


class RecallStore:
    """The texts that conversations have sent, in the table that the processes of a store share."""

    def __init__(self, shared_table: SharedTable, *, clock: Clock) -> None:
        self._shared_table = shared_table
        self._clock = clock

    def record_and_list_left_out(
        self, owner: str, conversation: str, messages: Sequence[SentMessage]
    ) -> RecallableMessages:
        """Record the messages of a request; return those of earlier requests that it leaves out."""
        name = _make_row_name(owner, conversation)
        threads, texts = self._load(name)
        before = _pop_earlier_request(threads, messages)
        for gone in find_withdrawn_hashes([texts[one] for one in before if one in texts], messages):
            texts.pop(gone, None)
        # A message that the client sends again is the newest one again.
        for message in messages:
            texts.pop(message.hash, None)
            texts[message.hash] = message
        _drop_oldest_over_limit(texts)
        now = [message.hash for message in messages if message.hash in texts]
        self._save(name, [*threads, now], texts)
        shown = set(now)
        return RecallableMessages(tuple(one for one in texts.values() if one.hash not in shown and one.text.strip()))

    def forget(self, owner: str, conversation: str) -> None:
        """Delete what is kept of a conversation."""
        self._shared_table.remove(_make_row_name(owner, conversation))

    def _load(self, name: str) -> tuple[list[list[str]], dict[str, SentMessage]]:
        found = self._shared_table.get_many(name, at=self._clock.now()).get(name)
        if found is None:
            return [], {}
        fields = json.loads(decompress(b64decode(found)))
        # Rows of an earlier version have one request.
        threads = fields["threads"] if "threads" in fields else [fields["order"]]
        return threads, {one[0]: SentMessage(*one) for one in fields["messages"]}

    def _save(self, name: str, threads: Sequence[Sequence[str]], texts: Mapping[str, SentMessage]) -> None:
        at = self._clock.now()
        data = json.dumps({"threads": threads[-_MAX_THREADS:], "messages": list(texts.values())}).encode()
        packed = b64encode(compress(data, 1)).decode()
        self._shared_table.set(name, packed, at=at, expires_at=at + _KEPT_FOR)


def _pop_earlier_request(threads: list[list[str]], messages: Sequence[SentMessage]) -> list[str]:
    """Remove and return the request that a new one continues, as hashes.

    A client may send other requests under the same name in between, for example one for a title. The request with the most
    messages of the new one counts. If there is none, the latest counts and stays.
    """
    now = {message.hash for message in messages if message.role != "system"}
    shared = [len(now.intersection(thread)) for thread in threads]
    if not any(shared):
        return threads[-1] if threads else []
    return threads.pop(max(range(len(threads)), key=lambda at: (shared[at], at)))


def find_withdrawn_hashes(before: Sequence[SentMessage], now: Sequence[SentMessage]) -> set[str]:
    """Return the messages of the previous request that the client changed or took back.

    Messages count as left out, and not as withdrawn, only where fewer others or none stand in their place, and
    something of the history after them is still there or nothing of it is left.
    """
    before, now = before[:_MAX_MESSAGES], now[:_MAX_MESSAGES]
    matcher = SequenceMatcher(None, [one.hash for one in before], [one.hash for one in now], autojunk=False)
    changes = matcher.get_opcodes()
    withdrawn: set[str] = set()
    for at, (kind, start, end, new_start, new_end) in enumerate(changes):
        if kind not in ("replace", "delete"):
            continue
        gone, new = before[start:end], now[new_start:new_end]
        has_beginning = any(
            one.role != "system"
            for name, first, last, *_ in changes[:at]
            if name == "equal"
            for one in before[first:last]
        )
        has_ending = any(change[0] == "equal" for change in changes[at + 1 :])
        if len(new) >= len(gone) or (has_beginning and not has_ending):
            withdrawn.update(one.hash for one in gone)
        else:
            withdrawn.update(one.hash for one in gone if any(_is_changed_copy(one, other) for other in new))
    return withdrawn - {one.hash for one in now}


def _is_changed_copy(old: SentMessage, new: SentMessage) -> bool:
    words = set(_split_words(old.text))
    return old.role == new.role and len(words & set(_split_words(new.text))) >= _SAME_WORDS * len(words)


def _drop_oldest_over_limit(texts: dict[str, SentMessage]) -> None:
    size = sum(len(one.text) for one in texts.values())
    while texts and (size > _MAX_CHARS or len(texts) > _MAX_MESSAGES):
        size -= len(texts.pop(next(iter(texts))).text)


def _make_row_name(owner: str, conversation: str) -> str:
    data = json.dumps([owner, conversation]).encode()
    return f"recall:{blake2b(data, digest_size=16).hexdigest()}"
