"""Commands between two turns: what is attached, detached, dropped, pinned or read anew before the next question.

A command is checked and read when it is given: what was attached then is what is sent.
"""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.artifacts.wanted import Wanted
from lamella.core.compaction.fitting import Rules
from lamella.core.log.terms import Terms
from lamella.core.log.turn import Turn
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.choosing import choose_notes, find_brought, stands_whole
from lamella.engine.dialogue.reading.pins import name_said
from lamella.engine.dialogue.reading.turns import TurnReader, list_newest, settle_policies
from lamella.engine.dialogue.reading.waiting import join_asks, tell_contradictions
from lamella.engine.dialogue.reading.working_set import (
    list_present,
    list_working_set,
    match_names,
    name_artifact,
    name_present,
    want_again,
)
from lamella.engine.dialogue.world import World
from lamella.errors import BadInputError, CallError
from lamella.ports import Sources

# In place of a name: all that there is.
EVERYTHING = ""
_LISTED = 8
_SAME = "{name} is as it was."
_GIVEN = "{name} was given as a text and is not read anew; attach it again."
_STAYS = "{name} stays as it is: {why}"
_ANEW = "{name} was read anew; its new text goes with the next turn."
# What answers a command and is over with it; the turn that comes later has nothing to say of it.
_ANSWERS = (_SAME, _GIVEN, _ANEW)


