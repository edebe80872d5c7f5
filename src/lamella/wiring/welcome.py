"""The conversation that a new user sees first: an edited note, and the prompts that it changed.

Nothing is sent and nothing is read from files, so it is the same without a key, a vault or a network.
"""

from lamella.attach import Note
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine

WELCOME_NAME = "welcome"
_TITLE = "Welcome: see what was sent"
_PLAN = """# Garden plan

- Bed 1: beans and dill.
- Bed 2: tomatoes, under the roof.
- Bed 3: carrots and leeks, in turns.
- Bed 4: lettuce, sown every two weeks.
- Bed 5: pumpkins, beside the compost.

## Water

We water in the evening, at six, from the rain barrel. In dry weeks the beans come first, then the lettuce.
"""
_CALENDAR = """# Calendar

March: sow tomatoes indoors. April: carrots and lettuce outside. May, after the last frost: beans and pumpkins.
July: leeks. September: garlic, and beans are dried for seed.
"""


def open_welcome_conversation(engine: Engine, model: str, settings: dict[str, object]) -> Conversation:
    """Return the welcome conversation; it is created if it does not exist, or was deleted.

    In its third turn a note was edited and the history was folded, so the prefix changes at this note.
    """
    if engine.find_conversation(WELCOME_NAME) is not None:
        return engine.chat(WELCOME_NAME)
    chat = engine.create(WELCOME_NAME, title=_TITLE, **{**settings, "model": model})
    plan, calendar = Note(path="garden-plan.md", text=_PLAN), Note(path="calendar.md", text=_CALENDAR)
    chat.ask("When do we water?", attach=[plan, calendar])
    chat.reply("At six in the evening, from the rain barrel. In dry weeks the beans come first.")
    chat.ask("What do we sow in May?")
    chat.reply("Beans and pumpkins, after the last frost.")
    edited = Note(path="garden-plan.md", text=_PLAN.replace("in the evening, at six", "in the morning, at seven"))
    chat.ask("I moved the watering in the garden plan. When do we water now?", attach=[edited], fold=True)
    chat.reply("At seven in the morning, from the rain barrel.")
    chat.ask("And what comes first in dry weeks?")
    chat.reply("The beans, and after them the lettuce.")
    return chat
