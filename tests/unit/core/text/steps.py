"""Steps: work that is counted in lines of a module, which is the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType


def count_steps(function: Callable[..., object], run: Callable[[], object]) -> int:
    """Count the lines that are executed inside a function, and in the functions of its module that it calls."""
    code = function.__code__
    file, name = code.co_filename, code.co_name
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal steps
        if frame.f_code.co_filename != file or not _is_inside(frame, name):
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


def _is_inside(frame: FrameType | None, name: str) -> bool:
    while frame is not None:
        if frame.f_code.co_name == name:
            return True
        frame = frame.f_back
    return False
