"""Trials: tests in processes of their own, which end by themselves whatever the fault in them does.

``python -m mutation.trial MODULES...`` imports the modules once, forgets those of their packages, and keeps what they
need: pytest, hypothesis and all that is installed. Then it reads a line of JSON for each trial, runs it in a fork, and
writes how it ended and how many seconds it worked.
"""

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence

import hypothesis.strategies  # noqa: F401 - tests find it imported
import pytest
from hypothesis import Phase, settings

# A fault may make a loop that never ends and keeps what it makes.
MEMORY = 4 * 2**30
# Work is counted and not time, since a busy machine would else pass for a fault; waiting for ever has an end as well.
PATIENCE = 20
# One example that fails is enough: to look for a smaller one takes longer than all the rest of a trial. And the same
# examples each time, so that who survives is no chance.
settings.register_profile("trial", phases=(Phase.explicit, Phase.generate), derandomize=True, database=None)


def main(modules: Sequence[str]) -> None:
    """Run trials until there are no more."""
    prepare(modules)
    for line in sys.stdin:
        seconds, tests = json.loads(line)
        child = os.fork()
        if not child:
            _run(seconds, tests)
        _, status, used = os.wait4(child, 0)
        answer = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def prepare(modules: Sequence[str]) -> None:
    """Import what tests will need, except what is on trial."""
    for module in modules:
        importlib.import_module(module)
    packages = {module.partition(".")[0] for module in modules}
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def _run(seconds: int, tests: Sequence[str]) -> None:
    """The tests until the first one fails; the process ends as pytest does, or when it has worked for so long."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(PATIENCE * seconds)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    settings.load_profile("trial")
    code = 1
    try:
        code = int(pytest.main(["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
