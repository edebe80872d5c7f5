from tests.unit.core.compaction.stories import Story, attaching, note

from lamella.core.log.turn import AttachmentMode, LayoutMode, Turn, TurnSettings
from lamella.core.messages import QUERY_LABEL
from lamella.core.prompt.attachment_delta import working_set_ids
from lamella.core.values import replace

STICKY = TurnSettings(layout=LayoutMode.AUTO, attachments=AttachmentMode.STICKY)
A, B = note("a.md", "Text of a."), note("b.md", "Text of b.")


def told() -> Story:
    return Story(terms=STICKY).say("one", "yes", attaching(A, B))


def asked(story: Story, turn: Turn) -> str:
    return story.prompt(turn).question_message.text


def test_attached_note_is_not_mentioned_again() -> None:
    assert asked(told(), Turn(text="two")) == "two"


def test_reattached_note_in_prompt_gets_no_line() -> None:
    assert asked(told(), replace(attaching(A), text="two")) == "two"


def test_detached_note_is_named_once() -> None:
    story, turn = told(), Turn(text="two", detach=("a.md",))
    assert asked(story, turn) == f"No longer attached: a.md.\n{QUERY_LABEL}two"
    assert asked(story.say("two", "yes", turn), Turn(text="three")) == "three"


def test_detached_notes_are_named_in_first_seen_order() -> None:
    names = [f"{letter}.md" for letter in "qwertyuiop"]
    story = Story(terms=STICKY).say("one", "yes", attaching(*(note(name, "T") for name in names)))
    told = asked(story, Turn(text="two", detach=tuple(reversed(names))))
    assert told.startswith(f"No longer attached: {', '.join(names)}.\n")


def test_reattached_note_without_text_is_named() -> None:
    story = told().say("two", "yes", Turn(text="", detach=("a.md",)))
    assert asked(story, replace(attaching(A), text="three")) == f"Attached again: a.md.\n{QUERY_LABEL}three"


def test_working_set_is_retained_and_current_attachments() -> None:
    state = told().say("two", "yes", Turn(text="", detach=("a.md",))).state
    assert working_set_ids(state.library, (), STICKY, turn_number=2) == ("b.md",)
    assert working_set_ids(state.library, (A,), STICKY, turn_number=2) == ("a.md", "b.md")
