"""JSON bodies of the context library, pending commands, vault searches, index updates and the list of tools."""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.ports import IndexReport, NoteHit
from lamella.schemas.formatting import format_decimal_or_none
from lamella.schemas.ledger import ExpiredCacheShape, expired_cache_to_json
from lamella.schemas.prompts import TurnShape


class LibraryItemShape(Protocol):
    """The properties of a library item that the JSON body needs."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def in_working_set(self) -> bool: ...
    @property
    def cached(self) -> bool | None: ...
    @property
    def age_turns(self) -> int: ...
    @property
    def tokens_saved(self) -> int: ...
    @property
    def is_pending(self) -> bool: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def via(self) -> str | None: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...


class PendingCommandsShape(Protocol):
    """The properties of the pending commands that the JSON body needs."""

    @property
    def attach(self) -> tuple[Artifact, ...]: ...
    @property
    def detach(self) -> tuple[str, ...]: ...
    @property
    def drop(self) -> tuple[str, ...]: ...
    @property
    def pin(self) -> tuple[str, ...]: ...
    @property
    def unpin(self) -> tuple[str, ...]: ...
    @property
    def rules(self) -> tuple[str, ...]: ...
    @property
    def removed_rules(self) -> tuple[str, ...]: ...
    @property
    def tokens(self) -> Mapping[str, int]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def library_to_json(
    conversation_key: str,
    rows: Iterable[LibraryItemShape],
    pending: PendingCommandsShape,
    *,
    expired: ExpiredCacheShape | None = None,
) -> dict[str, object]:
    """Return all artifacts of a conversation, its pending commands, and the expired cache if there is one."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "artifacts": [artifact_to_json(row) for row in rows],
        "waiting": _pending_to_json(pending),
        "cold": expired_cache_to_json(expired),
    }


def artifact_to_json(row: LibraryItemShape) -> dict[str, object]:
    """Return one artifact with the field names of docs/reference/json-output.md."""
    return {
        "id": row.id,
        "kind": row.kind,
        "title": row.title,
        "form": row.form,
        "tokens": row.tokens,
        "in_working_set": row.in_working_set,
        "cached": row.cached,
        "age_turns": row.age_turns,
        "saves": row.tokens_saved,
        "waits": row.is_pending,
        "policy": row.policy,
        "via": row.via,
        "left_out": list(row.left_out),
    }


def commands_to_json(
    conversation_key: str, pending: PendingCommandsShape, *, before: TurnShape, after: TurnShape
) -> dict[str, object]:
    """Return the result of a command: the pending commands, warnings, and the change to the next request.

    ``before`` and ``after`` are the next request without and with the command.
    """
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "waiting": _pending_to_json(pending),
        "said": list(pending.warnings),
        "next": {
            "tokens": after.tokens.total,
            "limit": after.tokens.limit,
            "more_tokens": after.tokens.total - before.tokens.total,
            "cost": format_decimal_or_none(estimated_cost(after)),
            "more_cost": format_decimal_or_none(cost_difference(before, after)),
        },
    }


def estimated_cost(turn: TurnShape) -> Decimal | None:
    """Return the estimated cost of a request, or None if it is unknown."""
    return None if turn.cost is None else turn.cost.amount


def cost_difference(before: TurnShape, after: TurnShape) -> Decimal | None:
    """Return how much more the second of two requests would cost, or None if either cost is unknown."""
    amounts = estimated_cost(before), estimated_cost(after)
    return None if amounts[0] is None or amounts[1] is None else amounts[1] - amounts[0]


def _pending_to_json(pending: PendingCommandsShape) -> dict[str, object]:
    return {
        "attach": [
            {
                "id": one.id,
                "kind": one.kind.value,
                "title": one.title,
                "form": "preview" if one.is_outlined else "full",
                "tokens": pending.tokens.get(one.id),
            }
            for one in pending.attach
        ],
        "detach": list(pending.detach),
        "drop": list(pending.drop),
        "pin": list(pending.pin),
        "unpin": list(pending.unpin),
        "rules": list(pending.rules),
        "ended_rules": list(pending.removed_rules),
    }


# Vault searches, index updates and tools.


def hits_to_json(query: str, hits: Sequence[NoteHit], report: IndexReport) -> dict[str, object]:
    """Return passages of a vault, best first, and the files that could not be searched, with the reason."""
    return {
        "lamella": 1,
        "query": query,
        "hits": [_hit_to_json(one) for one in hits],
        "unread": _unread_files_to_json(report),
    }


def index_to_json(report: IndexReport, *, file: str) -> dict[str, object]:
    """Return the result of an index update."""
    return {
        "lamella": 1,
        "index": file,
        "files": report.file_count,
        "read": report.read_count,
        "removed": report.removed_count,
        "rebuilt": report.rebuild_reason,
        "unread": _unread_files_to_json(report),
    }


def _hit_to_json(hit: NoteHit) -> dict[str, object]:
    return {
        "path": hit.path,
        "heading": hit.heading,
        "text": hit.text,
        "score": hit.score,
        "why": hit.why,
        "id": hit.id,
        "title": hit.title,
        "excerpt": hit.excerpt,
    }


def _unread_files_to_json(report: IndexReport) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in report.unread]


def tools_to_json(tools: Sequence[ToolDefinition]) -> dict[str, object]:
    """Return all tools by name, with the schema of their arguments."""
    listed = [
        {"name": one.name, "description": one.description, "parameters": json.loads(one.parameters)} for one in tools
    ]
    return {"lamella": 1, "tools": listed}


def list_arguments(tool: ToolDefinition) -> list[str]:
    """Return the argument names of a tool, required ones first; optional ones end with a question mark."""
    schema = json.loads(tool.parameters)
    needed = schema.get("required", [])
    return [*needed, *(f"{name}?" for name in schema.get("properties", {}) if name not in needed)]
