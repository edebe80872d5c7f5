"""What each version of the renderer makes of the golden conversations, by digest."""

import json
from hashlib import sha256

from tests.golden.cases import EXPECTED, HERE

from lamella.core.prompt.prompt import RENDERER

FILE = HERE / "renderers.json"


def read_digests() -> dict[str, dict[str, str]]:
    """The digests of expected messages, by the version that rendered them and by file."""
    told: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return told


def take_digests() -> dict[str, str]:
    """Those of the messages as they are expected now."""
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(EXPECTED.glob("*.txt"))}


def record_digests() -> None:
    """Add what is new. What a version has rendered it has rendered: only another one has other digests."""
    known = read_digests() if FILE.exists() else {}
    known[str(RENDERER)] = {**take_digests(), **known.get(str(RENDERER), {})}
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
