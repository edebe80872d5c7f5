"""Passages: nothing said or attached is missing, and nothing in the prompt is offered again."""

import pytest
from tests.unit.pictures import png

from lamella import Conversation
from lamella.attach import Image, Note, ToolResult
from lamella.conversation.turn import BuiltTurn
from lamella.core.artifacts.kinds import make_artifact, make_image_artifact, make_image_data, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.turn import LayoutMode, RuleChanges, SystemParts, Turn, TurnSettings
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import add_reply_to_waiting_turn, advance_by_turn, get_pending_prompt
from lamella.core.prompt.layers.tool_rounds import build_round_messages
from lamella.core.prompt.state import PromptState
from lamella.core.search.index import Passage, list_passages, make_version_passage_id, passage_ids_in_prompt
from lamella.core.text.content import hash_text
from lamella.tokenizers.counter import OfflineTokenCounter


def note(text: str, *, path: str = "a.md", title: str = "") -> Artifact:
    return make_artifact(ArtifactKind.NOTE, text=text, source=ArtifactSource(path=path), title=title)


def fields_of(passages: tuple[Passage, ...]) -> list[tuple[str, str, str, str]]:
    return [(one.place, one.role, one.title, one.text) for one in passages]


def test_messages_are_listed_in_order_after_their_attachments() -> None:
    result = make_tool_result("web", arguments={"q": "desks"}, output="two results")
    past = [
        Turn(text="Which?", attached=(note("alpha"),), tool_results=(result,), reply="Both."),
        Turn(text="And now?"),
    ]
    passages = list_passages(past, ("q1", "a1", "q2"))
    assert fields_of(passages) == [
        ("turn 1", "tool", f'{result.id} {{"q":"desks"}}', "two results"),
        ("turn 1", "note", "a.md", "alpha"),
        ("turn 1", "user", "q1", "Which?"),
        ("turn 1", "reply", "a1", "Both."),
        ("turn 2", "user", "q2", "And now?"),
    ]
    assert [one.id for one in passages[2:]] == ["q1", "a1", "q2"]


def test_each_artifact_version_is_one_passage() -> None:
    versions = [note("one"), note("two"), note("one")]
    past = [Turn(text="", attached=(version,), reply="") for version in versions]
    passages = list_passages(past, [f"m{number}" for number in range(6)])
    assert fields_of(passages) == [("turn 1", "note", "a.md", "one"), ("turn 2", "note", "a.md", "two")]
    assert len({one.id for one in passages}) == 2


def test_added_rule_is_passage_with_own_id() -> None:
    rules = RuleChanges(added=((1, "Be brief."), (1, "Use metres.")))
    passages = list_passages([Turn(text="Which?", rules=rules)], ("q1",))
    assert fields_of(passages) == [
        ("turn 1", "user", "rule", "Be brief."),
        ("turn 1", "user", "rule", "Use metres."),
        ("turn 1", "user", "q1", "Which?"),
    ]
    assert [one.id for one in passages[:2]] == [
        make_version_passage_id("rule", hash_text(one.text)) for one in passages[:2]
    ]


def test_artifact_without_text_is_no_passage() -> None:
    picture = make_image_artifact(make_image_data(png(2, 2), media_type="image/png", width=2, height=2))
    past = [Turn(text="", attached=(picture, note("")), reply="")]
    assert list_passages(past, ("q1", "a1")) == ()


def test_unanswered_question_keeps_message_ids_aligned() -> None:
    past = [Turn(text="one"), Turn(text="two", reply="yes")]
    assert [(one.id, one.text) for one in list_passages(past, ("q1", "q2", "a2"))] == [
        ("q1", "one"),
        ("q2", "two"),
        ("a2", "yes"),
    ]


def test_title_differing_from_id_is_searchable() -> None:
    past = [Turn(text="", attached=(note("x", path="docs/a.md", title="The plan"),), reply="")]
    assert [one.title for one in list_passages(past, ("q1", "a1"))] == ["docs/a.md The plan"]


def test_notes_that_instructions_drew_in_are_passages() -> None:
    drawn = note("Write plainly.", path="style.md")
    parts = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[style]]}")
    past = [Turn(text="", system=parts, reply="")]
    assert ("turn 1", "note", "style.md", "Write plainly.") in fields_of(list_passages(past, ("q1", "a1")))


def test_earlier_system_texts_are_passages() -> None:
    chat = Conversation(system={"base": "You are kind.", "instructions": "Answer in French."})
    chat.ask("one")
    chat.reply("oui")
    chat.ask("two", system={"instructions": "Answer in Dutch."})
    assert [(one.passage.place, one.passage.role, one.passage.title) for one in chat.recall("French")] == [
        ("turn 1", "system", "instructions")
    ]
    assert chat.recall("Dutch") == ()
    assert chat.recall("kind") == ()


def test_image_is_found_by_title_and_described() -> None:
    image = make_image_data(png(3, 2), media_type="image/png", width=3, height=2)
    past = [Turn(text="", attached=(make_image_artifact(image, title="Harbour at dawn"),), reply="")]
    (one,) = list_passages(past, ("q1", "a1"))
    assert (one.role, one.text) == ("image", "A picture: Harbour at dawn (3 by 2 pixels, image/png)")
    assert one.message == "q1"


def test_image_still_sent_is_not_offered() -> None:
    chat = Conversation(layout="in_place")
    picture = Image(data=png(2, 2), title="Harbour at dawn")
    chat.ask("one", attach=[picture])
    chat.reply("yes")
    assert chat.recall("harbour") == ()
    chat.ask("two", fold=True)
    assert [one.passage.role for one in chat.recall("harbours")] == ["image"]


