"""An engine whose cache is accounted for: after each answer it is known which tokens the cache holds."""

from collections.abc import Callable
from pathlib import Path

from lamella.adapters.providers.local.cache import EngineCache, Forecast, Tokens
from lamella.adapters.providers.local.engine import Engine, EngineOptions
from lamella.adapters.providers.reading import Fields, count_at, fields_at, items_at, text_at


class AccountedEngine:
    """One request at a time, from one thread."""

    def __init__(self, weights: Path, options: EngineOptions) -> None:
        self._engine = Engine(weights, options)
        self._cache = EngineCache(has_shelf=options.shelf != 0)
        self.window = self._engine.window

    def forecast(self, body: Fields) -> Forecast:
        """What the cache will serve of a request."""
        return self._cache.forecast(self._engine.render(body))

    def answer(self, body: Fields, listen: Callable[[Fields], bool]) -> None:
        """Answer a request; ``listen`` gets every chunk and ends the answer by returning true."""
        prompt = self._engine.render(body)
        seated = self._cache.seat(prompt)
        heard = Heard()

        def take(chunk: Fields) -> bool:
            heard.take(chunk)
            return listen(chunk)

        try:
            self._engine.chat(body, take)
        finally:
            held = self._engine.count_held()
            self._cache = seated.remember(self._spell(prompt, heard, held), held) if heard.begun else seated

    def close(self) -> None:
        self._engine.close()

    def _spell(self, prompt: Tokens, heard: "Heard", held: int) -> Tokens:
        """The tokens that went through the engine, as far as they are known; at least ``held`` if all are."""
        spoken = held - len(prompt)
        if spoken <= 0:
            return prompt
        if heard.finished and len(heard.ids) == heard.wanted:
            return prompt + heard.ids
        said = self._spell_out(heard)
        if not heard.finished or len(said) == heard.wanted:
            return prompt + said
        # The reader of answers kept tokens to itself, such as marks around thoughts; text tells them if it has as many.
        text = self._engine.tokenize(heard.text)
        return prompt + text if len(text) == heard.wanted else prompt

    def _spell_out(self, heard: "Heard") -> Tokens:
        """Tokens as reported, where a character of several tokens is reported as the last of them."""
        said: list[int] = []
        for token, text in heard.tokens:
            parts = (token,) if text.isascii() else self._engine.tokenize(text)
            said += parts if parts[-1:] == (token,) else (token,)
        return tuple(said)


class Heard:
    """An answer's tokens, collected from its chunks."""

    def __init__(self) -> None:
        self.tokens: list[tuple[int, str]] = []
        self.text = ""
        self.begun = False
        self._reason = ""
        self._output = 0

    @property
    def ids(self) -> Tokens:
        return tuple(token for token, _ in self.tokens)

    @property
    def finished(self) -> bool:
        return bool(self._reason and self._output)

    @property
    def wanted(self) -> int:
        """How many tokens a whole answer has; the one that ends it is not reported, unless the answer was cut."""
        return self._output if self._reason == "length" else self._output - 1

    def take(self, chunk: Fields) -> None:
        self.begun = True
        self._output = count_at(fields_at(chunk, "usage"), "completion_tokens") or self._output
        for choice in items_at(chunk, "choices")[:1]:
            self.text += text_at(fields_at(choice, "delta"), "content")
            self._reason = text_at(choice, "finish_reason") or self._reason
            for entry in items_at(fields_at(choice, "logprobs"), "content"):
                self.tokens.append((count_at(entry, "id") or 0, text_at(entry, "token")))
