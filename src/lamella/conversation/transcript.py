"""Replay conversations turn by turn, and write stored ones as transcripts.

``replay`` yields each turn as it would be sent. ``load_script`` reads a branch of a stored conversation as a
``ConversationScript``, which ``replay_conversation_script`` replays under other settings. ``load_export_script`` reads
one to be written by ``script_to_transcript``. Nothing is read from a vault: the stored texts are used. The requests
that were sent are derived in ``sent_turns``.
"""

import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import asdict

from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.library import repeats_attachments_in_each_turn
from lamella.conversation.past_turns import is_skipped_round, reply_from_round
from lamella.conversation.prompt_builder import PromptBuilder
from lamella.conversation.rules import rule_changes_to_json
from lamella.conversation.sent_turns import load_sent_turns
from lamella.conversation.settings import with_last_layout
from lamella.conversation.turn import BuiltTurn, EarlierRequest, ModelAnswer, TurnRequest
from lamella.core.artifacts.kinds import KINDS, default_title, is_turn_only
from lamella.core.artifacts.model import Artifact
from lamella.core.log.branch import branch_content_hashes, parse_message_time, read_turns
from lamella.core.log.events.compaction import StageEvent
from lamella.core.log.turn import GIVEN_SYSTEM_PART_NAMES, RuleChanges, SystemParts, Turn, round_result_id
from lamella.core.messages import ToolCall, ToolRound, parse_arguments
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.core.workflow.session import build_session
from lamella.errors import InvalidOperationError, LamellaError


class ReplayTurn(Struct, frozen=True, kw_only=True):
    """A turn to replay: its request or the turn as it was read then, its time, tool rounds and reply."""

    turn_request: TurnRequest | Turn
    reply: str
    at: datetime | None
    rounds: tuple[ToolRound, ...] = ()


def replay(builder: PromptBuilder, turns: Iterable[ReplayTurn]) -> Iterator[BuiltTurn]:
    """Yield each turn as it would have been sent; a turn is not kept once the next one is requested."""
    for scripted in turns:
        yield _replay_turn(builder, scripted)
        builder.reply(scripted.reply)


def _replay_turn(builder: PromptBuilder, replay_turn: ReplayTurn) -> BuiltTurn:
    """Return the last request of a turn: the one after all tool rounds that were not skipped."""
    asked = replay_turn.turn_request
    # If the history was rewritten before the turn, that started a new epoch, and must do so again.
    rewritten = asked.history_rewrite if isinstance(asked, Turn) else None
    first = turn = builder.ask(asked, at=replay_turn.at, rewritten=rewritten)
    earlier: list[EarlierRequest] = []
    for one in replay_turn.rounds:
        reply = reply_from_round(one)
        recorded = builder.reply(ModelAnswer(reply=reply), at=replay_turn.at)
        # A script may use an id of an earlier round of the turn again; such a call was given another one.
        ids = {given.id: call.id for given, call in zip(one.calls, recorded.calls, strict=True)}
        outputs = [replace(output, call=ids.get(output.call, output.call)) for output in one.outputs]
        if is_skipped_round(one):
            builder.record_tool_outputs(outputs, at=replay_turn.at)
        else:
            earlier.append(turn.to_earlier_request())
            turn = builder.submit_tool_outputs(outputs, at=replay_turn.at)
    if turn is not first:
        # The prefix change of a turn is that of its first request; a compaction for any of its requests is the turn's.
        turn.turn_ledger.entry = replace(turn.ledger, prefix=first.prefix_change)
        turn = replace(turn, compaction=turn.compaction or first.compaction, earlier_requests=tuple(earlier))
    return turn


# Stored conversations as scripts.

# Fields that an attachment of any kind may have.
_COMMON_FIELDS = ("title", "policy", "outline", "anew")


