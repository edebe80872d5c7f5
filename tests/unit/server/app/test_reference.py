"""The generated parts of the HTTP reference match the server's routes, scopes, events and metrics."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lamella.server.app import ROUTERS

ROOT = Path(__file__).parents[4]
FUNCTIONS = {
    "http": "http.md",
    "access_scopes": "http.md",
    "stream_events": "http.md",
    "metrics": "metrics-and-logs.md",
}


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    calls = ", ".join(f"{name!r}: generate.{name}()" for name in FUNCTIONS)
    program = f"import json, sys; sys.path.insert(0, 'docs'); import generate; json.dump({{{calls}}}, sys.stdout)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    parts: dict[str, str] = json.loads(done.stdout)
    return parts


@pytest.mark.parametrize("function", FUNCTIONS)
def test_reference_page_matches_server(generated: dict[str, str], function: str) -> None:
    page = (ROOT / "docs" / "reference" / FUNCTIONS[function]).read_text(encoding="utf-8")
    block = re.search(rf"generate\.{function}\(\)\) \]\]\] -->\n(.*?)<!-- \[\[\[end", page, re.DOTALL)
    assert block is not None
    assert generated[function].strip() == block[1].strip()


def test_every_router_has_tag_in_reference() -> None:
    page = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    tags = {str(tag) for router in ROUTERS for tag in router.tags}
    assert tags
    assert tags <= set(re.findall(r"^### (.+)$", page, re.MULTILINE))
