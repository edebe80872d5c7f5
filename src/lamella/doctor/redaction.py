"""Replace the texts of logged calls so that a log can be shared and keeps every finding.

Each word becomes another word of the same length that follows from a secret key, so equal words stay equal and others
do not. White space, punctuation, times, the shape of ids, and the structure of JSON stay. Token counts are stored beside
the texts, because the new words have other tokens.
"""

import math
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

# Fields whose values are words of an API, not texts of a user, if they look like one word.
_KEPT_FIELDS = frozenset(
    {
        "type", "role", "model", "cache_control", "prompt_cache_breakpoint", "tool_choice", "effort", "verbosity", "ttl",
        "service_tier", "object", "reasoning_effort", "media_type", "detail", "speed", "mode", "status",
    }
)  # fmt: skip
_MAX_KEPT_CHARS = 40
# Some providers have long names for models.
_MAX_MODEL_CHARS = 64
# Fields with data of a user: no name and no value within them stays.
_OPAQUE_FIELDS = frozenset(
    {
        "input", "arguments", "properties", "$defs", "definitions", "patternProperties", "dependentSchemas",
        "metadata", "default", "examples", "const", "enum", "internal_chat_message_metadata_passthrough",
    }
)  # fmt: skip
# The names of other fields that stay. Any other name may be a text, so it and its value are redacted.
_NAMED_FIELDS = frozenset(
    {
        "messages", "tools", "functions", "system", "instructions", "content", "text", "refusal", "name", "tool_calls",
        "tool_call_id", "tool_use_id", "call_id", "id", "output", "reasoning", "reasoning_content", "thinking",
        "signature", "output_config", "parallel_tool_calls", "response_format", "format", "prompt_cache_key", "function",
        "custom", "description", "parameters", "input_schema", "schema", "json_schema", "strict", "required", "items",
        "anyOf", "allOf", "oneOf", "additionalProperties", "$ref", "source", "data", "url", "image_url", "file", "file_id",
        "file_data", "filename", "title", "context", "citations", "summary", "encrypted_content", "is_error",
        "budget_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "top_k",
        "stop", "stop_sequences", "stream", "stream_options", "include_usage", "store", "seed", "n", "usage", "choices",
        "encoding_format", "function_call", "previous_response_id", "include", "truncation",
    }
)  # fmt: skip
_PART_TYPES = frozenset(
    {
        "text", "input_text", "output_text", "refusal", "image", "image_url", "input_image", "document", "file",
        "input_file",
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
            "request": self._redact_body(call),
            "response": self._make_response(call),
            "redacted": {
                "format": call.format,
                "wire": call.wire.value,
                "tokens": counts,
                "has_whole_prompt": call.has_whole_prompt,
                "known_cause": self._keep_word(call.known_cause),
                "miss_reason": self._keep_word(call.miss_reason),
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

    def _redact_body(self, call: LoggedCall) -> dict[str, Any]:
        body = dict(call.body)
        made: dict[str, Any] = {"model": self._keep_word(call.model, _MAX_MODEL_CHARS)}
        if isinstance(body.get("model"), str):
            made["model"] = self._keep_word(body.pop("model"), _MAX_MODEL_CHARS)
        messages = body.pop("input") if isinstance(body.get("input"), str | list) else None
        made |= self._redact_fields(body)
        if messages is not None:
            made["input"] = self._redact_value(messages, "")
        return made

    def _redact_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        is_result = _is_tool_result(fields)
        for name, value in fields.items():
            if name in _OPAQUE_FIELDS:
                made[name] = self._redact_data(value)
            elif is_result and name in ("content", "output"):
                made[name] = self._redact_result(value)
            elif name in _KEPT_FIELDS and isinstance(value, str):
                made[name] = self._keep_word(value)
            elif name in _KEPT_FIELDS or name in _NAMED_FIELDS:
                made[name] = self._redact_value(value, name)
            else:
                made[self.redact_text(name)] = self._redact_data(value)
        return made

    def _redact_value(self, value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, str):
            if name in _IMAGE_FIELDS:
                return blake2b(value.encode("utf-8", "surrogatepass"), key=self._key).hexdigest()
            return self.redact_text(value)
        if isinstance(value, list):
            return [self._redact_value(one, "") for one in value]
        return self._redact_fields(value) if isinstance(value, dict) else value

    def _redact_data(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return data of a user with no name and no value of the original; only its structure stays."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self._redact_data(one) for one in value]
        if isinstance(value, dict):
            return {self.redact_text(name): self._redact_data(one) for name, one in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._redact_number(value)
        return value

    def _redact_result(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return what a tool returned: texts and images as parts of a message, or any data."""
        if not isinstance(value, list):
            return self._redact_data(value)
        made: list[Any] = []
        for one in value:
            if not isinstance(one, dict):
                made.append(self._redact_data(one))
            elif isinstance(one.get("type"), str) and one["type"] in _PART_TYPES:
                made.append(self._redact_fields(one))
            else:
                # The analysis reads the text of any part.
                made.append(
                    {
                        name if name == "text" else self.redact_text(name): self._redact_data(field)
                        for name, field in one.items()
                    }
                )
        return made

    def _redact_number(self, value: float) -> float:
        """Return another number with as many digits; a time stays."""
        text = repr(value)
        if isinstance(value, int):
            return int(self.redact_text(text))
        if not math.isfinite(value):
            return value
        mantissa, mark, exponent = text.partition("e")
        made = self.redact_text(mantissa)
        if made.endswith("0") and not mantissa.endswith("0"):
            made = f"{made[:-1]}1"
        return float(f"{made}{mark}{exponent}")

    def _keep_word(self, value: str | None, limit: int = _MAX_KEPT_CHARS) -> str | None:
        """Return a value that looks like one word of an API as it is, and any other value redacted."""
        if value is None or (len(value) <= limit and not any(letter.isspace() for letter in value)):
            return value
        return self.redact_text(value)

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


def _is_tool_result(fields: Mapping[str, Any]) -> bool:
    kind = fields.get("type")
    return fields.get("role") in ("tool", "function") or (
        isinstance(kind, str) and kind.endswith(("tool_result", "_output"))
    )


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
