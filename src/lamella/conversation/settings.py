"""Settings of a stored conversation that apply to the next turn although no turn contains them."""

from collections.abc import Callable, Mapping
from operator import attrgetter

from msgspec import convert

from lamella.conversation.backend import ConversationSettings
from lamella.conversation.log import last_layout
from lamella.conversation.turn import TurnRequest, list_all_system_parts
from lamella.core.log.events.codec import build_event_batch
from lamella.core.log.events.kinds import EventBatch, SettingsEvent
from lamella.core.log.events.message import NO_OVERRIDES, StoredSystem, TurnOverrides, decode_overrides
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import SecretPolicy, SystemParts
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import replace
from lamella.errors import LamellaError

# Settings that define parts of the system prompt. A turn stores the resulting text, so no settings event names them.
SYSTEM_PART_SETTINGS = ("system", "instructions", "instructions_file")
_get_sampling = attrgetter("temperature", "reasoning_effort")
# From the most permissive policy to the strictest.
_POLICIES_BY_STRICTNESS = (SecretPolicy.OFF, SecretPolicy.WARN, SecretPolicy.REFUSE)


class SettingsOverrides:
    """The settings of one conversation: those in the log, and those in ``unsaved``, which are not written yet."""

    def __init__(
        self, resolve_settings: Callable[[Mapping[str, object]], ConversationSettings], overrides: Mapping[str, object]
    ) -> None:
        self._resolve_settings = resolve_settings
        self.unsaved = dict(overrides)
        # System prompt parts that were set explicitly: they are written even before a turn uses them. Parts that were
        # passed on opening are written only with the turn that uses them.
        self._pending_parts: set[str] = set()
        # The secret policy that was set on this object; it applies as long as the object is in use.
        self._secret_policy = overrides.get("secrets")

    def resolve(self, log: FoldedLog) -> ConversationSettings:
        """Resolve the settings: those in the log, overridden by those not written yet."""
        written = log.settings
        self.unsaved = {name: value for name, value in self.unsaved.items() if written.get(name) != value}
        self._rules = with_last_layout(self._resolve_settings(self.to_dict(log)), log)
        if self._secret_policy is None:
            self._rules = _apply_secret_policy(self._rules, written.get("secrets"))
        return self._rules

    def to_dict(self, log: FoldedLog) -> dict[str, object]:
        """Return all settings by name."""
        # Stored part settings are ignored: an imported archive must not decide which local files are read.
        listed = {**_without_system_settings(log.settings), **self.unsaved}
        listed.pop("secrets", None)
        return listed if self._secret_policy is None else {**listed, "secrets": self._secret_policy}

    def set(self, settings: Mapping[str, object], log: FoldedLog) -> ConversationSettings:
        """Add settings and return the resolved ones; if one of them is rejected, none is set."""
        before, secrets = self.unsaved, self._secret_policy
        self.unsaved, self._secret_policy = {**self.unsaved, **settings}, settings.get("secrets", self._secret_policy)
        try:
            rules = self.resolve(log)
        except LamellaError:
            self.unsaved, self._secret_policy = before, secrets
            raise
        self._pending_parts |= set(SYSTEM_PART_SETTINGS).intersection(settings)
        return rules

    def with_settings_event(self, batch: EventBatch) -> EventBatch:
        """Return the event batch with an event for changed settings in front."""
        changed = _without_system_settings(self.unsaved)
        if not changed:
            return batch
        settings = build_event_batch(SettingsEvent(values=changed), timestamp=batch.records[0].at)
        return EventBatch(records=(*settings.records, *batch.records), contents=batch.contents)

    @property
    def has_pending_system(self) -> bool:
        """Whether a system prompt part was set that no turn has used yet."""
        return not self._pending_parts.isdisjoint(self.unsaved)

    def with_changed_system_parts(
        self, overrides: TurnOverrides, changed: Mapping[str, str], system: SystemParts, *, is_first_turn: bool
    ) -> TurnOverrides:
        """Return the overrides for the next turn with the system prompt parts in ``changed``.

        ``system`` is the current system prompt of the branch.
        """
        if is_first_turn and overrides is NO_OVERRIDES:
            parts = {**self._rules.load_system_parts(SYSTEM_PART_SETTINGS), **changed}
        else:
            parts = {**list_all_system_parts(decode_overrides(overrides)[0] or system), **changed}
        # Notes that the instructions include are read when the turn is asked.
        stored = convert({**parts, "typed_instructions": parts.get("instructions", "")}, StoredSystem)
        return replace(overrides, system=stored, changed_parts=tuple(sorted(changed)))

    def mark_written(self) -> None:
        """Record that the changed settings are written; system prompt parts still wait for a turn that uses them."""
        self.unsaved = {name: value for name, value in self.unsaved.items() if name in SYSTEM_PART_SETTINGS}

    def system_or_sampling_changed(self, overrides: TurnOverrides, previous_prompt: Prompt) -> bool:
        """Return whether a repeated question would have another system prompt, temperature or effort."""
        if self.changed_system_parts(overrides):
            return True
        return _get_sampling(previous_prompt.turn_settings) != _get_sampling(self._rules.turn_settings)

    def apply_overrides(
        self, turn_request: TurnRequest, overrides: TurnOverrides, *, is_first_turn: bool
    ) -> TurnRequest:
        """Return the request with the system prompt and tools that apply although no turn contains them.

        In a new conversation the settings define the whole system prompt. An existing one keeps its own, except for
        parts that were set since.
        """
        if is_first_turn and overrides is NO_OVERRIDES:
            return replace(
                turn_request, system={**self._rules.load_system_parts(SYSTEM_PART_SETTINGS), **turn_request.system}
            )
        system, tools, _ = decode_overrides(overrides)
        given = {} if system is None else list_all_system_parts(system)
        return replace(
            turn_request,
            system={**given, **self.changed_system_parts(overrides), **turn_request.system},
            tools=tools if turn_request.tools is None else turn_request.tools,
            previously_pinned=overrides.pinned,
            rule_changes=overrides.rules,
        )

    def changed_system_parts(self, overrides: TurnOverrides) -> dict[str, str]:
        """Return the system prompt parts that were set since the last question, by name.

        ``overrides`` has those that are written already; they have the same effect as those that are not.
        """
        names = [name for name in SYSTEM_PART_SETTINGS if name in self.unsaved]
        written = _written_system_parts(overrides)
        return {**written, **self._rules.load_system_parts(names)} if names else written

    def system_parts_to_keep(self, overrides: TurnOverrides) -> dict[str, str]:
        """Return the changed system prompt parts without those that were only passed on opening."""
        return self.changed_system_parts(overrides) if self.has_pending_system else _written_system_parts(overrides)


