"""The number of random conversations on which each invariant is tried.

A plain run is the same on every machine: the examples are derived from the tests, not drawn. For a longer hunt, ask
for more, drawn again each time: ``LAMELLA_EXAMPLES=2000 pytest tests/invariants``.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

_ASKED = os.environ.get("LAMELLA_EXAMPLES")
if _ASKED is None:
    # Constants are looked for in whatever modules are loaded, which is not the same in every process of a run.
    _NONE = providers._local_constants
    providers._get_local_constants = lambda: _NONE

settings.register_profile(
    "invariants",
    max_examples=int(_ASKED) if _ASKED else 20,
    derandomize=_ASKED is None,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
