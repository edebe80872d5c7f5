"""Passages: everything said and attached on a branch as originals, and which of them a request still holds in full."""

from collections.abc import Iterator, Sequence

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.log.ids import Voice, round_result_id
from lamella.core.log.placement import Form
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.rounds import ToolRound
from lamella.core.prompt.layers.model import LayerId, Segment, SegmentKind
from lamella.core.prompt.layers.opening import read_wishes
from lamella.core.prompt.prompt import Prompt
from lamella.core.search.index import Passage
from lamella.core.text.content import hash_text

_HASH_DIGITS = 12
# What a picture is called that nobody gave a name.
_UNNAMED = "image"
# What a standing wish is called that was added by hand, and stands in no message.
_RULE = "rule"
_READABLE = (Form.FULL, Form.UPDATE)
_SAID = frozenset({Voice.USER.value, Voice.REPLY.value})


def list_passages(past: Sequence[Turn], path: Sequence[str], *, first: int = 1) -> tuple[Passage, ...]:
    """Every message, and every version of whatever came with one, in their order. What has no text is no passage.

    ``path`` is the ids of the messages, ``first`` the number of the first turn. A version that came with several turns
    is one passage, at the first of them.
    """
    names = iter(path)
    passages: dict[str, Passage] = {}
    for number, turn in enumerate(past, start=first):
        for passage in _of_turn(turn, names, place=f"turn {number}"):
            passages.setdefault(passage.id, passage)
    return tuple(passage for passage in passages.values() if passage.text)


def find_in_full(prompt: Prompt) -> frozenset[str]:
    """The ids of the passages whose text can be read off a request."""
    segments = [segment for layer in LayerId for segment in prompt.segments(layer)]
    segments += [standing.segment for standing in prompt.carried]
    drawn_in = [version_id(name, content) for segment in segments for name, content in segment.inlines]
    rules = [version_id(_RULE, hash_text(text)) for _, text in read_wishes(prompt.opening)[0]]
    return frozenset([*(_passage_id(segment) for segment in segments if segment.form in _READABLE), *drawn_in, *rules])


def version_id(artifact: str, content_hash: str) -> str:
    """The id of an artifact's passage: each version of it has its own."""
    return f"{artifact}@{content_hash.removeprefix('sha256:')[:_HASH_DIGITS]}"


def _of_turn(turn: Turn, names: Iterator[str], *, place: str) -> Iterator[Passage]:
    question = next(names)
    if turn.system is not None:
        yield from _of_system(turn.system, place=place, message=question)
    drawn_in = turn.system.inlined if turn.system is not None else ()
    for artifact in (*turn.results, *turn.attached, *drawn_in):
        yield Passage(
            id=version_id(artifact.id, artifact.hash),
            place=place,
            role=artifact.kind.value,
            title=_title(artifact),
            text=artifact.text or _describe_picture(artifact),
            message=question,
        )
    for _, text in () if turn.rules is None else turn.rules.added:
        name = version_id(_RULE, hash_text(text))
        yield Passage(id=name, place=place, role=Voice.USER.value, title=_RULE, text=text, message=question)
    yield _said(question, Voice.USER, turn.text, place=place)
    yield from _of_rounds(question, turn.rounds, place=place)
    if turn.reply is not None:
        yield _said(next(names), Voice.REPLY, turn.reply, place=place)


def _of_system(parts: SystemParts, *, place: str, message: str) -> Iterator[Passage]:
    """The parts of a system prompt, which another one may have taken the place of since."""
    for name, text in parts.named():
        name_of_version = version_id(name, hash_text(text))
        role = SegmentKind.SYSTEM.value
        yield Passage(id=name_of_version, place=place, role=role, title=name, text=text, message=message)


def _describe_picture(artifact: Artifact) -> str:
    """A picture that somebody gave a name, in words; its bytes are nothing to be read."""
    if not artifact.images or artifact.title == _UNNAMED:
        return ""
    sizes = [f"{image.width:,} by {image.height:,} pixels, {image.media_type}" for image in artifact.images]
    return f"A picture: {artifact.title} ({'; '.join(sizes)})"


def _of_rounds(question: str, rounds: Sequence[ToolRound], *, place: str) -> Iterator[Passage]:
    """What tools gave back in the rounds of a turn, each under the id that its line or stub names."""
    for number, one in enumerate(rounds):
        calls = {call.id: call for call in one.calls}
        for at, output in enumerate(one.outputs):
            call = calls[output.call]
            name = round_result_id(question, place=(number, at), call=call, output=output)
            yield Passage(
                id=version_id(name, hash_text(output.output)),
                place=place,
                role=Kind.TOOL.value,
                title=f"{name} {call.arguments}",
                text=output.output,
                message=question,
            )


def _said(name: str, role: Voice, text: str, *, place: str) -> Passage:
    # Receipts name messages by their ids, so that is what they can be found by as well.
    return Passage(id=name, place=place, role=role.value, title=name, text=text, message=name)


def _title(artifact: Artifact) -> str:
    """Its id, and what else it may be called: its title, or the arguments of the call."""
    more = artifact.source.arguments or "" if artifact.kind is Kind.TOOL else artifact.title
    return artifact.id if more in artifact.id else f"{artifact.id} {more}"


def _passage_id(segment: Segment) -> str:
    return segment.id if segment.kind in _SAID else version_id(segment.id, segment.hash)
