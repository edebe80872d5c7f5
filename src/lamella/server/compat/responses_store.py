"""Responses that a client may continue or fetch by their ids, per owner."""

import json
from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from lamella.ports import Clock, SharedTable
from lamella.server.compat.neutral import Json

# The provider whose API has such ids keeps them for 30 days.
_KEPT_FOR = timedelta(days=30)
# More responses than this do not follow each other.
_MAX_CHAIN = 1_000


class StoredResponse(NamedTuple):
    """A response: the items of its own input and the body that the client got."""

    input: list[Json]
    body: Json

    @property
    def previous(self) -> str | None:
        """Return the id of the response that it continues."""
        previous = self.body.get("previous_response_id")
        return previous if isinstance(previous, str) else None


class ResponseStore:
    """Responses of the Responses API that the upstream does not keep, and the owners of those that it keeps."""

    def __init__(self, shared_table: SharedTable, *, clock: Clock) -> None:
        self._shared_table = shared_table
        self._clock = clock

    def save(self, owner: str, response_id: str, response: StoredResponse) -> None:
        """Store a response."""
        self._save_text(_text_name(owner, response_id), json.dumps({"input": response.input, "body": response.body}))

    def find(self, owner: str, response_id: str) -> StoredResponse | None:
        """Return a response of an owner, or None."""
        found = self._load_text(_text_name(owner, response_id))
        if found is None:
            return None
        fields: Mapping[str, Any] = json.loads(found)
        return StoredResponse(fields["input"], fields["body"])

    def collect_items(self, owner: str, response_id: str) -> list[Json] | None:
        """Return the input and output items of a response and of those that it continues; None if one is missing."""
        parts: list[list[Json]] = []
        at: str | None = response_id
        while at is not None:
            found = self.find(owner, at)
            if found is None or len(parts) >= _MAX_CHAIN:
                return None
            parts.append([*found.input, *found.body["output"]])
            at = found.previous
        return [item for part in reversed(parts) for item in part]

    def delete(self, owner: str, response_id: str) -> None:
        """Delete a response."""
        self._shared_table.remove(_text_name(owner, response_id))

    def record_owner(self, owner: str, response_id: str) -> None:
        """Record that a response that the upstream keeps belongs to an owner."""
        self._save_text(_owner_name(owner, response_id), "1")

    def is_owned_by(self, owner: str, response_id: str) -> bool:
        """Return whether a response that the upstream keeps belongs to an owner; the operator has all of them."""
        return not owner or self._load_text(_owner_name(owner, response_id)) is not None

    def _load_text(self, name: str) -> str | None:
        return self._shared_table.get_many(name, at=self._clock.now()).get(name)

    def _save_text(self, name: str, text: str) -> None:
        at = self._clock.now()
        self._shared_table.set(name, text, at=at, expires_at=at + _KEPT_FOR)


def _text_name(owner: str, response_id: str) -> str:
    return f"response:{_hash(owner, response_id)}"


def _owner_name(owner: str, response_id: str) -> str:
    return f"response-owner:{_hash(owner, response_id)}"


def _hash(owner: str, response_id: str) -> str:
    data = json.dumps([owner, response_id]).encode()
    return blake2b(data, digest_size=16).hexdigest()