def test_turns_may_begin_with_another_number() -> None:
    passages = list_passages([Turn(text="one", reply="yes")], ("q7", "a7"), first_turn_number=7)
    assert [(one.place, one.message) for one in passages] == [("turn 7", "q7"), ("turn 7", "a7")]


def in_full(turn: BuiltTurn, text: str, *, path: str = "a.md") -> bool:
    version = note(text, path=path)
    return make_version_passage_id(version.id, version.hash) in passage_ids_in_prompt(turn.envelope.prompt)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_text_in_prompt_is_listed_in_every_layout(layout: str) -> None:
    chat = Conversation(layout=layout)
    first = chat.ask("one", attach=[Note(path="a.md", text="alpha")])
    assert in_full(first, "alpha")
    assert first.envelope.message_id in passage_ids_in_prompt(first.envelope.prompt)
    chat.reply("yes")
    second = chat.ask("two", attach=[Note(path="a.md", text="alpha")])
    assert in_full(second, "alpha")
    assert first.envelope.message_id in passage_ids_in_prompt(second.envelope.prompt)


def test_older_version_is_in_prompt_until_library_updates() -> None:
    chat = Conversation()
    chat.ask("one", attach=[Note(path="a.md", text="alpha")])
    updating = chat.ask("two", attach=[Note(path="a.md", text="beta")])
    assert (in_full(updating, "alpha"), in_full(updating, "beta")) == (True, True)
    later = chat.ask("three")
    assert (in_full(later, "alpha"), in_full(later, "beta")) == (False, True)


@pytest.mark.layout("library")
def test_preview_is_not_the_whole() -> None:
    text = "# Head\n" + "words " * 1_500
    chat = Conversation(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    assert not in_full(chat.ask("two"), text)


def test_dropped_note_is_not_in_prompt() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="alpha")])
    assert not in_full(chat.ask("two", drop=["a.md"]), "alpha")


@pytest.mark.layout("library")
def test_hidden_turns_are_not_in_prompt() -> None:
    chat = Conversation(history="window", history_turns=1)
    names = []
    for number in range(3):
        names.append(chat.ask(f"q{number}").envelope.message_id)
        chat.reply("yes")
    standing = passage_ids_in_prompt(chat.ask("now").envelope.prompt)
    assert [name in standing for name in names] == [False, False, True]


def test_tool_results_are_in_prompt_within_epoch() -> None:
    result = make_tool_result("web", arguments={}, output="found")
    name = make_version_passage_id(result.id, result.hash)
    chat = Conversation(layout="in_place")
    chat.ask("one", results=[ToolResult(name="web", output="found")])
    assert name in passage_ids_in_prompt(chat.ask("two").envelope.prompt)
    assert name not in passage_ids_in_prompt(chat.ask("three", fold=True).envelope.prompt)


def test_note_with_image_is_in_prompt_of_its_message() -> None:
    text = "# Plan\n![](plan.png)\n"
    chat = Conversation(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text=text), Image(data=png(2, 2))])
    assert in_full(chat.ask("two"), text)


def test_inlined_note_is_in_prompt() -> None:
    drawn = note("Write plainly.", path="style.md")
    parts = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[style]]}")
    state = advance_by_turn(
        PromptState(conversation="chat"),
        Turn(text="Now?", system=parts),
        choose_layout,
        tokenizer=OfflineTokenCounter().get_tokenizer(None),
    )
    assert make_version_passage_id(drawn.id, drawn.hash) in passage_ids_in_prompt(get_pending_prompt(state))


CALL = ToolCall(id="c", name="web", arguments='{"q":"desks"}')
ROUND = ToolRound(text="Let me look.", calls=(CALL,), outputs=(ToolOutput(call="c", output="two desks"),))


def test_tool_outputs_are_between_question_and_reply() -> None:
    turn = Turn(text="Which?", rounds=(ROUND, ROUND), reply="Both.")
    asked, first, second, replied = list_passages([turn], ("q1", "a1"))
    assert (asked.id, replied.id) == ("q1", "a1")
    assert (first.place, first.role, first.text) == ("turn 1", "tool", "two desks")
    assert first.id != second.id
    names = [
        message.id
        for message in build_round_messages("q1", turn.rounds, OfflineTokenCounter().get_tokenizer(None))
        if message.message.call_id
    ]
    assert [one.title for one in (first, second)] == [f'{name} {{"q":"desks"}}' for name in names]


@pytest.mark.parametrize("layout", list(LayoutMode))
def test_tool_outputs_are_in_prompt_within_epoch_and_found_later(layout: LayoutMode) -> None:
    tokenizer, turn_settings = OfflineTokenCounter().get_tokenizer(None), TurnSettings(layout=layout)
    turn = Turn(text="Which?", rounds=(ROUND,), turn_settings=turn_settings)
    asked = advance_by_turn(PromptState(conversation="chat"), turn, choose_layout, tokenizer=tokenizer)
    found = list_passages([turn], (asked.head,))[1]
    assert found.id in passage_ids_in_prompt(get_pending_prompt(asked))
    later = advance_by_turn(
        add_reply_to_waiting_turn(asked, "Both."),
        Turn(text="And now?", turn_settings=turn_settings),
        choose_layout,
        tokenizer=tokenizer,
    )
    assert (found.id in passage_ids_in_prompt(get_pending_prompt(later))) is (layout is not LayoutMode.LIBRARY)
    folded = advance_by_turn(
        add_reply_to_waiting_turn(asked, "Both."),
        Turn(text="And now?", turn_settings=turn_settings, fold=True),
        choose_layout,
        tokenizer=tokenizer,
    )
    # Prices decide over documents: rounds stay as they were sent.
    assert (found.id in passage_ids_in_prompt(get_pending_prompt(folded))) is (layout is LayoutMode.AUTO)
