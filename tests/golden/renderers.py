"""Digests of what each version of the renderer makes of the golden conversations.

A wording that a stored turn setting chooses keeps the version: turns of older stores have the value of their time and
render as they did (``test_placeholders.py``). Such a change replaces the digests of the current version by hand.
"""

import json
from hashlib import sha256

from tests.golden.cases import EXPECTED, HERE, NAIVE

from lamella.core.prompt.prompt import RENDERER_VERSION

FILE = HERE / "renderers.json"


def read_digests() -> dict[str, dict[str, str]]:
    """The digests of expected messages, by the version that rendered them and by file."""
    told: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return told


def take_digests() -> dict[str, str]:
    """Those of the messages as they are expected now."""
    # What a compaction takes out is planned, not rendered, and what nobody sends is not rendered here.
    rendered = [path for path in sorted(EXPECTED.glob("*.txt")) if not path.match("heavy.*") and NAIVE not in path.name]
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in rendered}


def record_digests() -> None:
    """Add what is new. What a version has rendered it has rendered: only another one has other digests."""
    known = read_digests() if FILE.exists() else {}
    known[str(RENDERER_VERSION)] = {**take_digests(), **known.get(str(RENDERER_VERSION), {})}
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
