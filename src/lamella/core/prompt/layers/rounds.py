"""Tool rounds: the model's calls and what came back, as messages of their turn, and the line that a call leaves."""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain

from lamella.core.budget.counting import Measure
from lamella.core.log.ids import round_result_id
from lamella.core.log.placement import Form
from lamella.core.messages.delta import NativeReply, ToolCall
from lamella.core.messages.model import Message, Role
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.prompt.layers.model import Segment, SegmentKind
from lamella.core.prompt.layers.strip import Said
from lamella.core.text.content import escape_line, hash_text
from lamella.core.values import replace

TOOL_KIND = "tool"
# Of what a result shows, the part that its end has: what failed often says so last.
_TAIL = 4


def build_rounds(
    turn: str, rounds: Sequence[ToolRound], measure: Measure, *, shown: int | None = None
) -> tuple[Said, ...]:
    """The messages of a turn's rounds, in order; ``turn`` is the id of the question that they belong to.

    ``shown`` is how many characters of a result stand in its message, by default all; the log has the rest.
    """
    built = (_build(turn, number, one, measure=measure, shown=shown) for number, one in enumerate(rounds))
    return tuple(chain.from_iterable(built))


def _build(turn: str, number: int, one: ToolRound, *, measure: Measure, shown: int | None) -> Iterator[Said]:
    called = "".join(render_call(call) for call in one.calls)
    text = f"{one.text}\n{called}" if one.text else called
    tokens = weigh_calls(text, one.carried, measure, counted=one.tokens)
    yield Said(
        message=Message(
            role=Role.ASSISTANT,
            pieces=(one.text,) if one.text else (),
            tokens=tokens,
            calls=one.calls,
            carried=one.carried,
        ),
        segment=Segment(
            id=f"call:{turn}:{number + 1}",
            kind=SegmentKind.CALL,
            form=Form.FULL,
            place=None,
            text=text,
            tokens=tokens,
            recoverable=True,
        ),
    )
    calls = {call.id: call for call in one.calls}
    for at, output in enumerate(one.outputs):
        name = round_result_id(turn, place=(number, at), call=calls[output.call], output=output)
        yield _result(name, output, measure, shown=shown)


def split_rounds(rounds: Iterable[Said]) -> list[tuple[Said, tuple[Said, ...]]]:
    """The messages of a turn's rounds, round by round: each answer that calls, with what came back."""
    split: list[tuple[Said, tuple[Said, ...]]] = []
    for said in rounds:
        if said.message.call is None:
            split.append((said, ()))
        else:
            calling, results = split[-1]
            split[-1] = (calling, (*results, said))
    return split


def weigh_calls(text: str, carried: NativeReply | None, measure: Measure, *, counted: int | None = None) -> int:
    """What an answer with calls weighs when it is handed back: in its provider's own form where there is one.

    That form may hold thoughts that are in no text. As JSON it is counted too high, signatures most of all, so it is
    no more than the provider ``counted`` when the model put it out.
    """
    said = measure.count(text) if text else 0
    if carried is None:
        return said
    whole = measure.count(carried.json)
    return max(said, whole if counted is None else min(whole, counted))


def _result(name: str, output: ToolOutput, measure: Measure, *, shown: int | None) -> Said:
    whole = output.output
    is_cut = shown is not None and len(whole) > shown
    text = cut_output(whole, name, shown=shown) if is_cut and shown is not None else whole
    tokens = measure.count(text)
    return Said(
        message=Message(
            role=Role.TOOL,
            pieces=(text,) if text else (),
            tokens=tokens,
            call=output.call,
            failed=output.failed,
        ),
        segment=Segment(
            id=name,
            kind=TOOL_KIND,
            form=Form.PREVIEW if is_cut else Form.FULL,
            place=None,
            text=text,
            tokens=tokens,
            recoverable=True,
            content=hash_text(text),
        ),
    )


def cut_output(text: str, name: str, *, shown: int) -> str:
    """The beginning and the end of what a tool gave, and between them how much more there is and how to read on."""
    tail = shown // _TAIL
    head = shown - tail
    more = (
        f"<left_out>{len(text) - shown:,} of {len(text):,} characters. To read on, recall {escape_line(name)} with "
        f"start {head}, or call the tool again for less.</left_out>"
    )
    return f"{text[:head]}\n{more}\n{text[len(text) - tail :]}"


def render_call(call: ToolCall) -> str:
    """A call on a line of its own, as it is counted and shown."""
    return f"{escape_line(call.name)}({escape_line(call.arguments)})\n"


def stub_result(said: Said, measure: Measure) -> Said:
    """A result as the words that say how to get it back; its message stays, since its call does."""
    more = "more than " if said.segment.form is Form.PREVIEW else ""
    size = f"{more}{len(said.segment.text):,} characters"
    name = escape_line(said.id)
    text = f"<left_out>{size} of output. Make the call again, or recall it by its id {name}.</left_out>\n"
    tokens = measure.count(text)
    return Said(
        message=replace(said.message, pieces=(text,), tokens=tokens, weights=()),
        segment=replace(said.segment, form=Form.HANDLE, text=text, tokens=tokens),
    )


def leave_rounds(
    rounds: Sequence[Said], names: Set[str], measure: Measure
) -> tuple[tuple[Said, ...], tuple[Said, ...]]:
    """The rounds of a turn without those whose calls are named, and those.

    The first result that stays begins with a line that says how many went.
    """
    split = split_rounds(rounds)
    left = [(calling, results) for calling, results in split if calling.id in names]
    stays = [(calling, results) for calling, results in split if calling.id not in names]
    if left and stays:
        calling, (first, *others) = stays[0]
        calls = sum(len(results) for _, results in left)
        told = f"{calls:,} earlier {'call' if calls == 1 else 'calls'} of this turn; recall finds what came back."
        text = f"<left_out>{told}</left_out>\n{first.segment.text}"
        tokens = measure.count(text)
        begins = Said(
            message=replace(first.message, pieces=(text,), tokens=tokens, weights=()),
            segment=replace(first.segment, text=text, tokens=tokens, content=hash_text(text)),
        )
        stays[0] = (calling, (begins, *others))
    return _join(stays), _join(left)


def _join(split: Iterable[tuple[Said, tuple[Said, ...]]]) -> tuple[Said, ...]:
    return tuple([said for calling, results in split for said in (calling, *results)])


def list_calls(rounds: Sequence[Said], measure: Measure) -> tuple[Segment, ...]:
    """One line per call of rounds that are sent no longer, to stand before the reply of their turn."""
    calls: dict[str, ToolCall] = {}
    lines: list[Segment] = []
    told = ""
    for said in rounds:
        if said.message.call is None:
            calls.update((call.id, call) for call in said.message.calls)
            told = said.message.text
        else:
            lines.append(_line(calls[said.message.call], said, told, measure=measure))
            told = ""
    return tuple(lines)


def _line(call: ToolCall, said: Said, told: str, *, measure: Measure) -> Segment:
    """A call with how it ended; what the model said with its calls stands before the first of them."""
    ended = "failed" if said.message.failed else "done"
    text = f"{told}\n" if told else ""
    text += (
        f"<tool_call>{escape_line(call.name)}({escape_line(call.arguments)}): {ended}, "
        f"recall what it gave by its id {escape_line(said.id)}</tool_call>\n"
    )
    return replace(said.segment, form=Form.HANDLE, text=text, tokens=measure.count(text))
