"""Scripts: a kept conversation as it can be played again under other settings, and written as a transcript."""

import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import asdict

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.make import default_title
from lamella.core.artifacts.model import Artifact
from lamella.core.log.branch import path_hashes, read_time, read_turns
from lamella.core.log.events.stage import StageEvent
from lamella.core.log.ids import round_result_id
from lamella.core.log.turn import PART_NAMES, RuleBook, SystemParts, Turn
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolRound, read_arguments
from lamella.core.prompt.state import State
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.engine.dialogue.reading.rules import write_rules
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.backend import Backend, ChatRules
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.lasting import keep_layout
from lamella.engine.replay import ScriptedTurn, replay
from lamella.engine.stages.memory import StagedDialogue
from lamella.errors import CallError

# What an attachment of any kind may say.
_ALWAYS = ("title", "policy", "outline", "anew")


class Script(Struct, frozen=True, kw_only=True):
    """A branch of a conversation: the settings that it goes on under, and its turns, each with when it was asked.

    ``stages`` is what was done about the stages of its work, each with how many messages came before it.
    """

    conversation: str
    name: str
    settings: Mapping[str, object]
    turns: tuple[tuple[Turn, datetime | None], ...]
    stages: tuple[tuple[int, StageEvent], ...] = ()


def read_script(backend: Backend, conversation: str, head: str | None = None) -> Script:
    """A branch of a conversation in a store, by default the active one. Nothing is read from any vault."""
    conversations = Conversations(backend.store, backend.clock)
    log, name = conversations.load_log(conversation), conversations.name_of(conversation)
    if head is not None and head not in log.nodes:
        raise CallError(f"{name} has no message {head!r}.", hint=f"Its branches: {', '.join(log.branches())}.")
    told, configured = log.path(head), keep_layout(backend.configure(log.settings), log)
    hashes = path_hashes(told)
    contents = backend.store.read_contents(conversation, hashes) if hashes else {}
    turns = read_turns(told, contents, usual=configured.terms)
    settings = {**_list_settings(configured, turns), **_keep(log.settings)}
    return Script(
        conversation=conversation,
        name=name,
        settings=settings,
        turns=tuple(zip(turns, map(read_time, [one.message for one in told]), strict=True)),
        stages=tuple(log.staged(told)),
    )


def play_script(backend: Backend, script: Script, given: Mapping[str, object] | None = None) -> Iterator[TurnView]:
    """Each turn as it would be sent under the script's settings, with those on top that are given.

    A model that is given holds for every turn.
    """
    configured = backend.configure({**script.settings, **(given or {})})
    dialogue = StagedDialogue(
        # Everything is in the script, and no model is asked for summaries.
        replace(backend.world, summarizer=None),
        configured.rules,
        State(conversation=script.conversation, model=configured.model),
        terms=configured.terms,
        ledger=backend.ledger,
    )
    return replay(dialogue, _walk(dialogue, script, keep_model="model" not in (given or {})))


def _walk(dialogue: StagedDialogue, script: Script, *, keep_model: bool) -> Iterator[ScriptedTurn]:
    """The turns one after the other; what was done about stages before one is done before it is asked."""
    staged = deque(script.stages)
    for number, (turn, at) in enumerate(script.turns):
        # Each turn before it has a question and an answer.
        while staged and staged[0][0] <= 2 * number:
            dialogue.repeat_stage(staged.popleft()[1])
        yield _script(turn, at, keep_model=keep_model)


def _script(turn: Turn, at: datetime | None, *, keep_model: bool) -> ScriptedTurn:
    asked = replace(
        turn,
        attached=tuple(replace(artifact, condensed=None) for artifact in turn.attached),
        model=turn.model if keep_model else None,
        strip=None,
        rounds=(),
        reply=None,
        reply_id=None,
    )
    return ScriptedTurn(asked=asked, reply=turn.reply or "", at=at, rounds=turn.rounds)


def write_script(script: Script) -> dict[str, object]:
    """A script as a transcript, in the names of docs/transcript.md."""
    before = SystemParts()
    turns: list[dict[str, object]] = []
    names: dict[str, str] = {}
    pinned: set[str] = set()
    rules = RuleBook()
    for number, (turn, at) in enumerate(script.turns, start=1):
        turns.append(_write_turn(turn, at, before))
        before = turn.system or before
        if turn.pinned is not None:
            # By numbers: the ids of a transcript that is played under another name are others.
            changed = {"pin": set(turn.pinned) - pinned, "unpin": pinned - set(turn.pinned)}
            turns[-1] |= {key: sorted(names.get(one, one) for one in some) for key, some in changed.items() if some}
            pinned = set(turn.pinned)
        if turn.rules is not None:
            turns[-1] |= write_rules(turn.rules, rules)
            rules = turn.rules
        names.update({turn.id or "": f"turn:{number}", turn.reply_id or "": f"reply:{number}"})
    return {"lamella": 1, "conversation": script.conversation, **script.settings, "turns": turns}


