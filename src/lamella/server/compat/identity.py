"""Identity of requests: a chain of hashes over everything that matters, and labels for display.

The first hash is over owner, wire format, system prompt and tools, and each further one over a message and the hash
before it. Two requests share a beginning only if it is equal; nothing is compared by similarity. Cache breakpoints are
left out, because clients move them. A label groups requests for display and usage. It never selects text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from lamella.server.compat.json_spans import decode_json

_HASH_BYTES = 16
_BREAKPOINT_FIELDS = ("cache_control", "prompt_cache_breakpoint")
_SIGNATURE_FIELDS = {"thinking": "signature", "redacted_thinking": "data", "compaction": "signature"}
_OPAQUE_FIELDS = ("encrypted_content", "thought_signature")
_MAX_LABEL_CHARS = 200
CONVERSATION_HEADER = "x-lamella-conversation"
# Headers and fields in which clients send the id of a session, in the order in which they are tried.
_SESSION_HEADERS = ("x-claude-code-session-id", "thread-id", "session-id", "x-session-id")
_AGENT_HEADER = "x-claude-code-agent-id"


def hash_each_prefix(owner: str, wire: str, head: object, messages: Sequence[object]) -> list[str]:
    """Return the hash after the head (system prompt and tools), and the hash after each message."""
    last = _hash([owner.encode(), wire.encode(), _to_canonical_json(head)])
    hashes = [last.hex()]
    for message in messages:
        last = _hash([last, _to_canonical_json(message)])
        hashes.append(last.hex())
    return hashes


def hash_signature(signature: str) -> str:
    """Return the hash by which a signature is recorded."""
    return _hash([signature.encode("utf-8", "surrogatepass")]).hex()


def find_signatures(messages: Sequence[object]) -> list[tuple[int, str]]:
    """Return the signatures of reasoning and compactions, each with the position of its message."""
    return [(place, found) for place, message in enumerate(messages) for found in iter_signatures(message)]


def iter_signatures(value: object) -> Iterator[str]:
    """Yield the signatures in a message, an item or a block."""
    if isinstance(value, list):
        for one in value:
            yield from iter_signatures(one)
    elif isinstance(value, dict):
        fields = (_SIGNATURE_FIELDS.get(str(value.get("type"))), *_OPAQUE_FIELDS)
        yield from (value[name] for name in fields if name and isinstance(value.get(name), str) and value[name])
        for name in ("content", "tool_calls", "extra_content", "google"):
            yield from iter_signatures(value.get(name))


def without_breakpoints(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a message, a tool or a system prompt without the client's cache breakpoints."""
    if isinstance(value, list):
        return [without_breakpoints(one) for one in value]
    if not isinstance(value, dict):
        return value
    nested = ("content", "source", "output")
    return {
        name: without_breakpoints(one) if name in nested else one
        for name, one in value.items()
        if name not in _BREAKPOINT_FIELDS
    }


def has_breakpoints(value: object) -> bool:
    """Return whether a part of a request has a cache breakpoint of the client."""
    if isinstance(value, list):
        return any(has_breakpoints(one) for one in value)
    return isinstance(value, dict) and (
        any(value.get(name) is not None for name in _BREAKPOINT_FIELDS)
        or any(has_breakpoints(value.get(name)) for name in ("content", "source", "output"))
    )


def find_conversation_label(headers: Mapping[str, str], body: Mapping[str, object]) -> str | None:
    """Return the label that a client gives its conversation, or None; the first of the known places counts."""
    own, session = headers.get(CONVERSATION_HEADER), find_session_id(headers)
    places = (own, session, body.get("prompt_cache_key"), _find_session_in_metadata(body))
    found = next((one for one in places if isinstance(one, str) and one.strip()), None)
    return None if found is None else found[:_MAX_LABEL_CHARS]


def find_session_id(headers: Mapping[str, str]) -> str | None:
    """Return the id of the session in the headers of a client, or None."""
    claude, *others = (headers.get(name) for name in _SESSION_HEADERS)
    agent = headers.get(_AGENT_HEADER)
    session = f"{claude}/{agent}" if claude and agent else claude
    return next((one for one in (session, *others) if one and one.strip()), None)


def _find_session_in_metadata(body: Mapping[str, object]) -> str | None:
    """Return the session in ``metadata.user_id``, where Claude Code sends a JSON object as text."""
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str) or not user.startswith("{"):
        return None
    try:
        fields = decode_json(user.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    session = fields.get("session_id") if isinstance(fields, dict) else None
    return session if isinstance(session, str) else None


def _to_canonical_json(value: object) -> bytes:
    plain = without_breakpoints(value)
    try:
        return msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def _hash(parts: Sequence[bytes]) -> bytes:
    made = blake2b(digest_size=_HASH_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.digest()
