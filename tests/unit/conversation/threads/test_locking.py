"""Locking: two threads never use one object at the same time, save to look at it."""

from threading import Event, RLock, Thread

from lamella.conversation.threads import synchronized


@synchronized(except_for=("look",))
class Door:
    """Lets one in at a time."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.inside = 0
        self.most = 0

    def enter(self, until: Event, *, again: bool = False) -> str:
        """Goes in, and stays."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        until.wait(0.02)
        self.inside -= 1
        return self.enter(until) if again else "done"

    def look(self) -> int:
        return self.inside


def test_lock_excludes_other_threads_and_is_reentrant() -> None:
    hints, never = Door(), Event()
    threads = [Thread(target=hints.enter, args=(never,), kwargs={"again": True}) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hints.most == 1
    assert hints.enter(never) == "done"


def test_unlocked_reads_do_not_wait() -> None:
    hints, leave = Door(), Event()
    with hints.lock:
        looked: list[int] = []
        looking = Thread(target=lambda: looked.append(hints.look()))
        looking.start()
        looking.join(30)
        assert looked == [0]
    assert hints.enter(leave) == "done"


def test_methods_keep_their_names_and_docstrings() -> None:
    assert Door.enter.__name__ == "enter"
    assert Door.enter.__doc__ == "Goes in, and stays."


def test_listed_property_waits_for_lock() -> None:
    @synchronized(except_for=(), properties=("reads",))
    class Room:
        def __init__(self) -> None:
            self.lock = RLock()

        @property
        def reads(self) -> str:
            return "read"

    room, read = Room(), list[str]()
    reading = Thread(target=lambda: read.append(room.reads))
    with room.lock:
        reading.start()
        reading.join(0.1)
        assert read == []
    reading.join(30)
    assert read == ["read"]
