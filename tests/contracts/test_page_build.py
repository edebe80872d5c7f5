"""The page that is committed is the build of its sources, in the wheel, small, and without addresses of a registry."""

import gzip
import hashlib
import json
import re
import runpy
from pathlib import Path

from tests.contracts.repository import ROOT

WEB = ROOT / "web"
BUILT = ROOT / "src" / "lamella" / "server" / "static"
MAX_KILOBYTES = 150
REBUILD = "the page is out of date: run make web, and commit what it writes"


def _hashes(paths: list[Path], base: Path) -> dict[str, str]:
    return {path.relative_to(base).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _source_files() -> list[Path]:
    """Everything that decides what the build is: the list that vite.config.ts has, too."""
    names = re.findall(
        r'"([^"]+)"', re.findall(r"const inputs = \[([^\]]*)\]", (WEB / "vite.config.ts").read_text())[0]
    )
    found = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    types = WEB / "src" / "lib" / "api" / "types.ts"
    return [*(WEB / name for name in names), *(path for path in found if path != types)]


def test_committed_page_is_the_build_of_its_sources() -> None:
    manifest = json.loads((WEB / "build.json").read_text(encoding="utf-8"))
    assert _hashes(_source_files(), WEB) == manifest["sources"], REBUILD
    built = [path for path in BUILT.rglob("*") if path.is_file()]
    assert _hashes(built, BUILT) == manifest["files"], REBUILD


def test_types_of_the_page_are_those_of_the_server() -> None:
    generator = runpy.run_path(str(WEB / "generate_types.py"))
    committed = (WEB / "src" / "lib" / "api" / "types.ts").read_text(encoding="utf-8")
    assert generator["render_types"]() == committed, "run make docs, and commit web/src/lib/api/types.ts"


def test_page_is_small() -> None:
    files = [path for path in BUILT.rglob("*") if path.suffix in (".js", ".css", ".html")]
    assert sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in files) <= MAX_KILOBYTES * 1_000


def test_lock_of_the_page_has_hashes_and_no_addresses_of_a_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert [name for name, one in packages.items() if "resolved" in one] == []
    assert [name for name, one in packages.items() if "integrity" not in one] == []
    assert (WEB / ".npmrc").read_text() == "omit-lockfile-registry-resolved=true\n"


def test_page_loads_nothing_from_elsewhere() -> None:
    """Addresses in the built files are names of XML, links that people follow, and messages of libraries."""
    allowed = re.compile(r"https?://(www\.w3\.org|svelte\.dev|github\.com)/")
    for path in BUILT.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        found = [one for one in re.findall(r"https?://[\w.-]+/?", text) if not allowed.match(one + "/")]
        assert found == [], path
        assert "sourceMappingURL" not in text, path


def test_packages_of_the_page_are_pinned_and_have_a_record() -> None:
    package = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert [name for name, version in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    record = (ROOT / "docs" / "decisions" / "page.md").read_text(encoding="utf-8")
    assert [name for name in versions if f"`{name}`" not in record] == []
