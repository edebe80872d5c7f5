"""Condensing: a turn whose own attachments are too long is sent with summaries of the longest of them.

Text that cannot be fetched again, pins and tool results stand as they are. Each summary keeps its artifact's id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.checking import check_summary
from lamella.core.log.placement import Form
from lamella.core.log.turn import TurnInput
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.layers.library import may_shrink
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import OpenTurn, Rules, State
from lamella.core.text.content import hash_text
from lamella.core.text.exact import build_ledger
from lamella.core.values import replace

_TASK = (
    "Summarise this part of a document that was attached to a question. Keep what it claims, its names, numbers and "
    "headings; invent nothing; answer with the summary only.\n\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """The turn with its longest attachments as summaries, or the summaries that it needs."""

    turn: TurnInput
    needs: tuple[SummaryNeed, ...] = ()


def condense_turn(
    state: State, turn: TurnInput, opened: OpenTurn, *, rules: Rules, summaries: Summaries | None
) -> Condensed | None:
    """The same turn, made shorter by itself; none where it is short enough or nothing in it may be condensed."""
    if summaries is None or not _too_long(opened, rules):
        return None
    long = _find_long(opened, rules)
    if not long:
        return None
    same = dict(_condensed_before(state, long))
    needs = [need for name, one in long.items() if name not in same for need in _needs(one, rules, summaries)]
    if needs:
        return Condensed(turn=turn, needs=tuple(needs))
    texts = dict(same)
    warnings: list[str] = []
    for name, artifact in long.items():
        if name not in same:
            text, why = _condense(artifact, rules, summaries)
            texts.update({name: text} if text else {})
            warnings.append(why)
    attached = tuple(replace(a, condensed=texts[a.id]) if a.id in texts else a for a in turn.attached)
    return Condensed(turn=replace(turn, attached=attached, warnings=(*turn.warnings, *warnings))) if texts else None


def _condensed_before(state: State, long: Mapping[str, Artifact]) -> Iterator[tuple[str, str]]:
    """The same texts were condensed in an earlier turn: they are not asked for again."""
    for name, artifact in long.items():
        known = state.known.get(name)
        if known is not None and known.condensed is not None and known.hash == artifact.hash:
            yield name, known.condensed


def _too_long(opened: OpenTurn, rules: Rules) -> bool:
    """Whether what may not go is over the target already: taking earlier things out could not help."""
    by_layer = opened.envelope.tokens.by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept > rules.budget.target * rules.budget.limit


def _find_long(opened: OpenTurn, rules: Rules) -> Mapping[str, Artifact]:
    shown = {
        segment.id
        for segment in opened.envelope.layer(LayerId.L3).segments
        if segment.form in (Form.FULL, Form.UPDATE) and segment.tokens > rules.compaction.summary.item
    }
    return {
        artifact.id: artifact
        for artifact in opened.attached
        if artifact.id in shown and may_shrink(artifact) and artifact.kind not in (Kind.TOOL, Kind.IMAGE)
    }


def _needs(artifact: Artifact, rules: Rules, summaries: Summaries) -> Iterator[SummaryNeed]:
    for part in _split(artifact, rules):
        key = _key(part)
        if key not in summaries:
            text = _TASK + render_block(replace(artifact, text=part))
            message = Message(role=Role.USER, pieces=(text,), tokens=rules.measure.count(text))
            yield SummaryNeed(key=key, messages=(message,), max_tokens=rules.compaction.summary.writes, turns=0)


def _condense(artifact: Artifact, rules: Rules, summaries: Summaries) -> tuple[str, str]:
    """The summary of an artifact, empty if one of its parts has none that may stand, and what is to be said of it."""
    count, caps = rules.measure.count, rules.compaction.summary
    answers: list[str] = []
    for part in _split(artifact, rules):
        answer = summaries[_key(part)]
        why = answer.why or check_summary(
            answer.text,
            replaced=[part],
            users=[],
            tokens=count(answer.text),
            replaced_tokens=count(part),
            max_tokens=caps.writes,
        )
        if why is not None:
            return "", f"{artifact.id} could not be summarised: {why}"
        answers.append(answer.text.strip())
    exact = build_ledger([artifact.text], cap=caps.exact, count=count)
    text = "\n\n".join((*answers, *((exact,) if exact else ())))
    return text, f"{artifact.id} is sent as a summary: its {count(artifact.text):,} tokens do not fit beside the rest."


def _split(artifact: Artifact, rules: Rules) -> Sequence[str]:
    """The text in parts of about the same length that a summariser can read, cut at line breaks if there are some."""
    reads, text = rules.compaction.summary.reads, artifact.text
    parts = ceil(rules.measure.count(text) / reads)
    while True:
        size = ceil(len(text) / parts)
        found = list(_cut(text, size))
        # A part of dense text can be over the bound although the text is not, on the average.
        if size <= 1 or all(rules.measure.count(part) <= reads for part in found):
            return found
        parts *= 2


def _cut(text: str, size: int) -> Iterator[str]:
    start = 0
    while len(text) - start > size:
        end = text.rfind("\n", start + size // 2, start + size) + 1 or start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _key(part: str) -> str:
    return hash_text(_TASK + part)