class CommandReader:
    """Reads what is asked for between two turns, in the state that they stand in and beside what waits already."""

    def __init__(self, world: World, rules: Rules, standing: tuple[State, Terms], *, waits: Ask) -> None:
        self._world = world
        self._rules = rules
        self._state, self._terms = standing
        self._waits = waits

    def read(self, asked: Ask) -> tuple[Ask, tuple[str, ...], tuple[str, ...]]:
        """What is to be done, by ids and with texts; what of that which waits is taken back; and words on all of it.

        The text of what is asked says which notes of a folder come first, if not all of them fit.
        """
        sources = self._world.sources()
        if EVERYTHING in asked.refresh:
            asked = replace(asked, refresh=self._list_refreshable())
        read, told = self._attach(asked, sources)
        detach, back = self._find_leaving(self._list_attached() if EVERYTHING in asked.detach else asked.detach)
        drop, more_back = self._find_dropped(asked.drop)
        pin = tuple(self._find_pinnable(name) for name in asked.pin)
        unpin = tuple(self._find_pinned(name) for name in asked.unpin)
        undone = self._find_undone(pin, unpin)
        pin, unpin = (tuple(name for name in names if name not in undone) for names in (pin, unpin))
        later = Ask(text="", earlier=read, detach=detach, drop=drop, pin=pin, unpin=unpin, warnings=self._keep(told))
        later = replace(later, rules=asked.rules, ended=asked.ended) if asked.rules or asked.ended else later
        back = (*back, *more_back, *undone)
        joined = join_asks(self._waits, later, back=back)
        names = name_present(self._state)
        return later, back, (*told, *tell_contradictions(self._waits, joined, later, names=names))

    def _attach(self, asked: Ask, sources: Sources) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
        anew, again, said = self._refresh(asked, sources) if asked.refresh else ((), (), [])
        question = asked.text or self._find_question()
        reader = TurnReader(sources, known=list_newest(self._state), question=question)
        given = settle_policies(reader.read_wanted(asked.attach), asked, self._state)
        read = (*anew, *self._read_again(again, reader, said), *given)
        others = {one.id for one in read}, {one.source.via for one in read if one.source.via is not None}
        waits = tuple(one for one in self._waits.earlier if one.id not in others[0] and one.source.via not in others[1])
        told = (*reader.warnings, *said, *dict.fromkeys(sources.told))
        turn = Turn(text="", attached=(*waits, *read), terms=self._terms, warnings=told)
        if any(one.source.via is not None for one in read):
            turn = choose_notes(turn, self._state, self._rules, rank=self._world.rank, question=question)
        waiting = {id(one) for one in waits}
        fresh = (one for one in turn.attached if id(one) not in waiting)
        # What was read anew and is as it was need not be attached once more.
        return tuple(one for one in fresh if not one.anew or not stands_whole(one, self._state)), turn.warnings

    def _read_again(self, folders: Sequence[Wanted], reader: TurnReader, said: list[str]) -> list[Artifact]:
        """The notes of folders and tags that are read anew; of one that cannot be read it is said."""
        read: list[Artifact] = []
        for one in folders:
            try:
                read += [replace(note, anew=True) for note in reader.read_wanted([one])]
            except BadInputError as error:
                said.append(_STAYS.format(name=one.name, why=error.message))
        return read

    def _find_question(self) -> str:
        """What was asked last: until something else is asked, that is what it is about."""
        last = self._state.last
        return "" if last is None else last.user.text

    def _refresh(self, asked: Ask, sources: Sources) -> tuple[tuple[Artifact, ...], tuple[Wanted, ...], list[str]]:
        """What has another text now, folders to be chosen from anew, and words on what is as it was or stays so."""
        there = self._list_known()
        changed: list[Artifact] = []
        folders: dict[str, Wanted] = {}
        told: list[str] = []
        by_id = {str(one.id): one for one in there}
        for name in dict.fromkeys(asked.refresh):
            found = self._match(name, there, what="known here", label="Known")
            known = by_id[found[0]]
            listed = find_brought(known.source.via or "")
            if listed is not None and (found != [name] or known.kind is listed[0]):
                folders[found[0]] = Wanted(kind=listed[0], name=listed[1])
                continue
            for one in found:
                now, said = _read_anew(by_id[one], sources)
                changed += [] if now is None else [now]
                told.append(said)
        return tuple(changed), tuple(folders.values()), told

    def _keep(self, told: Sequence[str]) -> tuple[str, ...]:
        """Those words that are said again with the turn."""
        names = {name for one in self._list_known() for name in (str(one.id), name_artifact(one))}
        over = {answer.format(name=name) for answer in _ANSWERS for name in names}
        return tuple(line for line in told if line not in over)

    def _list_known(self) -> list[Artifact]:
        """What waits, and what is known beside it."""
        waiting = {one.id: one for one in self._waits.earlier}
        return [*waiting.values(), *(one for one in list_present(self._state) if one.id not in waiting)]

    def _list_refreshable(self) -> tuple[str, ...]:
        """What refreshing everything means: what is attached now or with the next turn and was read somewhere.

        Folders and tags stand for the notes that came with them.
        """
        there = [*self._waits.earlier, *list_working_set(self._state, self._terms)]
        brings = [one.source.via for one in there if (one.source.via or "").startswith(("folder:", "tag:"))]
        alone = [one.id for one in there if one.source.read and one.source.via not in brings]
        return tuple(dict.fromkeys(name for name in (*brings, *alone) if name is not None))

    def _list_attached(self) -> tuple[str, ...]:
        """Everything that can be detached: the working set, and what waits to be in it."""
        there = [*self._waits.earlier, *list_working_set(self._state, self._terms)]
        return tuple(dict.fromkeys(one.id for one in there))

    def _find_leaving(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        there = list_working_set(self._state, self._terms)
        waiting = self._waits.earlier
        detach: dict[str, None] = {}
        back: dict[str, None] = {}
        for name in names:
            detach |= dict.fromkeys(match_names(name, there))
            back |= dict.fromkeys(match_names(name, waiting))
            self._match(name, [*waiting, *there], what="attached", label="Attached")
        return tuple(detach), tuple(back)

    def _find_dropped(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        present, waiting = list_present(self._state), self._waits.earlier
        free = {one.id for one in waiting if one.policy is Policy.FOLLOW}
        drop: dict[str, None] = {}
        back: dict[str, None] = {}
        for name in names:
            ids = match_names(name, present)
            if not ids and not match_names(name, waiting):
                free_now = [one for one in (*waiting, *present) if one.policy is not Policy.PIN]
                _refuse(f"{name} is not in the prompt.", "To drop", map(name_artifact, free_now))
            pinned = [one.id for one in present if one.id in ids and one.policy is Policy.PIN and one.id not in free]
            if pinned:
                raise _stays_pinned(pinned[0], waits=self._waits)
            drop |= dict.fromkeys(ids)
            back |= dict.fromkeys(match_names(name, waiting))
        return tuple(drop), tuple(back)

    def _find_pinnable(self, name: str) -> str:
        found = match_names(name, [*self._waits.earlier, *self._list_library()])
        if found:
            return found[0]
        said = name_said(self._state)
        if name not in said:
            told = f"{name} is not in the library, and no message of the prompt is called so."
            free = [one.id for one in (*self._waits.earlier, *self._list_library()) if one.policy is not Policy.PIN]
            _refuse(told, "To pin", [*free, "turn:1", "reply:1 and the like"])
        return said[name]

    def _find_pinned(self, name: str) -> str:
        said = name_said(self._state).get(name, name)
        artifacts = [one for one in (*self._waits.earlier, *self._list_library()) if one.policy is Policy.PIN]
        pinned = {*(one.id for one in artifacts), *self._waits.pin, *self._state.pinned}
        if said not in pinned:
            _refuse(f"{name} is not pinned.", "Pinned", sorted(pinned))
        return said

    def _find_undone(self, pin: Sequence[str], unpin: Sequence[str]) -> tuple[str, ...]:
        """What is let go before it was ever pinned, or pinned again before it was let go: nothing is left to do."""
        pinned = {*self._state.pinned, *(one.id for one in self._list_library() if one.policy is Policy.PIN)}
        return (
            *(name for name in unpin if name in self._waits.pin and name not in pinned),
            *(name for name in pin if name in self._waits.unpin and name in pinned),
        )

    def _list_library(self) -> list[Artifact]:
        return [entry.artifact for entry in self._state.library.values()]

    def _match(self, name: str, among: Sequence[Artifact], *, what: str, label: str) -> list[str]:
        found = match_names(name, among)
        if not found:
            _refuse(f"{name} is not {what}.", label, list(dict.fromkeys(map(name_artifact, among))))
        return found


def _stays_pinned(name: str, *, waits: Ask) -> CallError:
    if name not in waits.unpin:
        return CallError(f"{name} is pinned and stays.", hint="Unpin it first, then drop it.")
    # A turn that lets a pin go attaches what it held once more, so it cannot leave with the same turn.
    return CallError(
        f"{name} is unpinned with the next message, and not before.", hint="Once that is sent it can be dropped."
    )


def _read_anew(known: Artifact, sources: Sources) -> tuple[Artifact | None, str]:
    """What something says at its source now, none where that is what is known or cannot be had; and words on it."""
    wanted = replace(want_again(known), fresh=True)
    if not known.source.read or not wanted.name or known.kind is Kind.IMAGE:
        return None, _GIVEN.format(name=name_artifact(known))
    try:
        now = sources.read(wanted)
    except BadInputError as error:
        return None, _STAYS.format(name=known.id, why=error.message)
    if now.hash == known.hash:
        return None, _SAME.format(name=known.id)
    return replace(now, anew=True), _ANEW.format(name=known.id)


def _refuse(told: str, what: str, names: Iterable[str]) -> NoReturn:
    listed = list(dict.fromkeys(names))
    shown = ", ".join(listed[:_LISTED]) + f" and {len(listed) - _LISTED} more" * (len(listed) > _LISTED)
    raise CallError(told, hint=f"{what}: {shown}." if listed else f"{what}: nothing.")
