"""State: which blocks stand in a prompt. It is looked up there each time, so that no flag can be wrong."""

from collections.abc import Mapping
from typing import NamedTuple

from lamella.core.artifacts.model import Kind
from lamella.core.prompt.prompt import Prompt
from lamella.core.text.content import hash_text
from lamella.engine.discourse import Discourse
from lamella.errors import CallError
from lamella.runners.kinds.blocks import ATTACHED, BLOCKS, PART, ChatKind, find_kind

# The flags of the documented state, by the block that each is about.
FLAGS: Mapping[ChatKind, str] = {
    ChatKind.FIX: "hasTerminalErrorInstructionsBeenGiven",
    ChatKind.CODEBASE: "hasCodebaseAnalysisInstructionsBeenGiven",
    ChatKind.REGULAR: "hasRegularChatInteractionInstructionsBeenGiven",
}
# As clients misspell it. It is read, and never written.
_MISSPELT = "hasRegularChatInteractionInstructionsBeenGives"
# All the blocks by their names: functions have no flag of their own in the documented state.
_GIVEN = "given"


class ChatState(NamedTuple):
    """The kinds whose blocks stand in a prompt, in one order."""

    given: tuple[str, ...] = ()

    @property
    def regular(self) -> bool:
        return ChatKind.REGULAR in self.given

    @property
    def codebase(self) -> bool:
        return ChatKind.CODEBASE in self.given

    @property
    def terminal_error(self) -> bool:
        return ChatKind.FIX in self.given

    def to_dict(self) -> dict[str, object]:
        """The state as clients keep it."""
        flags: dict[str, object] = {flag: kind in self.given for kind, flag in FLAGS.items()}
        return {**flags, _GIVEN: list(self.given)}


def find_state(chat: Discourse) -> ChatState:
    """Which blocks stand in the next prompt of a conversation, if that asks nothing else."""
    return read_state(chat.preview().envelope.prompt)


def read_state(prompt: Prompt) -> ChatState:
    """Which blocks stand in a prompt, whole and as they are today."""
    there = {ChatKind.REGULAR} if getattr(prompt.system, PART) == BLOCKS[ChatKind.REGULAR].text else set()
    standing = {
        one.artifact.source.path: one.artifact.hash
        for one in (*prompt.standing.values(), *prompt.shown[2])
        if one.artifact.kind is Kind.INSTRUCTION and one.in_full and one.place is not None
    }
    there |= {kind for kind in ATTACHED if standing.get(kind.value) == hash_text(BLOCKS[kind].text)}
    return make_state(there)


def make_state(kinds: set[ChatKind]) -> ChatState:
    """The state of these kinds."""
    return ChatState(tuple(kind.value for kind in ChatKind if kind in kinds))


def parse_state(given: object) -> ChatState:
    """The state that a client sends; of two spellings of a flag the right one counts."""
    if given is None:
        return ChatState()
    if not isinstance(given, Mapping):
        raise CallError("chatState is not an object.", hint="Send back the chatState of the last answer.")
    flags = {**({FLAGS[ChatKind.REGULAR]: given[_MISSPELT]} if _MISSPELT in given else {}), **given}
    flags.pop(_MISSPELT, None)
    named = flags.pop(_GIVEN, ())
    if not isinstance(named, list | tuple) or not all(isinstance(one, str) for one in named):
        raise CallError("chatState.given is not a list of kinds.", hint="Send back the chatState of the last answer.")
    kinds = {find_kind(one) for one in named}
    known = {flag: kind for kind, flag in FLAGS.items()}
    for flag, value in flags.items():
        if flag not in known:
            raise CallError(f"chatState has no flag {str(flag)[:60]!r}.", hint=f"It has: {', '.join(known)}.")
        if not isinstance(value, bool):
            raise CallError(
                f"chatState.{flag} is not true or false.", hint="Send back the chatState of the last answer."
            )
        kinds = kinds | {known[flag]} if value else kinds - {known[flag]}
    return make_state(kinds)
