"""The index of a vault: it persists, and repairs itself."""

from pathlib import Path

from tests.unit.retrieval.vaults import find, indexed, paths, write

from lamella.retrieval.index import VaultIndex
from lamella.sources.open_sources import make_source_opener

NOTES = {f"{number:03}.md": f"# Note {number}\n\nSome pump, some beans, number{number}.\n" * 20 for number in range(60)}


def spoil(file: Path) -> None:
    """Write over the middle of a file, except its first page."""
    data = bytearray(file.read_bytes())
    data[4_096:] = b"\x5a" * (len(data) - 4_096)
    file.write_bytes(data)


def test_index_persists_after_close(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    with indexed(root) as index:
        first = find(index, "number17")
        assert isinstance(index, VaultIndex)
    with indexed(root) as index:
        assert index.refresh().read_count == 0
        assert find(index, "number17") == first


def test_damaged_index_is_rebuilt_with_reason(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    file = tmp_path / "own" / "index.db"
    with indexed(root, file):
        pass
    spoil(file)
    index = VaultIndex(file, vault=root, open_readers=make_source_opener(root))
    try:
        report = index.refresh()
        assert report.rebuild_reason is not None
        assert "damaged" in report.rebuild_reason
        assert report.read_count == len(NOTES)
        assert paths(index, "number17") == ["017.md"]
        assert index.refresh().rebuild_reason is None
    finally:
        index.close()


def test_damage_found_while_searching_is_repaired(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    with indexed(root) as index:
        # The words of an index are in tables of their own; nothing is wrong with the pages of this file.
        index._file.execute("DELETE FROM chunks_data WHERE id > 10")
        assert paths(index, "number17") == ["017.md"]
        assert index.refresh().rebuild_reason is not None


def test_index_is_rebuilt_on_request(tmp_path: Path) -> None:
    with indexed(write(tmp_path / "v", NOTES)) as index:
        report = index.refresh(rebuild=True, only_paths=["000.md"])
        assert (report.read_count, report.rebuild_reason) == (len(NOTES), "it was asked for")
