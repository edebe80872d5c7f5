"""Taking what is enough: candidates in order, until what they free covers what is too much."""

from collections.abc import Iterable


def take_until(candidates: Iterable[tuple[str, int]], excess: int, *, sparing: bool = False) -> tuple[str, ...]:
    """The first candidates, each with the tokens it frees, that together free the excess; none that frees nothing.

    The last may free more than is missing: ``sparing``, those before it that are not needed stay, the latest first.
    """
    taken: dict[str, int] = {}
    freed = 0
    for name, tokens in candidates:
        if freed >= excess:
            break
        if tokens > 0:
            taken[name] = taken.get(name, 0) + tokens
            freed += tokens
    for name, tokens in reversed(tuple(taken.items())) if sparing else ():
        if tokens <= freed - excess:
            del taken[name]
            freed -= tokens
    return tuple(taken)
