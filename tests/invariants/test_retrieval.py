"""An updated index equals a new one, after any changes of the vault."""

import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.retrieval.index import VaultIndex
from lamella.sources.open_sources import make_source_opener

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
PATHS = ("a.md", "b.md", "sub/a.md", "sub/2026-11-16.md", "c.txt")
TEXTS = (
    "",
    "pump",
    "pump pump #garden",
    "# Pump\n\nhose\n\n# Hose\n\npump hose\n",
    "---\ntitle: Hose\ntags: [garden/beans]\naliases: [Pump]\n---\npump",
    "東京都のポンプ",
    "\0 hose",
)
BAD = b"\xff\xfe"
QUERIES = ("pump", "hose pump", "[[Pump]]", "#garden", "path:sub pump", "東京", "yesterday", '"pump hose"')

changes = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from((*(text.encode() for text in TEXTS), BAD))),
    st.tuples(st.just("move"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just(b"")),
    st.tuples(st.just("refresh"), st.just(""), st.just(b"")),
)


def change(root: Path, what: str, path: str, other: str | bytes) -> None:
    file = root / path
    if what == "write" and isinstance(other, bytes):
        file.write_bytes(other)
    elif what == "move" and isinstance(other, str) and file.exists() and path != other:
        file.replace(root / other)
    elif what == "delete":
        file.unlink(missing_ok=True)


def all_results(index: VaultIndex) -> list[object]:
    """All that an index answers, and what it holds, apart from its own numbers."""
    rows = index._file.execute(
        "SELECT name, title, tags, headings, path, properties, body, extra FROM chunks ORDER BY name"
    )
    notes = index._file.execute("SELECT path, hash, title, chunks, fault, since, until FROM notes ORDER BY path")
    answers = [list(index.search(query, now=NOW, limit=20)) for query in QUERIES]
    return [rows, notes, answers, index.rank_notes("pump", paths=PATHS)]


@settings(settings.get_profile("invariants"))
@given(st.lists(changes, max_size=12))
def test_updated_index_equals_new_index(happened: list[tuple[str, str, str | bytes]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        (root / "sub").mkdir(parents=True)
        with closing(
            VaultIndex(Path(folder) / "kept" / "i.db", vault=root, open_readers=make_source_opener(root))
        ) as kept:
            for what, path, other in happened:
                if what == "refresh":
                    kept.refresh()
                else:
                    change(root, what, path, other)
            kept.refresh()
            with closing(
                VaultIndex(Path(folder) / "new" / "i.db", vault=root, open_readers=make_source_opener(root))
            ) as new:
                new.refresh()
                assert all_results(kept) == all_results(new)
        shutil.rmtree(root)
