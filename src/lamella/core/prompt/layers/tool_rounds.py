"""Tool rounds: tool calls and results as messages of their turn, and the line that a call leaves later."""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain

from lamella.core.budget import Tokenizer
from lamella.core.log.turn import ArtifactForm, round_result_id
from lamella.core.messages import Message, ProviderReply, Role, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.layers.history import HistoryMessage
from lamella.core.prompt.layers.model import Segment, SegmentKind
from lamella.core.text.content import escape_line, hash_text
from lamella.core.values import replace

TOOL_KIND = "tool"
# One character in this many is shown from the end of a result: errors are often at the end.
_TAIL_DIVISOR = 4


def build_round_messages(
    question_id: str,
    rounds: Sequence[ToolRound],
    tokenizer: Tokenizer,
    *,
    max_output_chars: int | None = None,
    names_recall: bool = False,
) -> tuple[HistoryMessage, ...]:
    """Build the messages of a turn's tool rounds, in order.

    ``question_id`` is the id of the question they belong to. ``max_output_chars`` limits the characters of each result
    in the request; by default all are sent. The log always has the full result. ``names_recall`` is that of
    ``TurnSettings``.
    """
    built = (
        _build_round(
            question_id,
            number,
            one,
            tokenizer=tokenizer,
            max_output_chars=max_output_chars,
            names_recall=names_recall,
        )
        for number, one in enumerate(rounds)
    )
    return tuple(chain.from_iterable(built))


def _build_round(
    question_id: str,
    number: int,
    tool_round: ToolRound,
    *,
    tokenizer: Tokenizer,
    max_output_chars: int | None,
    names_recall: bool,
) -> Iterator[HistoryMessage]:
    called = "".join(render_call(call) for call in tool_round.calls)
    text = f"{tool_round.text}\n{called}" if tool_round.text else called
    tokens = count_tool_call_tokens(text, tool_round.provider_reply, tokenizer, known_tokens=tool_round.tokens)
    yield HistoryMessage(
        message=Message(
            role=Role.ASSISTANT,
            pieces=(tool_round.text,) if tool_round.text else (),
            tokens=tokens,
            calls=tool_round.calls,
            provider_reply=tool_round.provider_reply,
        ),
        segment=Segment(
            id=f"call:{question_id}:{number + 1}",
            kind=SegmentKind.CALL,
            form=ArtifactForm.FULL,
            place=None,
            text=text,
            tokens=tokens,
            recoverable=True,
        ),
    )
    calls = {call.id: call for call in tool_round.calls}
    for at, output in enumerate(tool_round.outputs):
        name = round_result_id(question_id, position=(number, at), call=calls[output.call], output=output)
        yield _make_result_message(
            name, output, tokenizer, max_output_chars=max_output_chars, names_recall=names_recall
        )


def group_rounds(rounds: Iterable[HistoryMessage]) -> list[tuple[HistoryMessage, tuple[HistoryMessage, ...]]]:
    """Group the messages of a turn's rounds: each assistant message with calls, and the results of its calls."""
    split: list[tuple[HistoryMessage, tuple[HistoryMessage, ...]]] = []
    for message in rounds:
        if message.message.call_id is None:
            split.append((message, ()))
        else:
            calling, results = split[-1]
            split[-1] = (calling, (*results, message))
    return split


def count_tool_call_tokens(
    text: str, provider_reply: ProviderReply | None, tokenizer: Tokenizer, *, known_tokens: int | None = None
) -> int:
    """Count the tokens of an assistant message with tool calls when it is sent back to its provider.

    If the provider's own form of the message is stored, that form is sent; it may contain reasoning that is in no
    text. Counting it as JSON gives too many tokens, mostly because of signatures. The result is therefore at most
    ``known_tokens``, the number that the provider reported when the model produced the message.
    """
    text_tokens = tokenizer.count(text) if text else 0
    if provider_reply is None:
        return text_tokens
    whole = tokenizer.count(provider_reply.json)
    return max(text_tokens, whole if known_tokens is None else min(whole, known_tokens))


def _make_result_message(
    name: str, output: ToolOutput, tokenizer: Tokenizer, *, max_output_chars: int | None, names_recall: bool
) -> HistoryMessage:
    whole = output.output
    is_cut = max_output_chars is not None and len(whole) > max_output_chars
    text = (
        truncate_tool_output(whole, name, max_chars=max_output_chars, names_recall=names_recall)
        if is_cut and max_output_chars is not None
        else whole
    )
    tokens = tokenizer.count(text)
    return HistoryMessage(
        message=Message(
            role=Role.TOOL,
            pieces=(text,) if text else (),
            tokens=tokens,
            call_id=output.call,
            failed=output.failed,
        ),
        segment=Segment(
            id=name,
            kind=TOOL_KIND,
            form=ArtifactForm.PREVIEW if is_cut else ArtifactForm.FULL,
            place=None,
            text=text,
            tokens=tokens,
            recoverable=True,
            content=hash_text(text),
        ),
    )


