"""Requests fit or are not sent, and compactions remove only what may be removed and report it."""

import re
from collections.abc import Collection, Set

from hypothesis import given, settings
from tests.invariants.blocks import block_text, find_blocks
from tests.invariants.broken_prompts import segments_of
from tests.invariants.compacting import Tight, tight_plans, tight_player
from tests.invariants.expected_history import Fact, newest
from tests.invariants.playing import Seen
from tests.invariants.test_counts import PER_REQUEST, tool_tokens, weight
from tests.invariants.texts import readable

from lamella.core.log.receipts import CompactionReceipt, CompactionStepName
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.core.prompt.invariants import iter_violations
from lamella.core.prompt.layers.model import LayerId

TRIED = settings.get_profile("invariants")
# Labels and headings of references belong to no item.
BETWEEN = 250
NAMED = re.compile(r"\(([\d,]+) tokens\)\Z")
OF_ARTIFACTS = (CompactionStepName.PREVIEW, CompactionStepName.HANDLE, CompactionStepName.TOOL_RESULTS)


@TRIED
@given(tight=tight_plans())
def test_request_fits_hard_threshold_or_raises_typed_error(tight: Tight) -> None:
    with tight_player(tight) as player:
        for seen in player.walk():
            assert seen.turn.tokens.total <= 0.95 * player.window
            assert not list(iter_violations(seen.envelope, before=None))
        if player.failure is not None:
            assert player.failure.needed > 0.95 * player.window


@TRIED
@given(tight=tight_plans())
def test_budget_error_names_all_remaining_parts_with_tokens(tight: Tight) -> None:
    with tight_player(tight) as player:
        for _ in player.walk():
            pass
        if player.failure is not None:
            named = [number for name in player.failure.protected for number in NAMED.findall(name)]
            assert len(named) == len(player.failure.protected)
            assert player.failure.needed - sum(int(number.replace(",", "")) for number in named) <= BETWEEN


@TRIED
@given(tight=tight_plans(models=False))
def test_receipt_counts_tokens_of_rendered_messages(tight: Tight) -> None:
    with tight_player(tight) as player:
        for seen in player.walk():
            counted = sum(weight(message) for message in seen.turn.messages)
            assert seen.turn.tokens.total == counted + tool_tokens(seen.envelope) + PER_REQUEST
            if seen.turn.compaction is not None:
                assert seen.turn.compaction.tokens_after == seen.turn.tokens.total


@TRIED
@given(tight=tight_plans())
def test_each_step_of_receipt_frees_tokens_of_existing_text(tight: Tight) -> None:
    with tight_player(tight) as player:
        said: list[str] = []
        asked_by: dict[str, str] = {}
        known: set[str] = set()
        for seen, step in zip(player.walk(), tight.plan.steps, strict=False):
            receipt, asked = seen.turn.compaction, seen.envelope.message_id
            if receipt is not None:
                check_tokens(receipt)
                gone = check_removed(receipt, free=said, known=known, asked=asked_by)
                said = [name for name in said if name not in gone]
            known |= seen.expected.attached.keys()
            answered = compute_message_id("played", parent=asked, role=MessageAuthor.REPLY, text=step.reply or "")
            said += [asked, answered]
            asked_by[answered] = asked


def check_tokens(receipt: CompactionReceipt) -> None:
    """Each step begins where the one before ended, and frees something."""
    reached = None
    for step in receipt.steps:
        assert step.removed
        assert reached in (None, step.tokens_before)
        assert step.tokens_after < step.tokens_before
        reached = step.tokens_after
    assert reached in (None, receipt.tokens_after)
    assert receipt.tokens_after < receipt.tokens_before


def check_removed(receipt: CompactionReceipt, *, free: list[str], known: set[str], asked: dict[str, str]) -> list[str]:
    """What was taken out was there, each once.

    A reply that is as its outline is still there to be taken. ``asked`` are questions that replies are behind.
    """
    gone: list[str] = []
    left = set(asked.values()) - set(free)
    for step in receipt.steps:
        assert len(set(step.removed)) == len(step.removed)
        if step.name in OF_ARTIFACTS:
            assert set(step.removed) <= known
        elif step.name in (CompactionStepName.REPLIES, CompactionStepName.LAST_REPLY):
            assert set(step.removed) <= set(free)
        elif step.name is CompactionStepName.DIGEST:
            assert set(step.removed) <= set(free) - set(gone)
            # Questions only move into the digest.
            gone += [name for name in step.removed if name in asked]
        elif step.name is CompactionStepName.EXPENDABLE and step.outlines:
            assert set(step.removed) <= set(free) - set(gone)
            gone += [name for name, left in zip(step.removed, step.outlines, strict=True) if not left]
        else:
            assert set(step.removed) <= set(free) - set(gone)
            # A reply that left alone is still there as a line, and may go with its question after all.
            gone += [name for name in step.removed if asked.get(name, name) in (*step.removed, *gone, *left)]
        if step.name is CompactionStepName.CHITCHAT:
            join_replies(step.removed, free=free, asked=asked)
    return gone