class ConversationScript(Struct, frozen=True, kw_only=True):
    """A branch of a conversation: its current settings, and its turns with their times.

    ``stages`` are its stage events, each with the number of messages before it. ``differing_turns`` are the numbers of
    the turns whose requests a transcript cannot reproduce; only ``load_export_script`` finds them. ``learns_retention``
    says that the retention of attachments became 0 in some turn, and that a replay has to find out in the same turn.
    """

    conversation: str
    name: str
    settings: Mapping[str, object]
    turns: tuple[tuple[Turn, datetime | None], ...]
    stages: tuple[tuple[int, StageEvent], ...] = ()
    differing_turns: tuple[int, ...] = ()
    learns_retention: bool = False

    @property
    def models(self) -> set[str]:
        """The models that the turns name."""
        return {turn.model for turn, _ in self.turns if turn.model is not None}


def load_script(backend: Backend, conversation_key: str, head: str | None = None) -> ConversationScript:
    """Read a branch from a store, by default the active one; nothing is read from a vault."""
    conversations = ConversationRepository(backend.store, backend.clock)
    log, name = conversations.load_log(conversation_key), conversations.conversation_name(conversation_key)
    if head is not None and head not in log.nodes:
        raise InvalidOperationError(
            f"{name} has no message {head!r}.", hint=f"Its branches: {', '.join(log.list_branch_heads())}."
        )
    records, configured = log.branch_records(head), with_last_layout(backend.resolve_settings(log.settings), log)
    hashes = branch_content_hashes(records)
    contents = backend.store.read_contents(conversation_key, hashes) if hashes else {}
    turns = read_turns(records, contents, defaults=configured.turn_settings)
    settings = {**_list_settings(configured, turns), **_unresolved_settings(log.settings)}
    return ConversationScript(
        conversation=conversation_key,
        name=name,
        settings=settings,
        turns=tuple(zip(turns, map(parse_message_time, [one.message for one in records]), strict=True)),
        stages=tuple(log.stage_events(records)),
        learns_retention=_has_learned_retention(configured, turns),
    )


def load_export_script(backend: Backend, conversation_key: str, head: str | None = None) -> ConversationScript:
    """Read a branch to write it as a transcript, and find the turns that a transcript cannot reproduce."""
    script = load_script(backend, conversation_key, head)
    return replace(script, differing_turns=tuple(_find_differing_turns(backend, script, head)))


def _find_differing_turns(backend: Backend, script: ConversationScript, head: str | None) -> Iterator[int]:
    """Yield the numbers of turns for which a replay of the transcript gives other messages than were sent.

    The transcript itself is replayed: it has no place for much of what the script has, such as notes that instructions
    include, images inside other attachments, and the places where artifacts were put.
    """
    count, sent = load_sent_turns(backend, script.conversation, head)
    replayed = _replay_as_read_from_transcript(backend, script)
    drawn = False
    for number, turn in enumerate(sent, start=1):
        prompt = turn.envelope.prompt
        drawn |= bool(prompt.system.inlined) or any(one.images and one.kind != "image" for one in prompt.attached)
        again = next(replayed, None)
        if again is None:
            yield from range(number, count + 1)
            return
        same = again.messages == turn.messages
        if drawn or not same or (turn.check is not None and not turn.check.has_no_known_difference):
            yield number


def _replay_as_read_from_transcript(backend: Backend, script: ConversationScript) -> Iterator[BuiltTurn]:
    """Yield the turns of a script as a reader of its transcript gets them, up to the first that cannot be replayed."""
    with suppress(LamellaError):
        if backend.replay_transcript is None:
            yield from replay_conversation_script(backend, script)
        else:
            yield from backend.replay_transcript(script_to_transcript(script))


def replay_conversation_script(
    backend: Backend, script: ConversationScript, overrides: Mapping[str, object] | None = None
) -> Iterator[BuiltTurn]:
    """Yield each turn as it would be sent with the script's settings, overridden by the given ones.

    A given model is used for every turn.
    """
    configured = backend.resolve_settings({**script.settings, **(overrides or {})})
    builder = PromptBuilder(
        # The script contains everything, so no summary model is called.
        replace(backend.adapters, summarizer=None),
        configured.prompt_settings,
        PromptState(conversation=script.conversation, model=configured.model),
        turn_settings=configured.turn_settings,
        ledger=backend.keeps_ledger,
        learns_retention=configured.learns_retention and script.learns_retention,
    )
    return replay(builder, _iter_replay_turns(builder, script, keep_model="model" not in (overrides or {})))


