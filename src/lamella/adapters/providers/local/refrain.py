"""Refrains: a small model that goes in circles is ended, where a larger one would have ended by itself."""

import re

from lamella.adapters.providers.wire.fields import Fields, count_at, fields_at, items_at, text_at

# The same stretch so many times in a row is a circle, a long one sooner. Shorter ones are rules of tables, dots and
# laughter; of longer ones an answer is over before that is seen.
_TIMES, _SOONER, _LONG = 4, 3, 40
_SHORTEST, _LONGEST = 12, 300
_WORDS = re.compile(r"\w\W+\w")


class Refrain:
    """An answer on its way, listened to chunk by chunk."""

    def __init__(self) -> None:
        self._tail = ""
        self._said = 0
        self._progress: Fields = {}

    def take(self, chunk: Fields) -> Fields | None:
        """The chunk that ends the answer once it goes in circles, with what it used; none as long as it does not."""
        self._progress = fields_at(chunk, "prompt_progress") or self._progress
        for choice in items_at(chunk, "choices")[:1]:
            text = text_at(fields_at(choice, "delta"), "content")
            self._said += len(items_at(fields_at(choice, "logprobs"), "content")) or bool(text)
            self._tail = (self._tail + text)[-_TIMES * _LONGEST :]
            if text and goes_in_circles(self._tail):
                return {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": self._count()}
        return None

    def _count(self) -> Fields:
        total, cached = count_at(self._progress, "total"), count_at(self._progress, "cache")
        return {
            "prompt_tokens": total,
            "completion_tokens": self._said,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


def goes_in_circles(text: str) -> bool:
    """Whether a text ends in the same words again and again."""
    for length in range(_SHORTEST, min(_LONGEST, len(text) // _SOONER) + 1):
        stretch = text[-length:]
        if text.endswith(stretch * (_SOONER if length >= _LONG else _TIMES)) and _WORDS.search(stretch):
            return True
    return False