def truncate_tool_output(text: str, result_id: str, *, max_chars: int, names_recall: bool) -> str:
    """Return the beginning and the end of a tool result, with a note between them on how to read the rest."""
    tail = max_chars // _TAIL_DIVISOR
    head = max_chars - tail
    left_out, name = f"{len(text) - max_chars:,} of {len(text):,} characters", escape_line(result_id)
    more = (
        f"<left_out>{left_out}. To read on, recall {name} with start {head}, or call the tool again for less.</left_out>"
        if names_recall
        else f"<left_out>{left_out}: {name} from character {head} on. Call the tool again for less.</left_out>"
    )
    return f"{text[:head]}\n{more}\n{text[len(text) - tail :]}"


def render_call(call: ToolCall) -> str:
    """Render a call on one line, as it is counted and shown."""
    return f"{escape_line(call.name)}({escape_line(call.arguments)})\n"


def stub_result_message(message: HistoryMessage, tokenizer: Tokenizer, *, names_recall: bool) -> HistoryMessage:
    """Replace the text of a result by a hint how to get it again.

    The message itself stays, because its call stays and every call needs a result.
    """
    more = "more than " if message.segment.form is ArtifactForm.PREVIEW else ""
    size = f"{more}{len(message.segment.text):,} characters"
    name = escape_line(message.id)
    text = (
        f"<left_out>{size} of output. Make the call again, or recall it by its id {name}.</left_out>\n"
        if names_recall
        else f"<left_out>{size} of output: {name}. Make the call again to read it.</left_out>\n"
    )
    tokens = tokenizer.count(text)
    return HistoryMessage(
        message=replace(message.message, pieces=(text,), tokens=tokens, piece_token_counts=()),
        segment=replace(message.segment, form=ArtifactForm.HANDLE, text=text, tokens=tokens),
    )


def partition_rounds(
    rounds: Sequence[HistoryMessage], removed_ids: Set[str], tokenizer: Tokenizer, *, names_recall: bool
) -> tuple[tuple[HistoryMessage, ...], tuple[HistoryMessage, ...]]:
    """Split the rounds of a turn into those that stay and those whose calls are in ``call_ids``.

    The first result that stays begins with a line that says how many calls were left out.
    """
    split = group_rounds(rounds)
    left = [(calling, results) for calling, results in split if calling.id in removed_ids]
    stays = [(calling, results) for calling, results in split if calling.id not in removed_ids]
    if left and stays:
        calling, (first, *others) = stays[0]
        calls = sum(len(results) for _, results in left)
        note = f"{calls:,} earlier {'call' if calls == 1 else 'calls'} of this turn"
        more = "; recall finds what came back" if names_recall else ""
        text = f"<left_out>{note}{more}.</left_out>\n{first.segment.text}"
        tokens = tokenizer.count(text)
        begins = HistoryMessage(
            message=replace(first.message, pieces=(text,), tokens=tokens, piece_token_counts=()),
            segment=replace(first.segment, text=text, tokens=tokens, content=hash_text(text)),
        )
        stays[0] = (calling, (begins, *others))
    return _flatten_rounds(stays), _flatten_rounds(left)


def _flatten_rounds(split: Iterable[tuple[HistoryMessage, tuple[HistoryMessage, ...]]]) -> tuple[HistoryMessage, ...]:
    return tuple([message for calling, results in split for message in (calling, *results)])


def make_call_lines(
    rounds: Sequence[HistoryMessage], tokenizer: Tokenizer, *, names_recall: bool
) -> tuple[Segment, ...]:
    """Return one line per call of rounds that are no longer sent; the lines go before the reply of the turn."""
    calls: dict[str, ToolCall] = {}
    lines: list[Segment] = []
    text = ""
    for message in rounds:
        if message.message.call_id is None:
            calls.update((call.id, call) for call in message.message.calls)
            text = message.message.text
        else:
            call = calls[message.message.call_id]
            lines.append(_make_call_line(call, message, text, tokenizer=tokenizer, names_recall=names_recall))
            text = ""
    return tuple(lines)


def _make_call_line(
    call: ToolCall, message: HistoryMessage, outcome: str, *, tokenizer: Tokenizer, names_recall: bool
) -> Segment:
    """Render a call with its outcome; text that the model wrote with its calls comes before the first of them."""
    ended = "failed" if message.message.failed else "done"
    text = f"{outcome}\n" if outcome else ""
    found = "recall what it gave by its id" if names_recall else "output left out:"
    text += (
        f"<tool_call>{escape_line(call.name)}({escape_line(call.arguments)}): {ended}, "
        f"{found} {escape_line(message.id)}</tool_call>\n"
    )
    return replace(message.segment, form=ArtifactForm.HANDLE, text=text, tokens=tokenizer.count(text))
