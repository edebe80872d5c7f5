"""A trial: some tests in a process of their own, which ends by itself whatever the fault in it does.

``python -m mutation.trial SECONDS TESTS...`` ends as pytest does, or is ended by the alarm.
"""

import resource
import signal
import sys

import pytest

# A fault may make a loop that never ends and keeps what it makes.
MEMORY = 4 * 2**30


def main(arguments: list[str]) -> int:
    """Run the tests that are named, until the first one fails."""
    seconds, *tests = arguments
    signal.alarm(int(seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return int(pytest.main(["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
