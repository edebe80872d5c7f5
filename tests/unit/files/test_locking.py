"""Locks: a second process waits."""

from pathlib import Path
from threading import Event, Thread

from lamella.files import file_lock


def test_second_locker_waits_for_first(tmp_path: Path) -> None:
    order: list[str] = []
    begun = Event()

    def second() -> None:
        begun.set()
        with file_lock(tmp_path / "lock"):
            order.append("second")

    with file_lock(tmp_path / "lock"):
        thread = Thread(target=second)
        thread.start()
        begun.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
