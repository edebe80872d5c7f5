"""Talk: what is sent goes to the model and its answer to the screen; what fails is told, and the talk goes on."""

from asyncio import Runner
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime

from lamella import Turn
from lamella.engine.checks import check_text
from lamella.engine.cold import ColdCache
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.dialogue.reading.working_set import follow_given, list_given
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.events import Event
from lamella.engine.sending.job import USUAL_RUNNER
from lamella.errors import ConflictError, LamellaError
from lamella.faces.cli.access import name_command
from lamella.faces.cli.chat.attaching import attach_active, attach_named
from lamella.faces.cli.chat.commands.working_set import (
    is_sticky,
    list_attached,
    list_droppable,
    list_held,
    list_pinnable,
    list_pinned,
    name_waiting,
    tell_names,
    tell_waiting,
)
from lamella.faces.cli.chat.opening import OpenChat, find_waiting, greet
from lamella.faces.cli.chat.output import Output, follow
from lamella.faces.cli.chat.status import tell_end, tell_standing
from lamella.faces.cli.chat.strata import print_strata
from lamella.faces.cli.chat.warmup import Warmup
from lamella.faces.cli.tables.cold import tell_cold
from lamella.faces.cli.tables.workflow import tell_stage
from lamella.faces.cli.terminal.door import ChatDoor
from lamella.faces.cli.terminal.failures import print_failure, word_failure
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.views.outcomes import view_outcome
from lamella.wiring import Configuration, NamedFiles


