"""The folder of the cache: private, whole, bounded, and never in the way."""

import os
import stat
from multiprocessing import get_context
from pathlib import Path

from lamella.sources.converted_files import ConversionEntry, FileHashEntry, SizeLimitedCacheFolder


def files(root: Path) -> list[Path]:
    return sorted(root.glob("??/*"))


def test_cache_entry_is_found_by_other_process(tmp_path: Path) -> None:
    entry = ConversionEntry(key="url:https://e.org/", text="Größe", title="T", etag='"x"')
    SizeLimitedCacheFolder(tmp_path / "c", max_bytes=1_000_000).save(entry)
    other = SizeLimitedCacheFolder(tmp_path / "c", max_bytes=1_000_000)
    assert other.load(entry.key, ConversionEntry) == entry
    assert other.load("url:https://e.org/x", ConversionEntry) is None


def test_cache_files_are_private(tmp_path: Path) -> None:
    SizeLimitedCacheFolder(tmp_path / "c", max_bytes=1_000_000).save(ConversionEntry(key="a", text="secret"))
    (file,) = files(tmp_path / "c")
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (file, file.parent, tmp_path / "c")]
    assert modes == [0o600, 0o700, 0o700]


def test_entry_replaces_previous_one(tmp_path: Path) -> None:
    folder = SizeLimitedCacheFolder(tmp_path, max_bytes=1_000_000)
    for text in ("one", "two"):
        folder.save(ConversionEntry(key="a", text=text))
    found = folder.load("a", ConversionEntry)
    assert found is not None
    assert found.text == "two"
    assert len(files(tmp_path)) == 1


def test_damaged_or_outdated_entry_is_missing(tmp_path: Path) -> None:
    folder = SizeLimitedCacheFolder(tmp_path, max_bytes=1_000_000)
    folder.save(ConversionEntry(key="a", text="x"))
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    for data in (b"", whole[:-5], b"[" * 100_000, whole.replace(b'"schema":1', b'"schema":2'), b'{"key":"b"}', b"\xff"):
        file.write_bytes(data)
        assert folder.load("a", ConversionEntry) is None
    file.write_bytes(whole)
    assert folder.load("a", FileHashEntry) is None
    assert folder.load("a", ConversionEntry) is not None


def test_oldest_entries_are_evicted(tmp_path: Path) -> None:
    folder = SizeLimitedCacheFolder(tmp_path, max_bytes=5_000)
    for number in range(10):
        folder.save(ConversionEntry(key=f"{number}", text="x" * 1_000))
        for file in files(tmp_path):
            if file.stat().st_mtime > 100:
                os.utime(file, (number, number))
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 5_000
    assert folder.load("9", ConversionEntry) is not None
    assert folder.load("0", ConversionEntry) is None


def test_unwritable_cache_does_not_prevent_reading(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for root in (tmp_path / "file" / "c", Path("relative"), None):
        folder = SizeLimitedCacheFolder(root, max_bytes=1_000)
        folder.save(ConversionEntry(key="a", text="x"))
        assert folder.load("a", ConversionEntry) is None
    assert not Path("relative").exists()


def _write(root: str, name: str) -> None:
    folder = SizeLimitedCacheFolder(Path(root), max_bytes=50_000)
    for number in range(40):
        folder.save(ConversionEntry(key=f"{number % 4}", text=name * 1_000))


def test_concurrent_writers_never_leave_partial_entry(tmp_path: Path) -> None:
    context = get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path), name)) for name in "ab"]
    for writer in writers:
        writer.start()
    folder = SizeLimitedCacheFolder(tmp_path, max_bytes=50_000)
    while any(writer.is_alive() for writer in writers):
        found = folder.load("1", ConversionEntry)
        assert found is None or found.text in ("a" * 1_000, "b" * 1_000)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert all(file.suffix == ".json" for file in files(tmp_path))
