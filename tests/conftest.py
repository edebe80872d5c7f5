"""Fixtures of all tests: conversations whose requests are checked.

Each request extends the one before it, or the test says why not: ``@pytest.mark.moves_prefix(reason="...")``. A test
that opens its conversations with ``converse`` is held to that; so is one that hands its turns to ``movements``.

A test about what one layout does says which: by the setting, or with ``@pytest.mark.layout("library")`` for all of it.
"""

import atexit
import os
import signal
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import ClassVar, Concatenate, ParamSpec

import pytest
from hypothesis import HealthCheck, settings

from lamella import Conversation, Turn
from lamella.core.log.call import PrefixChange, PrefixChangeCause

# What the one who runs the tests has set for themselves is no concern of the tests, here and in processes they start.
os.environ["LAMELLA_CONFIG"] = os.devnull
# Nor are the places they trust.
_OWN = TemporaryDirectory(prefix="lamella-tests-")
os.environ["XDG_CONFIG_HOME"] = _OWN.name
# Nor what was read for them before, nor the indexes of their vaults.
os.environ["XDG_CACHE_HOME"] = f"{_OWN.name}/cache"
# Nor what their notes were before a test wrote to them.
os.environ["XDG_DATA_HOME"] = f"{_OWN.name}/data"
# Nor what is remembered of them.
os.environ["LAMELLA_MEMORY_FOLDER"] = f"{_OWN.name}/memory"
atexit.register(_OWN.cleanup)

# Processes that tests start keep what they compile: most of them load the same modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No property is about time: on a busy machine an example may take as long as it likes, and so may drawing it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Shells start jobs in the background with signals ignored, and processes hand that on: those that tests start must hear
# what they are sent.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

P = ParamSpec("P")
_STILL = (PrefixChangeCause.FIRST_TURN, PrefixChangeCause.NONE)


def _watched(ask: Callable[Concatenate[Conversation, P], Turn]) -> Callable[Concatenate["Watched", P], Turn]:
    def asked(self: "Watched", /, *args: P.args, **kwargs: P.kwargs) -> Turn:
        turn = ask(self, *args, **kwargs)
        self.movements.append(turn.prefix_change.prefix_change)
        return turn

    return asked


class Watched(Conversation):
    """A conversation that writes down, per turn, what moved its prefix."""

    movements: ClassVar[list[PrefixChange]] = []
    ask = _watched(Conversation.ask)


@pytest.fixture(autouse=True)
def layout_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """The layout that a test is marked with is set for it, and for the processes it starts."""
    mark = request.node.get_closest_marker("layout")
    # By a patch of its own: the one that tests ask for is to be taken back before what they asked for earlier.
    with pytest.MonkeyPatch.context() as patch:
        if mark is not None:
            patch.setenv("LAMELLA_LAYOUT", mark.args[0])
        yield


@pytest.fixture(autouse=True)
def movements(request: pytest.FixtureRequest) -> Iterator[list[PrefixChange]]:
    """Every movement this test has seen; checked against its mark when it is over."""
    seen: list[PrefixChange] = []
    yield seen
    moved = [str(movement) for movement in seen if movement.cause not in _STILL]
    mark = request.node.get_closest_marker("moves_prefix")
    if moved and mark is None:
        pytest.fail(f"the prefix moved: {', '.join(moved)}. Mark the test with moves_prefix(reason=...)")
    if mark is not None and not mark.kwargs.get("reason"):
        pytest.fail("moves_prefix needs a reason")
    if mark is not None and not moved:
        pytest.fail("the test is marked moves_prefix, and every request it recorded extends the one before")


@pytest.fixture
def converse(movements: list[PrefixChange]) -> type[Watched]:
    """Conversations of this test: called as ``Conversation`` is."""
    return type("Conversing", (Watched,), {"movements": movements})
