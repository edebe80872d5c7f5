"""Every wire format under the same suite: the real SDK, over HTTP, against a server on the loopback."""

import pytest
from tests.wire.kinds import WIRES, Wire


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """A wire format."""
    found = request.param
    assert isinstance(found, Wire)
    return found