def join_replies(removed: Collection[str], *, free: list[str], asked: dict[str, str]) -> None:
    """Replies to what left alone are behind the question before it, and go with that one."""
    before = ""
    for name in free:
        if name not in asked and name not in removed:
            before = name
        elif asked.get(name) in removed:
            asked[name] = before


@TRIED
@given(tight=tight_plans())
def test_no_step_removes_protected_text(tight: Tight) -> None:
    with tight_player(tight) as player:
        smaller: set[str] = set()
        for seen in player.walk():
            less = list_smaller(seen)
            smaller |= less
            check_question(seen, smaller)
            blocks = find_blocks(seen.turn.messages)
            for fact in newest(seen.expected):
                if (fact.id in seen.expected.attached and fact.id not in less) or is_kept(fact):
                    drawn_in = fact.id in seen.expected.inlined
                    assert fact.picture or drawn_in or block_text(blocks[fact.id]) == readable(fact.text)


def list_smaller(seen: Seen) -> set[str]:
    """What a request says to bring as less than its text: as an outline, or only by its name."""
    outlined = {line.partition(" is sent as its outline")[0] for line in seen.envelope.warnings}
    named = "".join(line.partition("so it is only named: ")[2].removesuffix(".") for line in seen.envelope.warnings)
    return outlined | set(named.split(", "))


def is_kept(fact: Fact) -> bool:
    return fact.policy == "pin" or not fact.fetched_again


def spares_nothing(seen: Seen) -> bool:
    """Whether the last exchange had to make room: with it the question could not have been asked at all."""
    receipt = seen.turn.compaction
    if receipt is None:
        return False
    cut = {name for step in receipt.steps for name in step.removed}
    return receipt.parent in cut


def check_question(seen: Seen, smaller: Set[str]) -> None:
    """The question of now ends the request, and before it stands the last exchange, word for word if it fits.

    What was ``smaller`` from the beginning stays so.
    """
    assert seen.turn.messages[-1].text.endswith(seen.expected.typed)
    if seen.expected.earlier and not spares_nothing(seen):
        last = seen.expected.earlier[-1]
        question, answer = seen.turn.messages[-3:-1]
        assert question.text.endswith(last.typed)
        assert answer.text == last.reply
        for tool in last.tools if seen.envelope.layout == "in_place" and not seen.expected.begins_epoch else ():
            assert tool.id in smaller or tool.tail in seen.text
    system = {segment.id: segment.text for segment in segments_of(seen.envelope, LayerId.L1)}
    assert "".join(system.values()) in seen.turn.messages[0].text or len(system) > 1


@TRIED
@given(tight=tight_plans())
def test_compaction_keeps_question_of_each_tool_result(tight: Tight) -> None:
    with tight_player(tight) as player:
        for seen in player.walk():
            earlier = {message.typed for message in seen.expected.earlier} | {seen.expected.typed}
            for found in find_blocks(seen.turn.messages).values():
                for block in found:
                    if block.tag == "tool_result":
                        asked = seen.turn.messages[block.message]
                        assert asked.role == "user"
                        assert any(asked.text.endswith(typed) for typed in earlier)


@TRIED
@given(tight=tight_plans())
def test_compaction_names_step_that_moved_bytes(tight: Tight) -> None:
    with tight_player(tight) as player:
        for seen in player.walk():
            receipt, prefix = seen.turn.compaction, seen.turn.prefix_change
            if prefix.cause == "compacted":
                assert receipt is not None
                assert prefix.segment in [*(step.name for step in receipt.steps), "fold"]
            elif receipt is not None:
                others = ("none", "system_changed", "tools_changed", "model_changed", "first_turn")
                promoted = ("artifact_added", "artifact_updated") if tight.plan.layout == "library" else ()
                assert prefix.cause in (*others, *promoted)


@TRIED
@given(tight=tight_plans())
def test_second_compaction_finds_at_most_the_last_reply(tight: Tight) -> None:
    with tight_player(tight) as player:
        turns = [seen.turn for seen in player.walk()]
        if turns and tight.plan.steps[len(turns) - 1].reply is None:
            player.chat.reply("Yes.")
        for part in (0.9, 0.5, 0.001) if turns else ():
            to = min(1.0, part * turns[-1].tokens.total / turns[-1].tokens.limit)
            first = player.chat.compact(to)
            second = player.chat.plan(to).receipt
            if second is not None:
                # A late step may make room for an earlier one, such as the shortening of the last reply. That happens once.
                assert first is not None
                assert first.steps[-1].name == CompactionStepName.EXPENDABLE
                assert [step.name for step in second.steps] == [CompactionStepName.LAST_REPLY]
                player.chat.compact(to)
            assert player.chat.plan(to).receipt is None
