"""How many random conversations each law is tried on.

A plain run is the same on every machine: the examples are derived from the tests, not drawn. For a longer hunt, ask
for more, drawn anew each time: ``LAMELLA_EXAMPLES=2000 pytest tests/invariants``.
"""

import os

from hypothesis import HealthCheck, settings

_ASKED = os.environ.get("LAMELLA_EXAMPLES")

settings.register_profile(
    "invariants",
    max_examples=int(_ASKED) if _ASKED else 40,
    derandomize=_ASKED is None,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
