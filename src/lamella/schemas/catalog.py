"""JSON bodies of models, settings, access tokens and workflows.

Models have the fields that clients of the OpenAI and Anthropic APIs read as well. Settings have no secrets, and access
tokens are described by name, owner and scope, never by the token itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import to_builtins

from lamella.core.log.events.compaction import WorkflowSpec
from lamella.ports import DigestLine, StageProgress, WorkflowProgress


def models_to_json(names: Sequence[str], *, default: str) -> dict[str, object]:
    """Return models by name; ``default`` is the default model of new conversations."""
    listed = [model_to_json(name, default=default) for name in names]
    edges = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return {"lamella": 1, "object": "list", "data": listed, "has_more": False, **edges}


def model_to_json(name: str, *, default: str) -> dict[str, object]:
    """Return one model; Lamella does not know its date of creation, which clients expect."""
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "lamella",
        "usual": name == default,
    }


# Settings, and the origin of each value.

Mask = Callable[[str], str]


class ConfigurationShape(Protocol):
    """The properties of resolved settings that the JSON body needs."""

    @property
    def settings(self) -> object: ...
    @property
    def origins(self) -> Mapping[str, str]: ...
    @property
    def files(self) -> Mapping[Any, object]: ...


def chat_settings_to_json(
    conversation_key: str,
    own_settings: Mapping[str, object],
    resolved: ConfigurationShape,
    *,
    names: Sequence[str],
    mask: Mask,
) -> dict[str, object]:
    """Return a conversation's own settings, and the effective values of the settings in ``names``."""
    values = settings_to_json(resolved, mask)
    in_force = {name: {"value": values.get(name), "from": _format_origin(resolved.origins[name])} for name in names}
    return {"lamella": 1, "conversation": conversation_key, "settings": dict(own_settings), "in_force": in_force}


def _format_origin(origin: str) -> str:
    return "conversation" if str(origin) == "caller" else str(origin)


def configuration_to_json(resolved: ConfigurationShape, mask: Mask) -> dict[str, object]:
    """Return every setting with its origin, and the files that were read."""
    values = settings_to_json(resolved, mask)
    settings = {name: {"value": value, "from": str(resolved.origins[name])} for name, value in values.items()}
    return {"settings": settings, "files": {str(origin): str(path) for origin, path in resolved.files.items()}}


def settings_to_json(resolved: ConfigurationShape, mask: Mask) -> dict[str, object]:
    """Return the values as JSON, without passwords in addresses and without unset fields of tables."""
    return {name: _to_shown_value(value, mask) for name, value in to_builtins(resolved.settings).items()}


def _to_shown_value(value: object, mask: Mask) -> object:
    if isinstance(value, dict):
        inner = {name: _to_shown_value(one, mask) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in (None, {})}
    return mask(value) if isinstance(value, str) else value


# Access tokens.


class TokenShape(Protocol):
    """The properties of an access token that the JSON body needs."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def since(self) -> str: ...


def token_to_json(token: TokenShape) -> dict[str, object]:
    """Return one access token; a token without an owner sees every conversation."""
    return {"lamella": 1, **_token_body(token)}


def tokens_to_json(tokens: Sequence[TokenShape]) -> dict[str, object]:
    """Return all access tokens, oldest first."""
    return {"lamella": 1, "tokens": [_token_body(token) for token in tokens]}


def _token_body(token: TokenShape) -> dict[str, object]:
    return {"name": token.name, "scope": str(token.scope), "owner": token.owner or None, "since": token.since}


# Workflows.


def workflows_to_json(workflows: Mapping[str, WorkflowSpec | None]) -> dict[str, object]:
    """Return workflows by name with their stages; a workflow with an invalid file (None) has only its name."""
    return {"lamella": 1, "workflows": [_workflow_to_json(name, one) for name, one in workflows.items()]}


def _workflow_to_json(name: str, workflow: WorkflowSpec | None) -> dict[str, object]:
    if workflow is None:
        return {"name": name, "title": name, "broken": True, "stages": []}
    stages = [
        {
            "id": stage.id,
            "label": workflow.label(stage),
            "phase": stage.phase,
            "required": list(stage.required),
            "search": stage.search,
        }
        for stage in workflow.stages
    ]
    return {"name": name, "title": workflow.title or name, "broken": False, "stages": stages}


# The progress of a workflow.


def progress_to_json(conversation_key: str, name: str, progress: WorkflowProgress) -> dict[str, object]:
    """Return the current stage, every stage, and all decisions, including superseded ones."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "name": name,
        "workflow": progress.workflow,
        "title": progress.title,
        "current": progress.current,
        "status": progress.status,
        "stages": [_stage_to_json(stage) for stage in progress.stages],
        "digest": [_digest_to_json(line) for line in progress.digest],
        "references": progress.references,
        "citations": progress.citations,
    }


def _stage_to_json(stage: StageProgress) -> dict[str, object]:
    return {
        "id": stage.id,
        "label": stage.label,
        "phase": stage.phase,
        "status": stage.status,
        "attempt": stage.attempt,
        "digest": stage.digest,
        "messages": list(stage.messages),
        "required": list(stage.required),
        "missing": list(stage.missing),
        "search": stage.search,
    }


def _digest_to_json(line: DigestLine) -> dict[str, object]:
    return {
        "stage": line.stage,
        "label": line.label,
        "decision": line.decision,
        "attempt": line.attempt,
        "superseded": line.superseded,
    }


def stage_data_to_json(conversation_key: str, name: str, progress: WorkflowProgress) -> dict[str, object]:
    """Return the recorded data of each stage, including stages that the work was rewound to before."""
    data = {stage.id: dict(stage.data) for stage in progress.stages if stage.data}
    return {**progress_to_json(conversation_key, name, progress), "data": data}


def work_to_json(conversation_key: str, name: str, *, text: str, file: str | None) -> dict[str, object]:
    """Return the work as markdown, and the file it was written to."""
    return {"lamella": 1, "conversation": conversation_key, "name": name, "text": text, "file": file}