def _iter_replay_turns(builder: PromptBuilder, script: ConversationScript, *, keep_model: bool) -> Iterator[ReplayTurn]:
    """Yield the turns in order; stage events before a turn are applied before it is asked."""
    remaining, applied = deque(script.stages), []
    for number, (turn, at) in enumerate(script.turns):
        # Every earlier turn has two messages, a question and an answer.
        while remaining and remaining[0][0] <= 2 * number:
            applied.append((2 * number, remaining.popleft()[1]))
        session = build_session(applied)
        if session is not None:
            builder.use_workflow_stages(session)
        yield _to_replay_turn(turn, at, keep_model=keep_model)


def _to_replay_turn(turn: Turn, at: datetime | None, *, keep_model: bool) -> ReplayTurn:
    asked = replace(
        turn,
        attached=tuple(replace(artifact, condensed=None) for artifact in turn.attached),
        model=turn.model if keep_model else None,
        history_summary=None,
        rounds=(),
        reply=None,
        reply_id=None,
    )
    return ReplayTurn(turn_request=asked, reply=turn.reply or "", at=at, rounds=turn.rounds)


def script_to_transcript(script: ConversationScript) -> dict[str, object]:
    """Return the script as a transcript, with the field names of docs/reference/formats/transcript.md."""
    before = SystemParts()
    turns: list[dict[str, object]] = []
    names: dict[str, str] = {}
    pinned: set[str] = set()
    rules = RuleChanges()
    for number, (turn, at) in enumerate(script.turns, start=1):
        turns.append(_turn_to_json(turn, at, before))
        before = turn.system or before
        if turn.pinned is not None:
            # Use turn numbers: message ids differ when the transcript is replayed under another conversation name.
            changed = {"pin": set(turn.pinned) - pinned, "unpin": pinned - set(turn.pinned)}
            turns[-1] |= {key: sorted(names.get(one, one) for one in some) for key, some in changed.items() if some}
            pinned = set(turn.pinned)
        if turn.rules is not None:
            turns[-1] |= rule_changes_to_json(turn.rules, rules)
            rules = turn.rules
        names.update({turn.id or "": f"turn:{number}", turn.reply_id or "": f"reply:{number}"})
    differing: dict[str, object] = {"differing_turns": list(script.differing_turns)} if script.differing_turns else {}
    learns = {"learns_retention": True} if script.learns_retention else {}
    return {"lamella": 1, "conversation": script.conversation, **script.settings, **learns, **differing, "turns": turns}


