"""What the engine's cache holds, token by token, and so what it will serve of the next prompt. Pure.

The engine has one slot. It holds the tokens of the last prompt and of what was said to it; a new prompt is served as
far as both begin alike, all but its last token, which must be computed. With a shelf, a prompt that would lose more
than half of what the slot holds has that put aside first, and what is on the shelf is taken back where it fits better.
These are the rules of llama.cpp's server for models that attend to all of their window; others may be served less.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

Tokens = tuple[int, ...]

# As the engine is set: which share of the prompt the slot must hold for the shelf not to be looked at.
SIMILAR = 0.5
# As in the engine: the share of its tokens that the slot must keep for that, and that one from the shelf must.
_WORTH_KEEPING = 0.5
_WORTH_TAKING = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a prompt weighs, and how much of it is cached: exactly, or at least, if an answer was not fully seen."""

    prompt: int
    cached: int
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCache:
    """The slot and the shelf. Of ``held`` cached tokens ``slot`` is what is known; if ``sure``, all that can matter."""

    slot: Tokens = ()
    held: int = 0
    sure: bool = True
    shelf: tuple[Tokens, ...] = ()
    has_shelf: bool = False

    def forecast(self, prompt: Tokens) -> Forecast:
        """What a prompt will be served."""
        seated = self.seat(prompt)
        shared = count_shared(seated.slot, prompt)
        exact = seated.sure or shared < len(seated.slot)
        return Forecast(prompt=len(prompt), cached=min(shared, max(len(prompt) - 1, 0)), exact=exact)

    def seat(self, prompt: Tokens) -> "EngineCache":
        """The cache once a prompt has found its place, before it is read."""
        shared = count_shared(self.slot, prompt)
        stays = shared > SIMILAR * len(prompt) and shared >= _WORTH_KEEPING * self.held
        if not self.has_shelf or stays:
            return self
        return self._put_aside()._take_back(prompt)

    def remember(self, said: Tokens, *, held: int, sure: bool = True) -> "EngineCache":
        """The cache after a prompt and its answer, of which the engine kept ``held`` tokens."""
        return replace(self, slot=said[:held], held=held, sure=sure)

    def _put_aside(self) -> "EngineCache":
        if not self.slot or any(count_shared(self.slot, kept) == len(self.slot) for kept in self.shelf):
            return self
        others = tuple(kept for kept in self.shelf if count_shared(self.slot, kept) < len(kept))
        return replace(self, shelf=(*others, self.slot))

    def _take_back(self, prompt: Tokens) -> "EngineCache":
        best, shared = self.slot, count_shared(self.slot, prompt)
        keeps = shared / len(self.slot) if self.slot else -1.0
        for kept in self.shelf:
            fits = count_shared(kept, prompt)
            if fits > shared and fits / len(kept) > max(keeps, 0.0) and fits / len(kept) >= _WORTH_TAKING:
                best, shared, keeps = kept, fits, fits / len(kept)
        if best is self.slot:
            return self
        return replace(
            self, slot=best, held=len(best), sure=True, shelf=tuple(kept for kept in self.shelf if kept is not best)
        )


def count_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """With how many tokens both begin."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
