"""Condensing: a turn whose own attachments are too long is sent with summaries of the longest of them.

Text that cannot be fetched again, pins and tool results stand as they are. Each summary keeps its artifact's id.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from lamella.core.artifacts.blocks import render_block, shown_text
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.asking import Summaries, SummaryNeed, sign
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.rules import ChainRules
from lamella.core.log.placement import Form
from lamella.core.log.turn import Turn
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.advance import waiting
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.layers.library import may_shrink
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.text.content import hash_text
from lamella.core.text.exact import list_exact
from lamella.core.values import replace

_TASK = (
    "Summarise this part of a document that was attached to a question. Keep what it claims, its names, numbers and "
    "headings; invent nothing; write it in {language}; answer with the summary only.\n\n"
)
_OF_THE_TEXT = "the language of the document"


def condense_turn(
    state: State,
    turn: Turn,
    opened: State,
    *,
    chain: ChainRules,
    budget: Budget,
    summaries: Summaries | None,
) -> tuple[Turn, tuple[SummaryNeed, ...]]:
    """The same turn, made shorter by itself, and what it needs for that.

    It is as it was where it is short enough or nothing in it may be condensed.
    """
    prompt = waiting(opened)
    measure = prompt.measure
    if summaries is None or not _too_long(prompt, budget):
        return turn, ()
    long = _find_long(prompt, chain)
    same = dict(_condensed_before(state, long))
    fresh = {name: one for name, one in long.items() if name not in same}
    needs = tuple(need for one in fresh.values() for need in _needs(one, chain, measure, summaries=summaries))
    if needs:
        return turn, needs
    texts, warnings = dict(same), list[str]()
    for name, artifact in fresh.items():
        text, why = _condense(artifact, chain, measure, summaries=summaries)
        texts.update({name: text} if text else {})
        warnings.append(why)
    if not texts:
        return turn, ()
    attached = tuple(replace(a, condensed=texts[a.id]) if a.id in texts else a for a in turn.attached)
    return replace(turn, attached=attached, warnings=(*turn.warnings, *warnings)), ()


def _condensed_before(state: State, long: Mapping[str, Artifact]) -> Iterator[tuple[str, str]]:
    """The same texts were condensed in an earlier turn: they are not asked for again."""
    for name, artifact in long.items():
        entry = state.library.get(name)
        known = None if entry is None else entry.artifact
        if known is not None and known.condensed is not None and known.hash == artifact.hash:
            yield name, known.condensed


def _too_long(prompt: Prompt, budget: Budget) -> bool:
    """Whether what may not go is more than a turn has for its own: taking earlier things out would not help enough."""
    by_layer = make_envelope(prompt, budget).tokens.by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept + sum(segment.tokens for segment in prompt.moved_in) > budget.own


def _find_long(prompt: Prompt, chain: ChainRules) -> Mapping[str, Artifact]:
    shown = {
        segment.id
        for segment in (*prompt.segments(LayerId.L3), *prompt.moved_in)
        if segment.form in (Form.FULL, Form.UPDATE) and segment.tokens > chain.summary.item
    }
    return {
        artifact.id: artifact
        for artifact in prompt.attached
        if artifact.id in shown and may_shrink(artifact) and artifact.kind not in (Kind.TOOL, Kind.IMAGE)
    }


def _needs(artifact: Artifact, chain: ChainRules, measure: Measure, *, summaries: Summaries) -> Iterator[SummaryNeed]:
    for part in _split(artifact, chain, measure):
        key = _key(part, chain)
        if key not in summaries:
            text = _say_task(chain) + render_block(replace(artifact, text=part))
            message = Message(role=Role.USER, pieces=(text,), tokens=measure.count(text))
            yield SummaryNeed(key=key, messages=(message,), max_tokens=chain.summary.writes)


def _condense(artifact: Artifact, chain: ChainRules, measure: Measure, *, summaries: Summaries) -> tuple[str, str]:
    """The summary of an artifact, empty if one of its parts has none that may stand, and what is to be said of it."""
    count, caps = measure.count, chain.summary
    answers: list[str] = []
    for part in _split(artifact, chain, measure):
        answer = summaries[_key(part, chain)]
        why = answer.why or check_summary(
            answer.text,
            replaced=[part],
            users=[],
            tokens=count(answer.text),
            replaced_tokens=count(part),
            max_tokens=caps.writes,
            translated=bool(caps.language),
        )
        if why is not None:
            return "", f"{artifact.id} could not be summarised: {why}"
        answers.append(answer.text.strip() if answers else sign(answer).strip())
    exact = list_exact([artifact.text], cap=caps.exact, count=count)
    text = "\n\n".join((*answers, *((exact,) if exact else ())))
    return text, f"{artifact.id} is sent as a summary: its {count(artifact.text):,} tokens do not fit beside the rest."


def _split(artifact: Artifact, chain: ChainRules, measure: Measure) -> Sequence[str]:
    """The text in parts of about the same length that a summariser can read, cut at line breaks if there are some."""
    reads, text = chain.summary.reads, shown_text(artifact)
    parts = ceil(measure.count(text) / reads)
    while True:
        size = ceil(len(text) / parts)
        found = list(_cut(text, size))
        # A part of dense text can be over the bound although the text is not, on the average.
        if size <= 1 or all(measure.count(part) <= reads for part in found):
            return found
        parts *= 2


def _cut(text: str, size: int) -> Iterator[str]:
    start = 0
    while len(text) - start > size:
        end = text.rfind("\n", start + size // 2, start + size) + 1 or start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _say_task(chain: ChainRules) -> str:
    return _TASK.format(language=chain.summary.language or _OF_THE_TEXT)


def _key(part: str, chain: ChainRules) -> str:
    return hash_text(_say_task(chain) + part)
