"""Wishes: what the next message brings along, and what leaves, stays whole or is let go with it.

Of two that contradict each other the later one holds, and says what becomes of the earlier.
"""

from collections.abc import Collection, Iterable, Sequence

from lamella.attach import Attachment
from lamella.engine.dialogue.reading.pins import name_said
from lamella.engine.dialogue.reading.working_set import list_present, match_names, name_wanted
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError
from lamella.faces.cli.chat.commands.working_set import (
    check_attached,
    check_pinnable,
    check_pinned,
    check_present,
    list_attached,
    list_pinned,
)
from lamella.faces.cli.terminal.lines import show_line


class Wishes:
    """``waiting`` is what the next message brings along, ``drop`` what leaves the prompt with it.

    ``detach`` is what leaves the working set, ``pins`` what stays whole from then on, ``unpins`` what is let go. Each
    wish gives the words that say what it does.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, list[Attachment]] = {}
        self.drop: list[str] = []
        self.detach: list[str] = []
        self.pins: list[str] = []
        self.unpins: list[str] = []

    def clear(self) -> None:
        """Nothing is wished for any more."""
        for wished in (self.waiting, self.drop, self.detach, self.pins, self.unpins):
            wished.clear()

    @property
    def leaving(self) -> list[str]:
        """What is out of the working set once the next message is sent."""
        return [*dict.fromkeys([*self.detach, *self.drop])]

    def attach(self, stored: StoredChat, name: str, found: Sequence[Attachment]) -> str:
        """Have it go along with the next message; then it neither leaves the prompt nor the working set."""
        self.waiting[name] = list(found)
        means = _mean_attached(stored, found)
        return _but(_withdraw(stored, means, (self.drop, "not dropped"), (self.detach, "not detached")))

    def drop_but(self, stored: StoredChat, named: Iterable[Attachment]) -> list[str]:
        """What leaves the prompt with a message that names this: what is meant there comes after what was wished."""
        means = _mean_attached(stored, named) if self.drop else set()
        return [name for name in self.drop if not _mean(stored, name) & means]

    def take_out(self, stored: StoredChat, name: str) -> str:
        """Have it detached with the next message, or not go along with it at all."""
        if name in self.waiting:
            del self.waiting[name]
            stays = name in list_attached(stored, but=self.leaving)
            more = "; it stays attached from before, and another /detach takes it out" if stays else ""
            return f"does not go with the next message{more}"
        check_attached(stored, name, waiting=self.waiting)
        self._refuse_unpinned(stored, name, "detached")
        self.detach = [*dict.fromkeys((*self.detach, name))]
        taken_back = _withdraw(stored, _mean(stored, name), (self.pins, "not pinned"))
        if _mean(stored, name) & _mean_all(stored, self.drop):
            return "is detached and dropped with the next message"
        return "is detached with the next message" + _but(taken_back) + "; /drop takes it out of the prompt as well"

    def take_all_out(self, stored: StoredChat) -> None:
        """Have everything detached with the next message, which does nothing else that was asked for."""
        self.clear()
        self.detach = list_attached(stored)

    def take_from_prompt(self, stored: StoredChat, name: str) -> str:
        """Have it leave the prompt with the next message."""
        self._refuse_unpinned(stored, name, "dropped")
        check_present(stored, name, waiting=self.waiting)
        self.drop = [*dict.fromkeys((*self.drop, name))]
        means = _mean(stored, name)
        taken_back = _withdraw(stored, means, (self.pins, "not pinned"))
        for waiting, found in list(self.waiting.items()):
            if means & _mean_attached(stored, found):
                del self.waiting[waiting]
                taken_back.append("not attached")
        return "leaves the prompt with the next message" + _but(taken_back)

    def pin(self, stored: StoredChat, name: str) -> str:
        """Have it stay whole from the next message on."""
        check_pinnable(stored, name)
        means = _mean(stored, name)
        taken_back = _withdraw(
            stored, means, (self.unpins, "not unpinned"), (self.drop, "not dropped"), (self.detach, "not detached")
        )
        if "not unpinned" not in taken_back:
            self.pins = [*dict.fromkeys((*self.pins, name))]
        return "stays whole in the prompt, from the next message on" + _but(taken_back)

    def unpin(self, stored: StoredChat, name: str) -> str:
        """Let it go again with the next message; what was to be pinned only then is not pinned at all."""
        check_pinned(stored, name, pins=self.pins)
        means = _mean(stored, name)
        taken_back = _withdraw(stored, means, (self.pins, "not pinned"))
        if not means & _mean_all(stored, list_pinned(stored)):
            return "is not pinned with the next message after all"
        taken_back += _withdraw(stored, means, (self.detach, "not detached"))
        self.unpins = [*dict.fromkeys((*self.unpins, name))]
        return "may be shortened or taken out again, from the next message on" + _but(taken_back)

    def _refuse_unpinned(self, stored: StoredChat, name: str, wished: str) -> None:
        """A pin is let go with the next message; until then it is stronger."""
        if _mean(stored, name) & _mean_all(stored, self.unpins):
            raise CallError(
                f"{show_line(name)} is unpinned with the next message, and not before.",
                hint=f"Once that is sent it can be {wished}.",
            )


def _mean(stored: StoredChat, name: str) -> set[str]:
    """What a name stands for: artifacts by their ids, a message by its own."""
    state = stored.standing[0]
    return set(match_names(name, list_present(state))) or {name_said(state).get(name, name)}


def _mean_all(stored: StoredChat, names: Collection[str]) -> set[str]:
    return {one for name in names for one in _mean(stored, name)}


def _mean_attached(stored: StoredChat, found: Iterable[Attachment]) -> set[str]:
    return _mean_all(stored, [name_wanted(wanted.attachment()) for wanted in found])


def _withdraw(stored: StoredChat, means: Collection[str], *wishes: tuple[list[str], str]) -> list[str]:
    """Take out of earlier wishes what they have of these, and give the words for those that had some."""
    found: list[str] = []
    for names, words in wishes:
        kept = [name for name in names if not _mean(stored, name) & set(means)]
        if len(kept) < len(names):
            names[:] = kept
            found.append(words)
    return found


def _but(taken_back: Sequence[str]) -> str:
    """Words on earlier wishes that do not hold any more."""
    return f", and is {' and '.join(dict.fromkeys(taken_back))} after all" if taken_back else ""