class TerminalChat:
    """One conversation. What its next message takes along waits in the store. ``failed``: the last has no answer.

    ``by_hand`` says that someone types: there is time to read ahead, and Ctrl-C stops an answer, not the talk.
    """

    def __init__(
        self, opened: OpenChat, runner: Runner, *, output: Output, files: NamedFiles, strata: bool, by_hand: bool
    ) -> None:
        self._opened = opened
        self._runner = runner
        self._output = output
        self._warmup = Warmup(opened, runner)
        self._by_hand = by_hand
        self._wished: str | None = None
        self.files = files
        self.strata = strata
        # The note that is open in an editor: it goes with every message, and so do the pictures it embeds.
        self.active = ""
        # Files outside of any vault that were sent in this sitting. In a later one the same path may be another file.
        self._loose: dict[str, None] = {}
        self.failed = False
        # What was found last of a cache that lapses, and when: by the conversation and how many events it had.
        self._cold: tuple[tuple[str, int], ColdCache | None] | None = None

    @property
    def opened(self) -> OpenChat:
        return self._opened

    @property
    def stored(self) -> StoredChat:
        return self._opened.stored

    def configured(self) -> Configuration:
        """The settings of this conversation, each with where it was found."""
        return self._opened.configure(self.stored.settings)

    @property
    def model(self) -> str:
        """The model that the next message goes to."""
        return self._wished or self.stored.model_for(Ask(text=""))

    @property
    def shown_by(self) -> str:
        """The command that shows what was said here, with its ids."""
        return name_command("chats show", self.stored.name, store=self._opened.store)

    def introduce(self) -> None:
        """Say which conversation this is, and what was said in it last."""
        greet(self._opened)
        stored = self.stored
        body = view_outcome(stored.id, stored.name, model=self._opened.model, turns=len(stored.turns()))
        self._output.report("opened", body)

    def go_on_in(self, opened: OpenChat) -> None:
        """Go on in another conversation; what waits for the next message of this one waits there."""
        self._wished = None
        self._turn_to(opened)

    def choose_model(self, model: str) -> None:
        """Have another model asked from the next message on; what waits for that goes with it."""
        self._turn_to(self._opened.choose_model(model))
        # A branch that was left for another has the model it was asked with, whatever settings say.
        self._wished = model

    def _turn_to(self, opened: OpenChat) -> None:
        self.leave()
        self._warmup = Warmup(opened, self._runner)
        self._opened = opened

    def say(self, text: str) -> None:
        """Send a message, with what waits for it and what it names."""
        self.failed = True
        try:
            asked = self._ask(text, say=True)
            events = self._opened.run(asked, model=self.stored.model_for(asked))
            self._loose |= dict.fromkeys(list_given(asked.attach))
            self._follow(events)
        except LamellaError as error:
            self.tell_failure(error)

    def say_instead(self, message: str, text: str) -> None:
        """Ask a text in place of a question, with the same attachments; the old branch stays."""
        self.failed = True
        turn = self.stored.edit(message, check_text(text, "the message"), model=self._wished)
        self._follow(self._opened.run(turn))

    def foresee(self, text: str) -> Turn:
        """What a message would send, with what waits for it and what it names."""
        return self._opened.preview(self._ask(text))

    def say_again(self, message: str | None = None) -> None:
        """Have a question answered again by the model that the status line names.

        The old answer stays on its branch, and in use if none comes.
        """
        self.failed = True
        before = self.stored.head
        turn = self.stored.regenerate(message, model=self.model)
        try:
            self._follow(self._opened.run(turn))
        finally:
            if self.stored.turns()[-1].reply is None and self.stored.head != before:
                self.stored.switch(before)

    def go_on(self) -> None:
        """Have the question answered that was left without an answer, from where it was left."""
        self.failed = True
        self._follow(self._opened.run(find_waiting(self.stored)))

    def tell_failure(self, error: LamellaError) -> None:
        """Two lines, as every failure is told; where somebody else wrote first, that is loaded."""
        if isinstance(error, ConflictError):
            self.stored.reload()
        door = ChatDoor(self._opened.store)
        print_failure(error, door, as_json=False)
        self._output.report("error", word_failure(error, door))

    def warm(self) -> None:
        """Have what waits for the next message read in, where the model can do that ahead."""
        if self._by_hand and self.stored.runner == USUAL_RUNNER:
            self._warmup.begin(self._ask(""))

    def wait(self) -> None:
        """Somebody is to type: what the cache holds is kept meanwhile, where settings say so."""
        if self._by_hand:
            self._warmup.keep()

    def wake(self) -> None:
        """Somebody has typed."""
        self._warmup.stop_keeping()

    def leave(self) -> None:
        """Leave whatever still goes on."""
        self.wake()
        self._warmup.end()

    def tell_meanwhile(self) -> str:
        """What goes on while a message is typed, and what that costs once the cache lapses."""
        told = (self._output.told if self._warmup.is_on else "", self._tell_cold(datetime.now(UTC)))
        return "".join(f" · {one}" for one in told if one)

    def _tell_cold(self, now: datetime) -> str:
        """Asked for twice a second: from when there is something to say it is weighed once, until something changes."""
        stored = self.stored
        known = self._cold
        if known is None or known[0] != (stored.id, stored.version) or known[1] is None:
            with suppress(LamellaError):
                self._cold = known = ((stored.id, stored.version), stored.cold(at=now))
        cold = None if known is None else known[1]
        if cold is not None and not cold.lapsed and now > cold.lapses_at:
            self._cold = None
        return tell_cold(cold, now=now, kept=stored.keep_alives)

    def tell_standing(self) -> str:
        """The status line."""
        return tell_standing(self.stored, self.model) + tell_waiting(self.stored)

    @property
    def sticks(self) -> bool:
        """Whether what is attached stays attached until it is detached."""
        return is_sticky(self.stored)

    def tell_attached(self) -> str:
        """The stage that is worked on and what stays attached, for the line that is typed in; nothing for neither."""
        work = self.stored.progress
        stage = "" if work is None else f"[{tell_stage(work)}] "
        return stage + (tell_names(list_held(self.stored)) if self.sticks else "")

    def complete(self, command: str) -> list[str]:
        """The names that a command takes of what is there; none for one that takes none."""
        match command:
            case "/detach":
                return [*name_waiting(self.stored.commands), *list_attached(self.stored)]
            case "/refresh":
                return list_attached(self.stored)
            case "/drop":
                return list_droppable(self.stored)
            case "/pin":
                return list_pinnable(self.stored)
            case "/unpin":
                return list_pinned(self.stored)
        return []

    def command(self, asked: Ask) -> Commands:
        """Have something done with the next message: it is written down at once. What is to be said of it is told."""
        self._loose |= dict.fromkeys(list_given(asked.attach))
        done = self.stored.command(asked)
        for line in done.said:
            tell(f"note: {show_line(line)}", err=True)
        return done

    def _ask(self, text: str, *, say: bool = False) -> Ask:
        """What a message asks for; files outside of a vault that changed since they were sent go along."""
        attach = [*attach_active(self.active, self.files), *attach_named(text, self.files)]
        asked = Ask(
            text=check_text(text, "the message"),
            attach=tuple(one.attachment() for one in attach),
            model=self._wished,
        )
        return self._bring_changed(asked, say=say) if self.sticks else asked

    def _bring_changed(self, asked: Ask, *, say: bool) -> Ask:
        """The same with files outside of a vault that changed since they were sent, which is said to those who send."""
        find, waits = self.files.find, self.stored.commands
        but = {*waits.detach, *waits.drop, *(one.id for one in waits.attach)}
        asked, told = follow_given(
            asked,
            self.stored.standing[0],
            self._loose,
            read=lambda path: [one.attachment() for one in find(path)],
            but=but,
        )
        for line in told if say else ():
            tell(f"note: {show_line(line)}", err=True)
        return asked

    def _follow(self, events: AsyncGenerator[Event, None]) -> None:
        """Show an answer."""
        try:
            turn = self._runner.run(follow(events, self._output))
        except KeyboardInterrupt:
            self._wished = None
            if not self._by_hand:
                # Nobody is there to go on: the messages that wait in the pipe were meant to follow an answer.
                raise
            self.failed = False
            tell(self._tell_stopped(), err=True)
            return
        self._wished = None
        self.failed = False
        if turn is None or not turn.ledger.calls:
            return
        self._output.report("done", self._opened.view_answer(turn))
        end = tell_end(turn.ledger.calls[-1])
        if end:
            tell(end, err=True)
        if self.strata:
            print_strata(turn, self._opened)

    def _tell_stopped(self) -> str:
        told = self.stored.turns()
        if told and told[-1].reply is not None:
            return "Stopped. What was said is kept; /retry asks again."
        if told and told[-1].open:
            return "Stopped between two rounds of tools. /resume goes on from there; another message gives that up."
        return "Stopped before a word came. The question is kept: /retry asks it again, another message leaves it."
