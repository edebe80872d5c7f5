"""The conversation that a new user sees first: an edited note, which keeps the cache, and a new rule, which does not.

Nothing is sent and nothing is read from files, so it is the same without a key, a vault or a network.
"""

from lamella.attach import Note
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.core.log.turn import LayoutMode

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

## Soil

- Bed 1 is sandy. It gets two barrows of compost in March and is covered with straw in June.
- Bed 2 is dark and loose. It gets one barrow of compost, and horn meal when the first tomatoes appear.
- Bed 3 is full of stones, which we pick out each autumn. Compost makes the carrots fork, so it gets none.
- Bed 4 is heavy and stays wet. We loosen it with a fork in April, and never walk on it.
- Bed 5 is dry. The pumpkins get the oldest compost, as much as there is.

## Next year

The beds change places: what needs much food first, then roots, then beans. In the fourth year a bed rests under clover.
Garlic is planted in September where the lettuce was. The beans climb on hazel poles, which we cut in February.

## Harvest

Lettuce is cut young, from May on. Beans are picked twice a week, or they stop flowering. Tomatoes ripen from the end of
July; the last green ones ripen indoors, beside an apple. Carrots stay in the ground until the first hard frost, and leeks
through the winter. Pumpkins are cut with a hand of stalk, and dry for two weeks in the sun before they go into the cellar.
Seed of beans, dill and lettuce is kept in paper bags, with the year on each bag.
"""
_CALENDAR = """# Calendar

March: sow tomatoes indoors. April: carrots and lettuce outside. May, after the last frost: beans and pumpkins.
July: leeks. September: garlic, and beans are dried for seed.
"""


def open_welcome_conversation(engine: Engine, model: str, settings: dict[str, object]) -> Conversation:
    """Return the welcome conversation; it is created if it does not exist, or was deleted.

    In its third turn a note was edited: the change is sent as an update, and the prefix stays. In its fourth turn a rule
    was added. Rules are at the start of a prompt, so the prefix breaks there.
    """
    if engine.find_conversation(WELCOME_NAME) is not None:
        return engine.chat(WELCOME_NAME)
    # By cost, prompts too short for the cache of a model are folded each turn. This one is the same for every model.
    layout = {"layout": LayoutMode.IN_PLACE.value}
    chat = engine.create(WELCOME_NAME, title=_TITLE, **{**layout, **settings, "model": model})
    plan, calendar = Note(path="garden-plan.md", text=_PLAN), Note(path="calendar.md", text=_CALENDAR)
    chat.ask("When do we water?", attach=[plan, calendar])
    chat.reply("At six in the evening, from the rain barrel. In dry weeks the beans come first.")
    chat.ask("What do we sow in May?")
    chat.reply("Beans and pumpkins, after the last frost.")
    edited = Note(path="garden-plan.md", text=_PLAN.replace("in the evening, at six", "in the morning, at seven"))
    chat.ask("I moved the watering in the garden plan. When do we water now?", attach=[edited])
    chat.reply("At seven in the morning, from the rain barrel.")
    chat.add_rule("Answer in one short sentence.")
    chat.ask("I added a rule. What comes first in dry weeks?")
    chat.reply("The beans.")
    chat.ask("And then?")
    chat.reply("The lettuce.")
    return chat
