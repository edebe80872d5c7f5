"""An engine whose cache is accounted for: after each answer it is known which tokens the cache holds."""

from collections.abc import Callable
from pathlib import Path

from lamella.adapters.providers.local.cache import EngineCache, Forecast, Tokens
from lamella.adapters.providers.local.engine import EngineOptions, LlamaServer
from lamella.adapters.providers.wire.fields import Fields, count_at, fields_at, items_at, text_at

# A character has at most four bytes, and each may be a token of its own.
_BYTES_LEFT = 3


class AccountedEngine:
    """One request at a time, from one thread."""

    def __init__(self, weights: Path, options: EngineOptions) -> None:
        self._engine = LlamaServer(weights, options)
        self._cache = EngineCache(has_shelf=options.shelf != 0)
        self.window = self._engine.window

    def forecast(self, body: Fields) -> Forecast:
        """What the cache will serve of a request."""
        return self._cache.forecast(self._engine.render(body))

    def answer(self, body: Fields, listen: Callable[[Fields], bool]) -> None:
        """Answer a request; ``listen`` gets every chunk and ends the answer by returning true."""
        prompt = self._engine.render(body)
        seated = self._cache.seat(prompt)
        heard = AnswerTokens()

        def take(chunk: Fields) -> bool:
            heard.take(chunk)
            return listen(chunk)

        try:
            self._engine.chat(body, take)
        finally:
            held = self._engine.count_held()
            self._cache = self._remember(seated, prompt, heard, held=held) if heard.begun else seated

    def close(self) -> None:
        self._engine.close()

    def _remember(self, seated: EngineCache, prompt: Tokens, heard: "AnswerTokens", *, held: int) -> EngineCache:
        said = self._spell_out(heard)
        if held <= len(prompt) or heard.is_whole(said):
            return seated.remember(prompt + said, held=held)
        # The reader of answers kept tokens to itself, such as marks around thoughts; text tells them if it has as many.
        text = self._engine.tokenize(heard.text)
        if heard.is_whole(text):
            return seated.remember(prompt + text, held=held)
        return seated.remember(prompt, held=held, sure=False)

    def _spell_out(self, heard: "AnswerTokens") -> Tokens:
        """Tokens as reported, where a character of several tokens is reported as the last of them."""
        said: list[int] = []
        for token, text in heard.tokens:
            parts = (token,) if text.isascii() else self._engine.tokenize(text)
            said += parts if parts[-1:] == (token,) else (token,)
        return tuple(said)


class AnswerTokens:
    """An answer's tokens, collected from its chunks."""

    def __init__(self) -> None:
        self.tokens: list[tuple[int, str]] = []
        self.text = ""
        self.begun = False
        self._reason = ""
        self._output = 0
        self._plain = True

    def is_whole(self, said: Tokens) -> bool:
        """Whether these are all tokens that a next prompt could go on with.

        The token that ends an answer is not reported. Of an answer that was cut, neither are those of a last character
        that still lacks a byte. Of one that was stopped, the engine may hold some that nobody was told; where none are
        told, beside tools, its text cannot say which they were.
        """
        match self._reason:
            case "":
                return bool(self.tokens) or not self.text
            case "length":
                return self._output - (_BYTES_LEFT if self._plain else 0) <= len(said) <= self._output
            case _:
                return len(said) == self._output - 1

    def take(self, chunk: Fields) -> None:
        """Listen to one chunk."""
        self.begun = True
        self._output = count_at(fields_at(chunk, "usage"), "completion_tokens") or self._output
        for choice in items_at(chunk, "choices")[:1]:
            delta = fields_at(choice, "delta")
            self.text += text_at(delta, "content")
            self._plain &= not delta.get("reasoning_content") and not delta.get("tool_calls")
            self._reason = text_at(choice, "finish_reason") or self._reason
            for entry in items_at(fields_at(choice, "logprobs"), "content"):
                self.tokens.append((count_at(entry, "id") or 0, text_at(entry, "token")))
