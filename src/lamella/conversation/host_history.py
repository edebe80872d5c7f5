"""Match the history that a client sends with a stored conversation.

Clients of the OpenAI and Anthropic APIs send their whole history with each request. ``group_into_turns`` parses it,
``find_history_position`` finds where it continues a conversation, and ``prepare_conversation`` brings the conversation
there. ``HistoryTailIndex`` recognises a conversation by its ending when the client has cut off the beginning.
``AnswerIds`` maps ids that clients get before the answer exists to the messages that the answers became.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from secrets import token_hex
from typing import NamedTuple

from lamella.attach import Attachment, Tool
from lamella.conversation.conversation import StoredConversation
from lamella.conversation.runs import with_start_event
from lamella.conversation.turn import BuiltTurn
from lamella.conversation.turn_runner import Event
from lamella.core.log.turn_records import TurnRecord, artifact_ids
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput
from lamella.core.text.content import canonical_json, hash_text
from lamella.errors import InvalidOperationError
from lamella.ports import Clock, SharedTable

_ANSWER_ID_BYTES = 8

# Clients may expect this retention: the provider whose API has such ids keeps them for 30 days.
_ANSWER_RETENTION = timedelta(days=30)


class AnswerIds:
    """Answer ids in the shared table of a store.

    A message id cannot be used: one question can have several answers, and their message ids are known only at the
    end.
    """

    def __init__(self, shared_table: SharedTable, *, clock: Clock) -> None:
        self._shared_table = shared_table
        self._clock = clock

    def remember_answer(self, answer_id: str, conversation: StoredConversation) -> None:
        """Record that the answer with this id is now the last message of a conversation."""
        at = self._clock.now()
        self._shared_table.set(
            _answer_key(answer_id),
            conversation.head,
            at=at,
            expires_at=at + _ANSWER_RETENTION,
            conversation_key=conversation.id,
        )

    def find_message(self, answer_id: str, conversation: StoredConversation) -> str | None:
        """Return the message to continue from after an answer, or None if the conversation does not have it.

        An answer that was stopped, or whose entry has expired, is found by the question id in front of the dot.
        """
        question, _, name = answer_id.partition(".")
        noted = (
            self._shared_table.get_many(_answer_key(name), at=self._clock.now()).get(_answer_key(name))
            if name
            else question
        )
        if noted is not None and conversation.has_message(noted):
            return noted
        if not question or not conversation.has_message(question):
            return None
        reply = conversation.get_turn(question).reply
        return question if reply is None else reply.id


def new_answer_id() -> str:
    """Return a new random answer id."""
    return token_hex(_ANSWER_ID_BYTES)


def _answer_key(answer_id: str) -> str:
    return f"answer:{answer_id}"


# Histories as clients send them, turn by turn.


class ClientToolRound(NamedTuple):
    """A tool round of a client: the model's text and calls, and the results of the client's tools."""

    text: str
    calls: tuple[ToolCall, ...]
    outputs: tuple[ToolOutput, ...]


class ClientTurn(NamedTuple):
    """A question with its attachments, tool rounds and reply; the reply of the current question is None."""

    question: str
    attach: tuple[Attachment, ...] = ()
    rounds: tuple[ClientToolRound, ...] = ()
    reply: str | None = None


class ClientRequest(NamedTuple):
    """A whole history, and how its last question is to be answered.

    ``settings`` are settings to store with the conversation. ``after_message`` is the answer to continue from, if the
    client names one instead of sending a history.
    """

    turns: tuple[ClientTurn, ...]
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    model: str | None = None
    max_tokens: int | None = None
    runner: str | None = None
    settings: Mapping[str, object] = {}
    after_message: str | None = None

    @property
    def past_turns(self) -> tuple[ClientTurn, ...]:
        """Return the turns before the current question."""
        return self.turns[:-1]

    @property
    def current_turn(self) -> ClientTurn:
        """Return the current question."""
        return self.turns[-1]


class ClientMessage(NamedTuple):
    """One message of a history; ``role`` is user, assistant or tool, and a tool message has ``outputs``."""

    role: str
    text: str = ""
    attach: tuple[Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()


def group_into_turns(messages: Sequence[ClientMessage]) -> tuple[ClientTurn, ...]:
    """Group messages into turns, joining consecutive messages of the user and of the assistant.

    Raises ``InvalidOperationError`` if the history does not start with the user, if it does not end with a question or
    a tool result, or if a tool call has no result.
    """
    turns: list[ClientTurn] = []
    for message in messages:
        if message.role == "user":
            _add_user(turns, message)
        elif not turns:
            raise InvalidOperationError(
                f"The history begins with a message of role {message.role}.", hint="Begin with the user."
            )
        elif message.role == "assistant":
            _add_assistant(turns, message)
        else:
            _add_outputs(turns, message)
    if not turns or turns[-1].reply is not None:
        raise InvalidOperationError(
            "The last message is no question and no result of a tool.", hint="End with the user's message."
        )
    if turns[-1].rounds and len(turns[-1].rounds[-1].outputs) < len(turns[-1].rounds[-1].calls):
        raise InvalidOperationError("Calls of tools wait for their results.", hint="Send a result for each call.")
    return tuple(turns)


def name_from_first_question(turns: Sequence[ClientTurn]) -> str:
    """Return the name of a conversation that is identified by its first question."""
    return f"host-{sha256(turns[0].question.strip().encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _add_user(turns: list[ClientTurn], message: ClientMessage) -> None:
    if turns and turns[-1].reply is None and not turns[-1].rounds:
        joined = "\n\n".join(filter(None, (turns[-1].question, message.text)))
        turns[-1] = turns[-1]._replace(question=joined, attach=(*turns[-1].attach, *message.attach))
        return
    if turns and turns[-1].reply is None:
        # The user wrote again after the tool results, before the model answered. That turn has an empty reply.
        turns[-1] = turns[-1]._replace(reply="")
    turns.append(ClientTurn(message.text, message.attach))


def _add_assistant(turns: list[ClientTurn], message: ClientMessage) -> None:
    last = turns[-1]
    if message.calls:
        turns[-1] = last._replace(rounds=(*last.rounds, ClientToolRound(message.text, message.calls, ())))
    else:
        turns[-1] = last._replace(reply=(last.reply or "") + message.text)


def _add_outputs(turns: list[ClientTurn], message: ClientMessage) -> None:
    last = turns[-1]
    called = {call.id for one in last.rounds[-1:] for call in one.calls}
    strange = [output.call for output in message.outputs if output.call not in called]
    if strange:
        raise InvalidOperationError(
            f"A result is for the call {strange[0][:80]}, which was not made.", hint="Name the call."
        )
    one = last.rounds[-1]
    turns[-1] = last._replace(rounds=(*last.rounds[:-1], one._replace(outputs=(*one.outputs, *message.outputs))))


# The position in a conversation, and how the client changed the history.


class ClientHistoryChange(StrEnum):
    """The way in which a client changed a known history."""

    NONE = "none"
    COMPACTED = "host_compacted"
    REWRITTEN = "host_rewrote"


class HistoryPosition(NamedTuple):
    """The last message that a history shares with a conversation.

    ``stored_turns`` is how many turns of the history are already stored at that point.
    """

    head: str
    stored_turns: int
    change: ClientHistoryChange = ClientHistoryChange.NONE


def find_history_position(conversation: StoredConversation, past: Sequence[ClientTurn]) -> HistoryPosition | None:
    """Return where a history continues, or None if no turn of it is known.

    A history that is known from its beginning continues after the last equal turn. A history that starts in the middle
    was shortened by its client: the conversation has all of it and continues at its end.
    """
    branches = (
        [conversation.turns(head) for head in (conversation.head, *reversed(conversation.branches()))]
        if conversation.head
        else []
    )
    if not past:
        return HistoryPosition("", 0)
    told, path = max(
        ((_count_equal_turns(path, past), path) for path in branches), key=lambda one: one[0], default=(0, ())
    )
    if told == len(past):
        return HistoryPosition(_last_message_id(path[told - 1]), told)
    for path in branches:
        if _has_same_ending(path, past):
            return HistoryPosition(_last_message_id(path[-1]), len(past), ClientHistoryChange.COMPACTED)
    if told:
        return HistoryPosition(_last_message_id(path[told - 1]), told, ClientHistoryChange.REWRITTEN)
    return None


def _count_equal_turns(path: Sequence[TurnRecord], past: Sequence[ClientTurn]) -> int:
    """Count the equal turns from the beginning."""
    count = 0
    for one, turn in zip(path, past, strict=False):
        if not _is_same_turn(one, turn):
            break
        count += 1
    return count


def _has_same_ending(path: Sequence[TurnRecord], past: Sequence[ClientTurn]) -> bool:
    """Return whether a history ends like a branch; it may begin with a later turn or with a summary."""
    return bool(path) and bool(past) and _is_same_turn(path[-1], past[-1]) and len(past) <= len(path)


def _is_same_turn(record: TurnRecord, turn: ClientTurn) -> bool:
    if record.reply is None or turn.reply is None:
        return False
    asked = turn.question.strip() in (record.message.text.strip(), record.message.typed.strip())
    return asked and record.reply.text.strip() == turn.reply.strip()


def _last_message_id(record: TurnRecord) -> str:
    return record.message.id if record.reply is None else record.reply.id


# Bring a conversation to that position, and send the last question.

# Sends the prepared turn on the event loop from which it is called.
SendEvents = Callable[[], AsyncGenerator[Event, None]]


def matches_history(conversation: StoredConversation, request: ClientRequest) -> bool:
    """Return whether a conversation that the client did not name can be the one its history describes."""
    if not conversation.head:
        return True
    if request.past_turns:
        return find_history_position(conversation, request.past_turns) is not None
    if request.current_turn.rounds:
        return _awaits_results(conversation, request, HistoryPosition("", 0))
    first = conversation.turns()[0]
    return first.message.typed.strip() == request.current_turn.question.strip() and _has_same_attachments(
        first, request.current_turn
    )


def prepare_conversation(
    conversation: StoredConversation, request: ClientRequest, *, is_named: bool
) -> tuple[SendEvents, ClientHistoryChange]:
    """Bring a conversation to the position of a history; return a function that sends, and what changed.

    Turns of the history that the store does not have are recorded as the client sent them. If the client ``is_named``
    the conversation and sent only a new question, the conversation continues at its last message. This function reads
    and writes the store.
    """
    if request.settings:
        conversation.set(**request.settings)
    place = _history_start(conversation, request, is_named=is_named)
    if _awaits_results(conversation, request, place):
        return _submit_tool_results(conversation, request), place.change
    if not place.head and conversation.head:
        return _regenerate_first(conversation, request), place.change
    if place.head != conversation.head:
        conversation.fork(place.head)
    for turn in request.past_turns[place.stored_turns :]:
        _record_client_turn(conversation, turn, request)
    if request.current_turn.rounds:
        waits = _record_client_rounds(conversation, request.current_turn, request)
        return _make_sender(conversation, waits, request), place.change
    return lambda: _ask_current_question(conversation, request), place.change


def _history_start(conversation: StoredConversation, request: ClientRequest, *, is_named: bool) -> HistoryPosition:
    if request.after_message is not None and conversation.has_message(request.after_message):
        return HistoryPosition(request.after_message, 0)
    if is_named and not request.past_turns:
        open_one = conversation.turns()[-1:] if conversation.head and request.current_turn.rounds else ()
        return HistoryPosition(open_one[0].message.parent if open_one else conversation.head, 0)
    # The client named the conversation but sent a different history: keep the stored messages and continue after them.
    return find_history_position(conversation, request.past_turns) or HistoryPosition(
        conversation.head,
        len(request.past_turns) if conversation.head else 0,
        ClientHistoryChange.REWRITTEN if conversation.head else ClientHistoryChange.NONE,
    )


def _awaits_results(conversation: StoredConversation, request: ClientRequest, position: HistoryPosition) -> bool:
    """Return whether the last stored question waits for exactly the tool results that the client sent."""
    last = conversation.turns()[-1:] if conversation.head else ()
    pending = last[0].pending_round if last else None
    if pending is None or not request.current_turn.rounds:
        return False
    brought = {output.call for output in request.current_turn.rounds[-1].outputs}
    stands = position.head in (last[0].message.parent, last[0].message.id)
    return stands and {call.id for call in pending.calls} == brought


def _submit_tool_results(conversation: StoredConversation, request: ClientRequest) -> SendEvents:
    return _make_sender(
        conversation, conversation.submit_tool_outputs(request.current_turn.rounds[-1].outputs), request
    )


def _regenerate_first(conversation: StoredConversation, request: ClientRequest) -> SendEvents:
    """Ask the first question again, on a new branch beside the earlier answer."""
    first = conversation.turns()[0].message.id
    return _make_sender(conversation, conversation.regenerate(first, model=request.model), request)


def _make_sender(conversation: StoredConversation, turn: BuiltTurn, request: ClientRequest) -> SendEvents:
    """Return a function that sends a recorded turn; the client runs the calls of its tools."""
    tools = request.tools if request.tools is not None else conversation.offered_tools(turn)
    return lambda: with_start_event(turn, conversation.send(turn, tools=tools, max_tokens=request.max_tokens))


def _ask_current_question(conversation: StoredConversation, request: ClientRequest) -> AsyncGenerator[Event, None]:
    return conversation.send(
        request.current_turn.question,
        attach=request.current_turn.attach,
        tools=request.tools,
        system=request.system,
        model=request.model,
        runner=request.runner,
        max_tokens=request.max_tokens,
    )


def _record_client_turn(conversation: StoredConversation, turn: ClientTurn, request: ClientRequest) -> None:
    """Record a turn as the client sent it; no model is called."""
    if turn.rounds:
        _record_client_rounds(conversation, turn, request)
    else:
        _record_question(conversation, turn, request)
    conversation.reply(turn.reply or "")


def _record_client_rounds(conversation: StoredConversation, turn: ClientTurn, request: ClientRequest) -> BuiltTurn:
    waits = _record_question(conversation, turn, request)
    for one in turn.rounds:
        conversation.reply(_reply_with_calls(one))
        waits = conversation.submit_tool_outputs(one.outputs)
    return waits


def _record_question(conversation: StoredConversation, turn: ClientTurn, request: ClientRequest) -> BuiltTurn:
    return conversation.ask(
        turn.question, attach=turn.attach, tools=request.tools, system=request.system, model=request.model
    )


def _reply_with_calls(tool_round: ClientToolRound) -> ModelReply:
    return ModelReply(text=tool_round.text, stop=StopReason.TOOL_CALLS, calls=tool_round.calls)


def _has_same_attachments(record: TurnRecord, turn: ClientTurn) -> bool:
    named: Sequence[str] = [str(getattr(one, "path", None) or getattr(one, "url", None) or "") for one in turn.attach]
    return set(filter(None, named)) <= set(artifact_ids(record.message))


# A shorter ending, in characters, can occur in several conversations; then earlier turns are added to it.
_MIN_TAIL_CHARS = 80
_MAX_TAIL_TURNS = 4
_TAIL_RETENTION = timedelta(days=7)


class HistoryTailIndex:
    """The endings of an owner's conversations in the shared table of a store, by hash."""

    def __init__(self, shared_table: SharedTable, *, clock: Clock, owner: str) -> None:
        self._shared_table = shared_table
        self._clock = clock
        self._owner = owner

    def find_conversation(self, past: Sequence[ClientTurn]) -> str | None:
        """Return the key of the conversation with the same ending, or None if that cannot be determined."""
        name = self._tail_hash(_list_exchanges(past))
        return None if name is None else self._shared_table.get_many(name, at=self._clock.now()).get(name)

    def update_tail(self, past: Sequence[ClientTurn], question: str, reply: str, *, conversation_key: str) -> None:
        """Record the new ending of a conversation and remove its previous one."""
        said = _list_exchanges(past)
        before = self._tail_hash(said)
        if before is not None:
            self._shared_table.remove(before)
        name, at = self._tail_hash([*said, (question, reply)]), self._clock.now()
        if name is not None:
            self._shared_table.set(
                name, conversation_key, at=at, expires_at=at + _TAIL_RETENTION, conversation_key=conversation_key
            )

    def _tail_hash(self, exchanges: Sequence[tuple[str, str]]) -> str | None:
        """Return the key of an ending: as few of the last turns as identify it, or None if they do not."""
        told: list[str] = []
        for asked, reply in reversed(exchanges[-_MAX_TAIL_TURNS:]):
            said = [asked.strip(), reply.strip()]
            if not all(said):
                return None
            told = [*said, *told]
            if sum(map(len, told)) >= _MIN_TAIL_CHARS:
                return f"tail:{self._owner}:{hash_text(canonical_json(told))}"
        return None


def _list_exchanges(past: Sequence[ClientTurn]) -> list[tuple[str, str]]:
    return [(turn.question, turn.reply or "") for turn in past]
