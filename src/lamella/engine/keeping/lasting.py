"""What lasts: what the next turn of a stored conversation is asked under although it does not say so itself."""

from collections.abc import Callable, Mapping
from operator import attrgetter

from msgspec import convert

from lamella.core.log.events.changes import SettingsEvent
from lamella.core.log.events.codec import write_event
from lamella.core.log.events.message import NOTHING_SET, StoredSystem, TurnSetup, read_lasting
from lamella.core.log.log import Log
from lamella.core.log.records import Written
from lamella.core.log.terms import SecretRule
from lamella.core.log.turn import SystemParts
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask, repeat_system
from lamella.engine.keeping.backend import ChatRules
from lamella.engine.keeping.last_turn import find_layout
from lamella.errors import LamellaError

# Settings that give parts of the system prompt. A turn has them in its own words, so no event names them.
PART_SETTINGS = ("system", "instructions", "instructions_file")
_find_sampling = attrgetter("temperature", "reasoning_effort")
# From the one that lets most leave to the one that lets least.
_STRICTER = (SecretRule.OFF, SecretRule.WARN, SecretRule.REFUSE)


class ChatSettings:
    """The settings of one conversation: those that are written down, and those given since, which are ``changed``."""

    def __init__(self, configure: Callable[[Mapping[str, object]], ChatRules], given: Mapping[str, object]) -> None:
        self._configure = configure
        self.changed = dict(given)
        # Parts of the system prompt that somebody set: they are kept before a turn says them. Those that a conversation
        # is opened with are theirs to have who talk in it.
        self._parts: set[str] = set()
        # What was said of secrets here and now, which holds for as long as this is open.
        self._secrets = given.get("secrets")

    def read(self, log: Log) -> ChatRules:
        """What settings come to: as written down, with those on top that are not written down yet."""
        written = log.settings
        self.changed = {name: value for name, value in self.changed.items() if written.get(name) != value}
        self._rules = keep_layout(self._configure(self.listed(log)), log)
        if self._secrets is None:
            self._rules = _hold_secrets(self._rules, written.get("secrets"))
        return self._rules

    def listed(self, log: Log) -> dict[str, object]:
        """All of them by name."""
        # What an archive says of files to be read is somebody else's word.
        listed = {**_without_parts(log.settings), **self.changed}
        listed.pop("secrets", None)
        return listed if self._secrets is None else {**listed, "secrets": self._secrets}

    def set(self, settings: Mapping[str, object], log: Log) -> ChatRules:
        """What settings come to with these on top; if one of them is refused none is set."""
        before, secrets = self.changed, self._secrets
        self.changed, self._secrets = {**self.changed, **settings}, settings.get("secrets", self._secrets)
        try:
            rules = self.read(log)
        except LamellaError:
            self.changed, self._secrets = before, secrets
            raise
        self._parts |= set(PART_SETTINGS).intersection(settings)
        return rules

    def write(self, written: Written) -> Written:
        """What is written down, after the settings that were changed."""
        changed = _without_parts(self.changed)
        if not changed:
            return written
        settings = write_event(SettingsEvent(values=changed), at=written.records[0].at)
        return Written(records=(*settings.records, *written.records), contents=written.contents)

    @property
    def waits(self) -> bool:
        """Whether a part of the system prompt is kept for a turn that says it."""
        return not self._parts.isdisjoint(self.changed)

    def hold_waiting(self, left: TurnSetup, system: SystemParts, *, begins: bool) -> TurnSetup:
        """What holds for the next turn, with the parts that wait; else ``system`` is what the branch has."""
        if begins and left is NOTHING_SET:
            parts = self._rules.parts(PART_SETTINGS)
        else:
            parts = self.repeat(read_lasting(left)[0] or system)
        # Notes that instructions draw in are read when the turn is asked.
        stored = convert({**parts, "typed_instructions": parts.get("instructions", "")}, StoredSystem)
        return replace(left, system=stored)

    def note_written(self) -> None:
        """They were; what belongs to the system prompt still waits for a turn that says it."""
        self.changed = {name: value for name, value in self.changed.items() if name in PART_SETTINGS}

    def asks_otherwise(self, before: Prompt) -> bool:
        """Whether a question would be asked by now under another system prompt, temperature or effort than before."""
        if any(name in self.changed for name in PART_SETTINGS):
            return True
        return _find_sampling(before.terms) != _find_sampling(self._rules.terms)

    def hold(self, asked: Ask, left: TurnSetup, *, begins: bool) -> Ask:
        """What is asked, with the system prompt and the tools that hold although no turn of the branch says so.

        Where nothing was said yet settings give all of the prompt. Later a conversation keeps its own, but for what was
        set since.
        """
        if begins and left is NOTHING_SET:
            return replace(asked, system={**self._rules.parts(PART_SETTINGS), **asked.system})
        system, tools, _ = read_lasting(left)
        return replace(
            asked,
            system={**self.repeat(system), **asked.system},
            tools=tools if asked.tools is None else asked.tools,
            pinned=left.pinned,
            book=left.rules,
        )

    def repeat(self, system: SystemParts | None) -> dict[str, str]:
        """A system prompt that was given, asked for again, with the parts that were set since."""
        given = {} if system is None else repeat_system(system)
        names = [name for name in PART_SETTINGS if name in self.changed]
        return {**given, **self._rules.parts(names)} if names else given


def keep_layout(rules: ChatRules, log: Log) -> ChatRules:
    """The rules of a conversation that exists: where nobody chose a layout it keeps the one that it has."""
    if rules.lays_out or not log.nodes:
        return rules
    layout = find_layout(log)
    if layout in (None, rules.terms.layout):
        return rules
    return replace(rules, terms=replace(rules.terms, layout=layout))


def _hold_secrets(rules: ChatRules, written: object) -> ChatRules:
    """What is written down makes a conversation stricter than one's own settings, never laxer: anybody may have."""
    if written not in list(SecretRule):
        return rules
    stricter = max(SecretRule(str(written)), rules.rules.secrets, key=_STRICTER.index)
    return replace(rules, rules=replace(rules.rules, secrets=stricter))


def _without_parts(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in PART_SETTINGS}