def _unresolved_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that cannot be derived from the resolved ones: compaction as it was given."""
    return {name: settings[name] for name in ("profile", "compaction") if name in settings}


def _list_settings(configured: ConversationSettings, turns: Sequence[Turn]) -> dict[str, object]:
    """Return the settings that requests depend on, so that a transcript needs no settings of its reader."""
    # Use the settings of the last turn: the configured ones may have changed since.
    turn_settings = turns[-1].turn_settings if turns else configured.turn_settings
    # The first turn has the initial model. A conversation that started without one got its first model later.
    model = turns[0].model if any(turn.model for turn in turns) else configured.model
    named = {"model": model, **asdict(configured.prompt_settings.budget), **asdict(turn_settings)}
    # The cues are part of the compaction setting.
    for internal in ("cues", "hidden_rules", "hidden_excerpts", "names_recall"):
        del named[internal]
    if _has_learned_retention(configured, turns):
        # A replay learns it again.
        del named["linger"]
    return {name: str(value) if isinstance(value, str) else value for name, value in named.items() if value is not None}


def _has_learned_retention(configured: ConversationSettings, turns: Sequence[Turn]) -> bool:
    """Return whether the retention of the turns became 0 where ``repeats_attachments_in_each_turn`` says so."""
    if not configured.learns_retention:
        return False
    retentions = [turn.turn_settings.linger for turn in turns]
    if 0 not in retentions or not retentions[0]:
        return False
    at = retentions.index(0)
    return not any(retentions[at:]) and repeats_attachments_in_each_turn(
        turns[at], lambda back: turns[at - back] if back <= at else None
    )


def _turn_to_json(turn: Turn, at: datetime | None, previous_system: SystemParts) -> dict[str, object]:
    """Return a turn in transcript form, with its templates expanded: the notes they named are attached."""
    written: dict[str, object] = {
        "at": None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "attach": [_attachment_to_json(artifact) for artifact in turn.attached],
        "tools": [_result_to_json(result) for result in turn.tool_results],
        "system": {} if turn.system is None else _changed_parts(turn.system, previous_system),
        "model": turn.model,
        "drop": list(turn.drop),
        "detach": list(turn.detach),
        # A rewritten history started a new epoch before the turn; a transcript expresses that as a fold.
        "fold": turn.fold or (turn.history_rewrite is not None and not turn.prefix_unchanged),
        # Template names were already replaced by attachments; any remaining braces are plain text.
        "verbatim": "{" in turn.text,
        "rounds": [_round_to_json(turn, number, one) for number, one in enumerate(turn.rounds)],
        "reply": turn.reply,
    }
    fields = {name: value for name, value in written.items() if value}
    if turn.tools is not None:
        fields["tool_definitions"] = [
            {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
            for tool in turn.tools
        ]
    return {"user": turn.text, **fields}


def _changed_parts(parts: SystemParts, previous_system: SystemParts) -> dict[str, str]:
    """Return the parts that differ from the previous turn, as they were sent, with embedded notes expanded."""
    return {
        name: getattr(parts, name)
        for name in GIVEN_SYSTEM_PART_NAMES
        if getattr(parts, name) != getattr(previous_system, name)
    }


def _attachment_to_json(artifact: Artifact) -> dict[str, object]:
    source, images = artifact.source, artifact.images
    known: dict[str, object] = {
        "path": source.path,
        "url": source.url,
        "query": source.query,
        "tag": source.query,
        "place": source.place,
        "turn_only": is_turn_only(artifact) or None,
        "lines": None if source.lines is None else list(source.lines),
        "text": _escape_content(artifact.text),
        "data": b64encode(images[0].data).decode() if images else None,
        "media_type": images[0].media_type if images else None,
        "images": [{"data": b64encode(one.data).decode(), "media_type": one.media_type} for one in images] or None,
        "title": None if artifact.title == default_title(source) else artifact.title,
        "policy": None if artifact.policy is None else artifact.policy.value,
        "outline": artifact.is_outlined or None,
        "anew": artifact.is_fresh or None,
    }
    fields = (*KINDS[artifact.kind].fields, *_COMMON_FIELDS)
    return {"kind": artifact.kind.value, **{name: known[name] for name in fields if known.get(name) is not None}}


def _escape_content(text: str) -> str:
    """Return a content so that reading the transcript gives the same text.

    Reading removes one byte order mark and one CR before LF, so both are doubled.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + text.replace("\r\n", "\r\r\n")


def _result_to_json(result: Artifact) -> dict[str, object]:
    arguments = json.loads(result.source.arguments or "{}")
    return {"name": result.source.tool, "arguments": arguments, "output": _escape_content(result.text)}


def _round_to_json(turn: Turn, number: int, tool_round: ToolRound) -> dict[str, object]:
    calls = {call.id: call for call in tool_round.calls}
    results: list[dict[str, object]] = []
    for at, given in enumerate(tool_round.outputs):
        follows = round_result_id(
            turn.id or "", position=(number, at), call=calls[given.call], output=replace(given, id=None)
        )
        known: dict[str, object] = {"failed": given.failed, "id": None if given.id == follows else given.id}
        results.append(
            {"call": given.call, "output": given.output, **{name: one for name, one in known.items() if one}}
        )
    return {"text": tool_round.text, "calls": [_call_to_json(call) for call in tool_round.calls], "results": results}


def _call_to_json(call: ToolCall) -> dict[str, object]:
    """Return a call with its arguments as an object, and with the original text if JSON would change it."""
    arguments = parse_arguments(call.arguments)
    written = {} if canonical_json(arguments) == call.arguments else {"written": call.arguments}
    return {"id": call.id, "name": call.name, "arguments": arguments, **written}
