"""Runs tests in forked processes, which end by themselves whatever the fault in them does.

``python -m mutation.forked_tests MODULES...`` imports the modules once, then removes those of their packages from
``sys.modules`` and keeps the libraries they need, such as pytest and hypothesis. For each line of JSON that it reads it
runs tests in a fork, and writes their exit code, their processor time and the end of their output.
"""

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence

import hypothesis.strategies  # noqa: F401 - tests find it imported
import pytest
from hypothesis import Phase, settings

# A fault may turn a loop into one that never ends and fills the memory.
MAX_MEMORY_BYTES = 4 * 2**30
# What is kept of the output, to say which test failed without a mutant.
MAX_OUTPUT_BYTES = 2_000
# Processor time is limited, because on a busy machine elapsed time says little. A test that only waits has this many
# times the limit in elapsed time.
ELAPSED_PER_PROCESSOR_SECOND = 20
# One failing example is enough: looking for a smaller one takes longer than all the rest. The examples are the same each
# time, so that a mutant that survives does so again.
settings.register_profile("mutation", phases=(Phase.explicit, Phase.generate), derandomize=True, database=None)


def main(modules: Sequence[str]) -> None:
    """Run tests until the input ends."""
    preload(modules)
    for line in sys.stdin:
        seconds, tests = json.loads(line)
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                _run(seconds, tests, output.fileno())
            _, status, used = os.wait4(child, 0)
            output.seek(max(0, output.seek(0, os.SEEK_END) - MAX_OUTPUT_BYTES))
            text = output.read().decode(errors="replace")
        answer = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, text]
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def preload(modules: Sequence[str]) -> None:
    """Import the libraries that tests need, but not the packages under test."""
    for module in modules:
        importlib.import_module(module)
    packages = {module.partition(".")[0] for module in modules}
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def _run(seconds: int, tests: Sequence[str], output: int) -> None:
    """Run tests until the first failure, then exit with the code of pytest; the time is limited."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    signal.alarm(ELAPSED_PER_PROCESSOR_SECOND * seconds)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(output, stream)
    settings.load_profile("mutation")
    code = 1
    try:
        code = int(pytest.main(["-x", "-q", "--tb=line", "--assert=plain", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
