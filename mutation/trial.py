"""A trial: some tests in a process of their own, which ends by itself whatever the fault in it does.

``python -m mutation.trial SECONDS TESTS...`` ends as pytest does, or when it has worked for so many seconds.
"""

import resource
import signal
import sys

import pytest

# A fault may make a loop that never ends and keeps what it makes.
MEMORY = 4 * 2**30
# Work is counted and not time, since a busy machine would else pass for a fault; waiting for ever has an end as well.
PATIENCE = 20


def main(arguments: list[str]) -> int:
    """Run the tests that are named, until the first one fails."""
    seconds, *tests = arguments
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    signal.alarm(PATIENCE * int(seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return int(pytest.main(["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
