"""Scripts: a kept conversation as it can be played again under other settings, and written as a transcript."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.make import default_title
from lamella.core.artifacts.model import Artifact
from lamella.core.log.branch import path_hashes, read_time, read_turns
from lamella.core.log.turn import PART_NAMES, SystemParts, Turn
from lamella.core.messages.rounds import ToolRound
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.ask import Ask
from lamella.engine.dialogue import Dialogue
from lamella.engine.keeping import Keeper
from lamella.engine.replay import Scripted, replay
from lamella.engine.stored import Configured, Desk
from lamella.engine.turn import TurnView
from lamella.errors import CallError
from lamella.ports import Sources

_BUDGET = ("window", "reserve", "warn", "target", "trigger", "hard")
_TERMS = ("layout", "carry_forward", "history", "history_turns", "image_notes")


class Script(Struct, frozen=True, kw_only=True):
    """A branch of a conversation: the settings that it goes on under, and its turns as asked and answered."""

    conversation: str
    settings: Mapping[str, object]
    turns: tuple[Scripted, ...]


def read_script(desk: Desk, conversation: str, head: str | None = None) -> Script:
    """A branch of a conversation in a store, by default the active one. Nothing is read from any vault."""
    log = Keeper(desk.store, desk.clock).load_log(conversation)
    if head is not None and head not in log.nodes:
        raise CallError(f"{conversation} has no message {head!r}.", hint=f"Its branches: {', '.join(log.branches())}.")
    told, configured = log.path(head), desk.configure(log.settings)
    hashes = path_hashes(told)
    contents = desk.store.read_contents(conversation, hashes) if hashes else {}
    turns = read_turns(told, contents, usual=configured.terms)
    before = SystemParts()
    scripted: list[Scripted] = []
    for turn, one in zip(turns, told, strict=True):
        scripted.append(_script(turn, read_time(one.message), before))
        before = before if turn.system is None else turn.system
    settings = {**_list_settings(configured, turns), **_keep(log.settings)}
    return Script(conversation=conversation, settings=settings, turns=tuple(scripted))


def play_script(desk: Desk, script: Script, given: Mapping[str, object] | None = None) -> Iterator[TurnView]:
    """Each turn as it would be sent under the script's settings, with those on top that are given.

    A model that is given holds for every turn.
    """
    configured = desk.configure({**script.settings, **(given or {})})
    dialogue = Dialogue(
        # Everything is in the script: notes as they were then, not as a vault has them now, and no model is asked.
        replace(desk.world, sources=Sources, summarizer=None),
        configured.rules,
        State(conversation=script.conversation, model=configured.model),
        terms=configured.terms,
        ledger=desk.ledger,
    )
    keeps_models = "model" not in (given or {})
    turns = (one if keeps_models else replace(one, asked=replace(one.asked, model=None)) for one in script.turns)
    return replay(dialogue, turns)


def write_script(script: Script) -> dict[str, object]:
    """A script as a transcript, in the names of docs/transcript.md."""
    return {
        "lamella": 1,
        "conversation": script.conversation,
        **script.settings,
        "turns": [_write_turn(turn) for turn in script.turns],
    }


def _keep(settings: Mapping[str, object]) -> dict[str, object]:
    """What no rule tells again: how the chain runs, as it was given."""
    return {name: settings[name] for name in ("compaction",) if name in settings}


def _list_settings(configured: Configured, turns: Sequence[Turn]) -> dict[str, object]:
    """What requests follow from, as it stands now: a transcript depends on nobody's settings."""
    # The terms are those of the last turn: what settings say by now may be something else.
    terms = turns[-1].terms if turns else configured.terms
    model = next((turn.model for turn in turns if turn.model), configured.model)
    named = {"model": model} | {name: getattr(configured.rules.budget, name) for name in _BUDGET}
    named |= {name: getattr(terms, name) for name in _TERMS}
    return {name: str(value) if isinstance(value, str) else value for name, value in named.items() if value is not None}


def _script(turn: Turn, at: datetime | None, before: SystemParts) -> Scripted:
    """A turn as it was asked, once its templates were expanded: what they named is attached."""
    asked = Ask(
        text=turn.text,
        attach=tuple(replace(artifact, condensed=None) for artifact in turn.attached),
        results=turn.results,
        system={} if turn.system is None else _list_changes(turn.system, before),
        tools=turn.tools,
        model=turn.model,
        drop=turn.drop,
        fold=turn.fold,
    )
    return Scripted(asked=asked, reply=turn.reply or "", at=at, rounds=turn.rounds)


def _list_changes(parts: SystemParts, before: SystemParts) -> dict[str, str]:
    """The parts that differ from those before; instructions stand as they were sent, with the notes drawn in."""
    return {name: getattr(parts, name) for name in PART_NAMES if getattr(parts, name) != getattr(before, name)}


def _write_turn(turn: Scripted) -> dict[str, object]:
    asked = turn.asked
    written: dict[str, object] = {
        "at": None if turn.at is None else turn.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "attach": [_write_attachment(one) for one in asked.attach if isinstance(one, Artifact)],
        "tools": [_write_result(result) for result in asked.results],
        "system": asked.system,
        "model": asked.model,
        "drop": list(asked.drop),
        "fold": asked.fold,
        "rounds": [_write_round(one) for one in turn.rounds],
        "reply": turn.reply,
    }
    kept = {name: value for name, value in written.items() if value}
    if asked.tools is not None:
        kept["tool_definitions"] = [
            {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
            for tool in asked.tools
        ]
    return {"user": asked.text, **kept}


def _write_attachment(artifact: Artifact) -> dict[str, object]:
    source, images = artifact.source, artifact.images
    known: dict[str, object] = {
        "path": source.path,
        "url": source.url,
        "query": source.query,
        "lines": None if source.lines is None else list(source.lines),
        "text": artifact.text,
        "data": b64encode(images[0].data).decode() if images else None,
        "media_type": images[0].media_type if images else None,
        "title": None if artifact.title == default_title(source) else artifact.title,
        "policy": None if artifact.policy is None else artifact.policy.value,
    }
    fields = (*KINDS[artifact.kind].fields, "title", "policy")
    return {"kind": artifact.kind.value, **{name: known[name] for name in fields if known.get(name) is not None}}


def _write_result(result: Artifact) -> dict[str, object]:
    arguments = json.loads(result.source.arguments or "{}")
    return {"name": result.source.tool, "arguments": arguments, "output": result.text}


def _write_round(one: ToolRound) -> dict[str, object]:
    return {
        "text": one.text,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": _read_arguments(call.arguments)} for call in one.calls
        ],
        "results": [
            {"call": given.call, "output": given.output, **({"failed": True} if given.failed else {})}
            for given in one.outputs
        ],
    }


def _read_arguments(arguments: str) -> dict[str, object]:
    """What a call was made with; a model may write what is no object, and a transcript has only those."""
    try:
        given = json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        given = arguments
    return given if isinstance(given, dict) else {"arguments": given}
