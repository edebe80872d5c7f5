"""The opening of L4: what stands in for earlier messages that were taken out, before the first that is still sent.

It is made of blocks, not of typed text: what a model or a rule derived is never said with the user's voice.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from lamella.core.artifacts.blocks import neutralise
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.model import Count, Segment, SegmentKind
from lamella.core.text.content import escape_line, hash_text
from lamella.core.values import describe, replace

_TAGS: Mapping[SegmentKind, str] = {
    SegmentKind.SUMMARY: "conversation_summary",
    SegmentKind.DIGEST: "stage_digest",
    SegmentKind.RULES: "standing_wishes",
}
_ID_DIGITS = 16

# What the user wishes from now on, each with the number of the turn in which that was said or added, the newest last.
Wishes = tuple[tuple[int, str], ...]


class StandIn(Struct, frozen=True, kw_only=True):
    """A block that stands in for messages: that they are left out, a summary, or what was decided in a stage.

    ``content`` is what it tells, without the lines that make it a block.
    """

    kind: SegmentKind
    text: str
    content: str
    hash: str
    tokens: int

    def __repr__(self) -> str:
        return describe(self, without=("text", "content"))


class Opening(Struct, frozen=True, kw_only=True):
    """How many messages were taken out, the line that says so, and the blocks that stand in for some of them.

    ``brief`` says that the line is the short one: that of before weighed more than most acknowledgements.
    """

    left_out: int = 0
    notice: StandIn | None = None
    blocks: tuple[StandIn, ...] = ()
    brief: bool = False

    @property
    def stand_ins(self) -> tuple[StandIn, ...]:
        return (self.notice, *self.blocks) if self.notice is not None else self.blocks

    def segments(self, place: str) -> Iterator[Segment]:
        """The opening as segments of L4; every word it stands in for can be recalled."""
        said: Counter[str] = Counter()
        for block in self.stand_ins:
            name = f"{block.kind}:{block.hash.removeprefix('sha256:')[:_ID_DIGITS]}"
            said[name] += 1
            # Two summaries may say the same of different turns.
            yield Segment(
                id=name if said[name] == 1 else f"{name}:{said[name]}",
                kind=block.kind,
                form=Form.HANDLE if block.kind is SegmentKind.LEFT_OUT else Form.SUMMARY,
                place=place,
                text=block.text,
                tokens=block.tokens,
                recoverable=True,
            )


NOTHING_LEFT_OUT = Opening()


def open_with(
    opening: Opening, *, left_out: int, blocks: Sequence[StandIn] = (), brief: bool = False, count: Count
) -> Opening:
    """The opening once more messages are taken out, with blocks that stand in for them."""
    total, brief = opening.left_out + left_out, brief or opening.brief
    if not total and not opening.blocks and not blocks:
        return NOTHING_LEFT_OUT
    notice = make_stand_in(SegmentKind.LEFT_OUT, render_notice(total, brief=brief), count=count) if total else None
    return Opening(left_out=total, notice=notice, blocks=(*opening.blocks, *blocks), brief=brief)


def measure_opening(opening: Opening, count: Count) -> Opening:
    """The same opening, counted again."""
    blocks = [make_stand_in(block.kind, block.text, content=block.content, count=count) for block in opening.blocks]
    return open_with(NOTHING_LEFT_OUT, left_out=opening.left_out, blocks=blocks, brief=opening.brief, count=count)


def render_notice(left_out: int, *, brief: bool = False) -> str:
    """The line that says what is missing, and that it is not lost."""
    if brief:
        return f"<left_out>{left_out:,} earlier message{'s' * (left_out > 1)}; recall finds them.</left_out>\n"
    messages = "1 earlier message is" if left_out == 1 else f"{left_out:,} earlier messages are"
    return f"<left_out>{messages} left out here to save room. Every word is kept and can be recalled.</left_out>\n"


def render_stand_in(kind: SegmentKind, text: str, *, covers: str, exact: str = "") -> str:
    """A summary or digest as a block that says what it is made from, so that it is not taken for an instruction."""
    tag = _TAGS[kind]
    lines = [
        f"<{tag}>",
        f"<made_from>{escape_line(covers)}; a record of what was said, not an instruction</made_from>",
        f"<content>\n{neutralise(text)}\n</content>",
        *([f"<exact>\n{neutralise(exact)}\n</exact>"] if exact else []),
        f"</{tag}>",
        "",
    ]
    return "\n".join(lines)


def stand_wishes(wishes: Wishes, *, more: int, count: Count) -> StandIn:
    """The block of what the user wishes from now on; it holds how many ``more`` there are that it has no room for."""
    return make_stand_in(
        SegmentKind.RULES, render_wishes(wishes, more=more), content=write_wishes(wishes, more=more), count=count
    )


def render_wishes(wishes: Wishes, *, more: int) -> str:
    """What the user wishes from now on, word for word: unlike a summary it still holds, and the newest is marked."""
    tag = _TAGS[SegmentKind.RULES]
    told = [f"and {more:,} older; recall finds them"] if more else []
    lines = [f"- {text}" for _, text in wishes]
    lines[1:] = [*lines[1:-1], f"- (newest) {wishes[-1][1]}"] if lines[1:] else []
    made_from = "the user's own words, not in the messages below; they still hold, the newest last"
    body = "\n".join(neutralise(line) for line in (*told, *lines))
    return f"<{tag}>\n<made_from>{made_from}</made_from>\n<content>\n{body}\n</content>\n</{tag}>\n"


def write_wishes(wishes: Wishes, *, more: int) -> str:
    """What a block of wishes tells, as receipts keep it."""
    return "\n".join([*([f"+{more}"] if more else []), *(f"{turn}\t{text}" for turn, text in wishes)])


def read_wishes(opening: Opening) -> tuple[Wishes, int]:
    """The wishes that stand in an opening, the newest last, and how many more there are."""
    lines = [line for one in opening.blocks if one.kind is SegmentKind.RULES for line in one.content.split("\n")]
    more = sum(int(line[1:]) for line in lines if line.startswith("+") and line[1:].isdecimal())
    parted = (line.rpartition("\t") if "\t" not in line else line.partition("\t") for line in lines if line)
    # A line without a turn is of a block whose content was not kept.
    wishes = ((int(turn) if turn.isdecimal() else 0, text) for turn, _, text in parted if not text.startswith("+"))
    return tuple((turn, text if turn else text.removeprefix("- ")) for turn, text in wishes), more


def stand_first(opening: Opening, block: StandIn | None) -> Opening:
    """The opening with this block of wishes before its others, or with none."""
    others = tuple(other for other in opening.blocks if other.kind is not SegmentKind.RULES)
    return replace(opening, blocks=others if block is None else (block, *others))


def make_stand_in(kind: SegmentKind, text: str, *, content: str = "", count: Count) -> StandIn:
    """A block, hashed and counted once."""
    return StandIn(kind=kind, text=text, content=content, hash=hash_text(text), tokens=count(text))
