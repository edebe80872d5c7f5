"""Replace the texts of logged calls so that a log can be shared and keeps every finding.

Each word becomes another word of the same length that follows from a secret key, so equal words stay equal and others
do not. White space, punctuation, times, the shape of ids, and the structure of JSON stay. Token counts are stored beside
the texts, because the new words have other tokens.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from typing import Any

import msgspec

from lamella.core.budget import Tokenizer
from lamella.doctor.blocks import split_prompt
from lamella.doctor.calls import LoggedCall, WireFormat
from lamella.doctor.text_changes import TIME_PATTERN

# Fields whose values are words of an API, not texts of a user.
_KEPT_FIELDS = frozenset(
    {
        "type", "role", "model", "cache_control", "prompt_cache_breakpoint", "tool_choice", "effort", "verbosity", "ttl",
        "service_tier", "object", "reasoning_effort", "media_type", "detail", "speed", "mode", "status",
    }
)  # fmt: skip
# Words that the analysis looks for.
_KEPT_WORDS = frozenset(
    {"summary", "summaries", "summarised", "summarized", "compacted", "condensed", "true", "false", "null"}
)
# A letter behind a backslash belongs to an escape of JSON.
_WORD = re.compile(r"(?<!\\)[^\W\d_]+|\d+")
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_KEYED_NAMES = 200_000
# Words so short would often become the same word; they are permuted instead.
_MAX_PERMUTED = 2
_WORD_CHUNK = 32
_IMAGE_FIELDS = frozenset({"data", "url", "image_url", "file_data"})


class Redactor:
    """Redacts calls with a secret key; the same key gives the same words."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._permuted = {
            (alphabet is _DIGITS, length): self._permute_words(alphabet, length)
            for alphabet in (_DIGITS, _LETTERS)
            for length in range(1, _MAX_PERMUTED + 1)
        }
        self._replace_word = lru_cache(maxsize=_KEYED_NAMES)(self._make_word)

    def redact(self, call: LoggedCall, tokenizer: Tokenizer) -> Mapping[str, Any]:
        """Return a call as a log line without its texts."""
        prompt = split_prompt(call)
        counts = [
            tokenizer.count_image(1_024, 1_024)
            if block.kind == "image"
            else tokenizer.count(block.text) + tokenizer.tokens_per_message
            for block in prompt.blocks
        ]
        line: dict[str, Any] = {
            "timestamp": call.at.isoformat() if call.at else None,
            "conversation": None if call.label is None else self.redact_text(call.label),
            "request": {"model": call.model, **self._redact_fields(call.body)},
            "response": self._make_response(call),
            "redacted": {
                "format": call.format,
                "wire": call.wire.value,
                "tokens": counts,
                "has_whole_prompt": call.has_whole_prompt,
                "known_cause": call.known_cause,
                "miss_reason": call.miss_reason,
                "failed": call.failed,
            },
        }
        return {name: value for name, value in line.items() if value is not None}

    def redact_text(self, text: str) -> str:
        """Return a text with other words; times stay."""
        made: list[str] = []
        end = 0
        for found in TIME_PATTERN.finditer(text):
            made.append(self._redact_words(text[end : found.start()]))
            made.append(found.group())
            end = found.end()
        return "".join((*made, self._redact_words(text[end:])))

    def _redact_words(self, text: str) -> str:
        return _WORD.sub(lambda found: self._replace_word(found.group()), text)

    def _make_word(self, word: str) -> str:
        if word.lower() in _KEPT_WORDS:
            return word
        if len(word) <= _MAX_PERMUTED and word.isascii():
            new = self._permuted[word.isdecimal(), len(word)][word.lower()]
        else:
            new = self._hash_word(word)
        return new.upper() if word.isupper() else new.capitalize() if word[0].isupper() else new

    def _hash_word(self, word: str) -> str:
        alphabet = _DIGITS if word.isdecimal() else _LETTERS
        made: list[str] = []
        for start in range(0, len(word), _WORD_CHUNK):
            digest = self._digest(f"{start} {word}")
            made += [alphabet[byte % len(alphabet)] for byte in digest[: min(_WORD_CHUNK, len(word) - start)]]
        if word.isdecimal() and word[0] != "0" and made[0] == "0":
            made[0] = "1"  # No number in JSON begins with 0.
        return "".join(made)

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._key, digest_size=64).digest()

    def _permute_words(self, alphabet: str, length: int) -> dict[str, str]:
        """Return another word for each short word, so that no two become the same. A first 0 stays first."""
        words = ["".join(letters) for letters in product(alphabet, repeat=length)]
        made: dict[str, str] = {}
        for group in ([one for one in words if one[0] == "0"], [one for one in words if one[0] != "0"]):
            made |= zip(group, sorted(group, key=self._digest), strict=True)
        return made

    def _redact_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value if name in _KEPT_FIELDS else self._redact_value(value, name) for name, value in fields.items()
        }

    def _redact_value(self, value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, str):
            if name in _IMAGE_FIELDS:
                return blake2b(value.encode("utf-8", "surrogatepass"), key=self._key).hexdigest()
            return self.redact_text(value)
        if isinstance(value, list):
            return [self._redact_value(one, "") for one in value]
        if isinstance(value, dict):
            # Names of parameters of tools are texts, too.
            if name in ("properties", "input", "arguments"):
                return {self._redact_words(key): self._redact_value(one, "") for key, one in value.items()}
            return self._redact_fields(value)
        return value

    def _make_response(self, call: LoggedCall) -> dict[str, Any]:
        usage = call.usage
        reply = self.redact_text(call.reply)
        response: dict[str, Any] = {"content": [{"type": "text", "text": reply}]} if reply else {}
        if usage is not None:
            response["usage"] = {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
                "cache_write_1h_tokens": usage.written_long,
            }
        return response


def restore_redacted_call(call: LoggedCall, details: Mapping[str, Any]) -> LoggedCall:
    """Return a call that was read from a redacted line with what the line says beside the texts."""
    wires: Sequence[str] = [one.value for one in WireFormat]
    wire, name, cause = details.get("wire"), details.get("format"), details.get("known_cause")
    tokens = details.get("tokens")
    reason = details.get("miss_reason")
    return msgspec.structs.replace(
        call,
        wire=WireFormat(wire) if isinstance(wire, str) and wire in wires else call.wire,
        format=name if isinstance(name, str) and name else call.format,
        known_cause=cause if isinstance(cause, str) else None,
        miss_reason=reason if isinstance(reason, str) else None,
        has_whole_prompt=details.get("has_whole_prompt") is not False,
        failed=details.get("failed") is True,
        token_counts=tuple(one for one in tokens if isinstance(one, int) and one >= 0)
        if isinstance(tokens, list)
        else (),
    )
