"""Write the golden stores of the newest schema version. What is there already is never written again."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.conftest import make_url
from tests.conformance.stores.golden.dumps import FOLDER, dump, golden_file
from tests.conformance.stores.golden.story import read_back, write_story

from lamella.stores.open_store import open_store
from lamella.stores.sql_schema import load_migrations


def regenerate() -> None:
    for dialect in ("sqlite", "postgresql"):
        with TemporaryDirectory() as folder:
            url = make_url(dialect, Path(folder))
            store = open_store(url)
            write_story(store)
            told = json.dumps(read_back(store), ensure_ascii=False, indent=1) + "\n"
            store.close()
            _write(golden_file(dialect, len(load_migrations(dialect))), dump(url))
            _write(FOLDER / "expected.json", told)


def _write(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    regenerate()
