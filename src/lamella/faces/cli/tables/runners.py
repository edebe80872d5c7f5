"""Runners as a list: the name that each is chosen by, and what it does."""


def tell_runner(name: str, does: str, *, chosen: bool = False) -> str:
    """A runner on a line; the one that is ``chosen`` has a star."""
    return f"{'*' if chosen else ' '} {name:<10}{does}"