def _keep(settings: Mapping[str, object]) -> dict[str, object]:
    """What no rule tells again: how the chain runs, as it was given."""
    return {name: settings[name] for name in ("profile", "compaction") if name in settings}


def _list_settings(configured: ChatRules, turns: Sequence[Turn]) -> dict[str, object]:
    """What requests follow from, as it stands now: a transcript depends on nobody's settings."""
    # The terms are those of the last turn: what settings say by now may be something else.
    terms = turns[-1].terms if turns else configured.terms
    # The first turn names the model that a conversation began with. One that began with none moved to its first later.
    model = turns[0].model if any(turn.model for turn in turns) else configured.model
    named = {"model": model, **asdict(configured.rules.budget), **asdict(terms)}
    # They are told with how the chain runs.
    del named["cues"]
    return {name: str(value) if isinstance(value, str) else value for name, value in named.items() if value is not None}


def _write_turn(turn: Turn, at: datetime | None, before: SystemParts) -> dict[str, object]:
    """A turn as a transcript has it, once its templates were expanded: what they named is attached."""
    written: dict[str, object] = {
        "at": None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "attach": [_write_attachment(artifact) for artifact in turn.attached],
        "tools": [_write_result(result) for result in turn.results],
        "system": {} if turn.system is None else _list_changes(turn.system, before),
        "model": turn.model,
        "drop": list(turn.drop),
        "detach": list(turn.detach),
        # A history that was rewritten before a turn began an epoch, and a transcript says so by folding.
        "fold": turn.fold or (turn.rewritten is not None and not turn.unmoved),
        # What its braces named is attached; those that are left name nothing.
        "verbatim": "{" in turn.text,
        "rounds": [_write_round(turn, number, one) for number, one in enumerate(turn.rounds)],
        "reply": turn.reply,
    }
    kept = {name: value for name, value in written.items() if value}
    if turn.tools is not None:
        kept["tool_definitions"] = [
            {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
            for tool in turn.tools
        ]
    return {"user": turn.text, **kept}


def _list_changes(parts: SystemParts, before: SystemParts) -> dict[str, str]:
    """The parts that differ from those before; instructions stand as they were sent, with the notes drawn in."""
    return {name: getattr(parts, name) for name in PART_NAMES if getattr(parts, name) != getattr(before, name)}


def _write_attachment(artifact: Artifact) -> dict[str, object]:
    source, images = artifact.source, artifact.images
    known: dict[str, object] = {
        "path": source.path,
        "url": source.url,
        "query": source.query,
        "tag": source.query,
        "place": source.place,
        "lines": None if source.lines is None else list(source.lines),
        "text": _write_text(artifact.text),
        "data": b64encode(images[0].data).decode() if images else None,
        "media_type": images[0].media_type if images else None,
        "images": [{"data": b64encode(one.data).decode(), "media_type": one.media_type} for one in images] or None,
        "title": None if artifact.title == default_title(source) else artifact.title,
        "policy": None if artifact.policy is None else artifact.policy.value,
        "outline": artifact.outlined or None,
        "anew": artifact.anew or None,
    }
    fields = (*KINDS[artifact.kind].fields, *_ALWAYS)
    return {"kind": artifact.kind.value, **{name: known[name] for name in fields if known.get(name) is not None}}


def _write_text(text: str) -> str:
    """A content so that reading it gives the same: what reading takes away once is there once more."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + text.replace("\r\n", "\r\r\n")


def _write_result(result: Artifact) -> dict[str, object]:
    arguments = json.loads(result.source.arguments or "{}")
    return {"name": result.source.tool, "arguments": arguments, "output": _write_text(result.text)}


def _write_round(turn: Turn, number: int, one: ToolRound) -> dict[str, object]:
    calls = {call.id: call for call in one.calls}
    results: list[dict[str, object]] = []
    for at, given in enumerate(one.outputs):
        follows = round_result_id(
            turn.id or "", place=(number, at), call=calls[given.call], output=replace(given, id=None)
        )
        known: dict[str, object] = {"failed": given.failed, "id": None if given.id == follows else given.id}
        results.append(
            {"call": given.call, "output": given.output, **{name: one for name, one in known.items() if one}}
        )
    return {"text": one.text, "calls": [_write_call(call) for call in one.calls], "results": results}


def _write_call(call: ToolCall) -> dict[str, object]:
    """A call with its arguments as an object, and with the model's own bytes where the object would not give them."""
    arguments = read_arguments(call.arguments)
    written = {} if canonical_json(arguments) == call.arguments else {"written": call.arguments}
    return {"id": call.id, "name": call.name, "arguments": arguments, **written}
