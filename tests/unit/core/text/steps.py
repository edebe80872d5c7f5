"""Steps: work that is counted in lines of a module, which is the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType


def count_steps(file: str, run: Callable[[], object]) -> int:
    """How many lines of a file are run."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal steps
        if not frame.f_code.co_filename.endswith(file):
            return None
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        run()
    finally:
        sys.settrace(before)
    return steps
