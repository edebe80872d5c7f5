"""Usage in one form: providers count input with the cached part or without it, and some contradict themselves."""

from lamella.core.messages.usage import Usage

# No request has more tokens; larger numbers are no longer exact where JSON is read, and no store keeps them all.
_MOST = 2**53


def normalise(
    *,
    total: int | None = None,
    plain: int | None = None,
    read: int | None = None,
    write: int | None = None,
    write_long: int | None = None,
    output: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Usage from a total that includes cached tokens, or from a plain count that does not.

    What a provider leaves out stays unknown. Numbers that cannot be true make all of them unknown, with the reason.
    """
    numbers = {"read": read, "write": write, "write_long": write_long, "output": output, "reasoning": reasoning}
    cached = (read or 0) + (write or 0) + (write_long or 0)
    large = [f"{name} {number:,}" for name, number in _given(input=total or plain, **numbers) if number > _MOST]
    if large:
        return Usage(fault=f"The provider reports more tokens than there can be: {', '.join(large)}.")
    if total is not None:
        plain = total - cached
    negative = [f"{name} {number:,}" for name, number in _given(**numbers) if number < 0]
    if negative:
        return Usage(fault=f"The provider reports fewer than no tokens: {', '.join(negative)}.")
    if plain is not None and plain < 0:
        told = f"{cached:,} cached tokens of {total:,}" if total is not None else f"{plain:,} input tokens"
        return Usage(fault=f"The provider reports {told}.")
    if output is not None and (reasoning or 0) > output:
        return Usage(fault=f"The provider reports {reasoning:,} reasoning tokens of {output:,} output tokens.")
    return Usage(plain=plain, read=read, write=write, write_long=write_long, output=output, reasoning=reasoning)


def _given(**numbers: int | None) -> list[tuple[str, int]]:
    return [(name, number) for name, number in numbers.items() if number is not None]


def split_write(total: int | None, *, short: int | None, long: int | None) -> tuple[int | None, int | None]:
    """Writes by lifetime: as split by the provider, else all of them the short one."""
    if short is None and long is None:
        return total, None
    # A split can be older than the total, where later tool rounds wrote more; the rest has the short lifetime.
    late = max((total or 0) - (short or 0) - (long or 0), 0)
    return (short or 0) + late, long or 0
