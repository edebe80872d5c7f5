"""What is remembered about requests: hashes and positions, no text.

``RequestRecords`` keeps, in the table that the processes of a store share, which beginnings of requests were sent and
with which layout each signature was made. Losing the records of beginnings costs money only. Those of signatures are
kept long, because signed reasoning is bound to the bytes in front of it.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from lamella.conversation.pasted_documents import LAYOUT_VERSION
from lamella.ports import Clock, SharedTable
from lamella.server.compat.identity import hash_signature

_SEEN_FOR = timedelta(days=2)
_SIGNED_FOR = timedelta(days=400)
# Most recent messages whose hashes are looked up. A longer gap between two requests of one chat is rare.
_MAX_HASHES = 200
_RECALL_MARK = ":recall"


class KnownRequest(NamedTuple):
    """What is known about a request before it is sent.

    - ``seen_messages``: how many messages the longest beginning has that was sent before; None if there is none.
    - ``unchanged_until``: how many messages must be sent as the client wrote them, for the sake of signatures in them.
    - ``has_recall``: whether the last signature was made in a request with the tool for recall.
    """

    seen_messages: int | None
    unchanged_until: int
    has_recall: bool = False


class RequestRecords:
    """Records of requests and signatures."""

    def __init__(self, shared_table: SharedTable, *, clock: Clock) -> None:
        self._shared_table = shared_table
        self._clock = clock

    def look_up_request(self, hashes: Sequence[str], signatures: Sequence[tuple[int, str]]) -> KnownRequest:
        """Look up the beginnings and the signatures of a request.

        ``hashes`` has one more entry than the request has messages. A signature that is not on record was made from
        the client's own bytes, as far as anybody knows, so everything before it must stay as it is.
        """
        beginnings = {_make_prefix_row_name(one): place for place, one in enumerate(hashes)}
        recent = list(beginnings)[-_MAX_HASHES:]
        signed = [_make_signature_row_name(signature) for _, signature in signatures[-1:]]
        known = self._shared_table.get_many(*recent, *signed, at=self._clock.now())
        seen = max((beginnings[name] for name in recent if name in known), default=None)
        has_recall = bool(signed) and known.get(signed[0], "").endswith(_RECALL_MARK)
        return KnownRequest(seen, _count_unchangeable_messages(signatures, known), has_recall)

    def save_request(self, hashes: Sequence[str]) -> None:
        """Record that a request was sent; equal requests at once record the same."""
        self._set(_make_prefix_row_name(hashes[-1]), str(LAYOUT_VERSION), _SEEN_FOR)

    def save_signatures(self, signatures: Sequence[str], *, unchanged_until: int, has_recall: bool = False) -> None:
        """Record with which layout and tools the request was sent that these signatures answer."""
        mark = _RECALL_MARK if has_recall else ""
        for one in dict.fromkeys(signatures):
            self._set(_make_signature_row_name(one), f"{LAYOUT_VERSION}:{unchanged_until}{mark}", _SIGNED_FOR)

    def _set(self, name: str, text: str, kept_for: timedelta) -> None:
        at = self._clock.now()
        self._shared_table.set(name, text, at=at, expires_at=at + kept_for)


def _count_unchangeable_messages(signatures: Sequence[tuple[int, str]], known: Mapping[str, str]) -> int:
    """Return how many messages must stay as they are.

    The last signature decides: the request that it answers had all signatures before it.
    """
    if not signatures:
        return 0
    place, signature = signatures[-1]
    version, _, unchanged = known.get(_make_signature_row_name(signature), "").removesuffix(_RECALL_MARK).partition(":")
    return int(unchanged) if version == str(LAYOUT_VERSION) and unchanged.isdecimal() else place + 1


def _make_prefix_row_name(chain_hash: str) -> str:
    return f"request:{chain_hash}"


def _make_signature_row_name(signature: str) -> str:
    return f"signature:{hash_signature(signature)}"