def with_last_layout(settings: ConversationSettings, log: FoldedLog) -> ConversationSettings:
    """Return the settings with the last layout of an existing conversation, unless one was set explicitly."""
    if settings.has_explicit_layout or not log.nodes:
        return settings
    layout = last_layout(log)
    if layout in (None, settings.turn_settings.layout):
        return settings
    return replace(settings, turn_settings=replace(settings.turn_settings, layout=layout))


def _apply_secret_policy(settings: ConversationSettings, stored_policy: object) -> ConversationSettings:
    """Apply the secret policy from the log if it is stricter than the user's own.

    It never makes the policy more permissive, because the conversation may come from anyone.
    """
    if stored_policy not in list(SecretPolicy):
        return settings
    stricter = max(
        SecretPolicy(str(stored_policy)), settings.prompt_settings.secrets, key=_POLICIES_BY_STRICTNESS.index
    )
    return replace(settings, prompt_settings=replace(settings.prompt_settings, secrets=stricter))


def _written_system_parts(overrides: TurnOverrides) -> dict[str, str]:
    """Return the system prompt parts that were set since the last question and are written already."""
    system = decode_overrides(overrides)[0] if overrides.changed_parts else None
    texts = {} if system is None else list_all_system_parts(system)
    return {name: texts[name] for name in overrides.changed_parts if name in texts}


def _without_system_settings(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in SYSTEM_PART_SETTINGS}
