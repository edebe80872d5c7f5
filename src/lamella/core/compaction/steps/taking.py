"""Taking what is enough: candidates in order, until what they free covers what is too much."""

from collections.abc import Iterable


def take_until(candidates: Iterable[tuple[str, int]], excess: int) -> tuple[str, ...]:
    """The first candidates, each with the tokens it frees, that together free the excess; none that frees nothing."""
    taken: list[str] = []
    freed = 0
    for name, tokens in candidates:
        if freed >= excess:
            break
        if tokens > 0:
            taken.append(name)
            freed += tokens
    return tuple(taken)
