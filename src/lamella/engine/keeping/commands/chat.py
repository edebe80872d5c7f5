"""A conversation in a store between two questions: each command is written down when it is given."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import RLock

from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.changes import ForkEvent, SettingsEvent
from lamella.core.log.events.codec import join_written, write_event
from lamella.core.log.log import Log
from lamella.core.log.nodes import name_messages
from lamella.core.log.records import Written
from lamella.core.prompt.state import State
from lamella.core.search.index import Passage
from lamella.core.search.passages import list_passages
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.library import LibraryRow, list_library
from lamella.engine.dialogue.reading.commands import CommandReader
from lamella.engine.dialogue.reading.secrets import Leaving, refuse_secrets
from lamella.engine.dialogue.reading.waiting import NOTHING_WAITS, Commands, describe_waiting, does_nothing, take_along
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.dialogue.world import World
from lamella.engine.keeping.backend import ChatRules
from lamella.engine.keeping.commands.events import list_command_hashes, read_commands, write_command
from lamella.engine.keeping.commands.telling import Said, write_said
from lamella.engine.keeping.counting import CountingBook
from lamella.engine.keeping.last_turn import find_runner
from lamella.engine.keeping.lasting import ChatSettings
from lamella.engine.locking import one_at_a_time
from lamella.engine.memory import MemoryWatch
from lamella.engine.sending.limits import TurnLimits
from lamella.errors import CallError

# The parts of L1 that a runner gives, which go with it.
RUNNER_PARTS = ("guidelines", "project")


@one_at_a_time(except_for=(), properties=("commands", "memory"))
class CommandedChat(ABC):
    """What a conversation in a store does between two questions: each command is written down when it is given."""

    lock: RLock
    _log: Log
    _book: CountingBook
    _world: World
    _configured: ChatRules
    _memory: MemoryWatch | None
    _settings: ChatSettings
    _read: tuple[Sequence[AttachmentEvent], Ask] | None = None

    @property
    def runner(self) -> str:
        """How questions are answered where they do not say, as settings say."""
        return self._configured.terms.runner

    @property
    def runner_before(self) -> str | None:
        """How the last question is answered; none where nothing was asked yet."""
        return find_runner(self._log)

    @property
    def limits(self) -> TurnLimits:
        """How far a turn may go, as settings say."""
        return self._configured.limits

    @property
    def window(self) -> int:
        """How many tokens fit, as settings say."""
        return self._configured.rules.budget.window

    @abstractmethod
    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    @abstractmethod
    def _running(self) -> Dialogue: ...

    @abstractmethod
    def _contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]: ...

    @abstractmethod
    def _moment(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _write(self, written: Written, *, title: str | None = None) -> None: ...

    @abstractmethod
    def _append(self, written: Written, *, title: str | None = None) -> None: ...

    @abstractmethod
    def _hold_stage(self, asked: Ask, state: State) -> Ask: ...

    def keep(self, *, at: datetime | None = None) -> None:
        """Write down what was set since, and that there is a conversation."""
        self._append(join_written(write_event(SettingsEvent(values={}), at=self._moment(at)), *self._list_waiting(at)))

    def _keep_waiting(self, at: datetime | None) -> None:
        """Write down the parts of the system prompt that wait for a turn: a branch that was gone to has its own."""
        waiting = self._list_waiting(at)
        if waiting:
            self._append(join_written(*waiting))

    def _list_waiting(self, at: datetime | None) -> list[Written]:
        if not self._settings.waits:
            return []
        head = self._log.head
        left = self._settings.hold_waiting(self._log.left, self._running().standing[0].system, begins=not head)
        return [write_event(ForkEvent(head=head, left=left), at=self._moment(at))]

    def _usual_model(self, dialogue: Dialogue) -> str | None:
        """The model that settings name, where the branch has none yet."""
        return self._configured.model if dialogue.model is None else None

    def has_message(self, message: str) -> bool:
        """Whether a message is anywhere in the conversation."""
        return message in self._log.nodes

    def command(self, asked: Ask, *, at: datetime | None = None) -> Commands:
        """Attach, detach, drop, pin, unpin or read anew, from the next question on; what waits for that after it.

        A conflict with another writer changes nothing: ``reload`` and do it again.
        """
        self._book.begin()
        reader = CommandReader(self._world, self._configured.rules, self._running().standing, waits=self._waits)
        later, back, said = reader.read(asked)
        if back or not does_nothing(later):
            self._append(write_command(later, back, at=self._moment(at)))
        return self._describe_commands(said)

    @property
    def commands(self) -> Commands:
        """What waits for the next question."""
        return self._describe_commands(self._waits.warnings)

    def add_turns(self, said: Sequence[Said], *, at: datetime | None = None) -> None:
        """Questions with their answers that were said elsewhere, after the last answer; nothing is sent."""
        if said:
            self._write(write_said(self._log, said, rules=self._configured, at=self._moment(at)))

    def library(self, *, at: datetime | None = None) -> Sequence[LibraryRow]:
        """Everything attached so far, as it stands in the next request of the active branch."""
        leaving = {*self._waits.detach, *self._waits.drop}
        return list_library(lambda asked: self.preview(asked, at=at), self._running().standing, leaving=leaving)

    def originals(self) -> Sequence[Passage]:
        """Everything said and attached on the active branch, word for word, whatever became of it in the prompt."""
        told = self._log.path()
        turns = read_turns(told, self._contents(path_hashes(told)), usual=self._configured.terms)
        return list_passages(turns, name_messages(told))

    def refuse_secrets(self, texts: Sequence[Leaving], *, model: str) -> None:
        """Raises where something that looks like a secret would leave in these texts, and settings refuse that."""
        refuse_secrets(texts, model=model, watch=self._world.secrets, rule=self._configured.rules.secrets)

    def _describe_commands(self, said: Sequence[str]) -> Commands:
        return describe_waiting(self._waits, self._configured.rules.measure.count, said=said)

    @property
    def _waits(self) -> Ask:
        """The same as it is asked. A terminal asks for it with every key, so it is read once."""
        events = self._log.commands
        if not events:
            return NOTHING_WAITS
        if self._read is None or self._read[0] is not events:
            self._read = (events, read_commands(events, self._contents(list_command_hashes(events))))
        return self._read[1]

    def _take_along(self, asked: Ask) -> Ask:
        """What is asked, with what waits for it, without what another runner brought, with the memory if it is due."""
        if self._log.commands:
            asked = take_along(self._waits, asked, self._running().standing[0])
        if self._log.stages:
            asked = self._hold_stage(asked, self._running().standing[0])
        if self._memory is not None:
            asked = self._memory.hold(asked, self._running().standing[0], self._configured.rules)
        if self.runner_before in (None, asked.runner or self.runner):
            return asked
        usual = self._configured.parts(("system",))
        parts = {name: usual.get(name, "") for name in RUNNER_PARTS}
        return replace(asked, system={**parts, **asked.system}, tools=() if asked.tools is None else asked.tools)

    def lets_move(self, asked: Ask, *, at: datetime | None = None) -> bool:
        """Whether asking this moves what was sent anyway, so that its tools may change with it. Nothing is fetched."""
        read = tuple(replace(one, fresh=False) if isinstance(one, Wanted) else one for one in asked.attach)
        ahead = self.preview(replace(asked, attach=read), at=at)
        return self._running().accounts.lets_move(ahead.envelope.prompt)

    def _take_up_memory(self, *, due: bool) -> None:
        if self._memory is not None:
            self._memory.is_due = due

    @property
    def memory(self) -> str:
        """The memory as the prompt has it."""
        return self._running().standing[0].system.memory

    def refresh_memory(self) -> str | None:
        """Have the memory taken up with the next question; what moves first by that, none if nothing does."""
        if self._memory is None:
            raise CallError("This conversation takes up no memory.", hint="Set memory to on, and open it again.")
        change = self._memory.find_change(self._running().standing[0], self._configured.rules)
        self._memory.is_due = True
        return change
