"""A request weighs everything that is billed for it."""

from lamella.core.artifacts.make import make_image_value, make_tool_definition
from lamella.core.budget.counting import Measure, count_tools, weigh
from lamella.core.messages.model import Message, Role

LETTERS = Measure(
    name="letters",
    count=len,
    encode=lambda text: list(text.encode()),
    count_image=lambda width, height: width * height,
    per_message=3,
    per_request=5,
    factor=1.0,
)
PICTURE = make_image_value(b"bytes", media_type="image/png", width=7, height=11)
TOOL = make_tool_definition("search", description="Finds.", parameters={})


def test_a_request_weighs_its_text_its_pictures_its_tools_and_its_overhead() -> None:
    messages = [
        Message(role=Role.SYSTEM, pieces=("Be brief.",), tokens=100),
        Message(role=Role.USER, pieces=("Look.",), tokens=20, images=(PICTURE, PICTURE)),
    ]
    assert weigh(messages, (), LETTERS) == 120 + 2 * 77 + 2 * 3 + 5
    assert weigh(messages, (TOOL,), LETTERS) == 120 + 2 * 77 + 2 * 3 + 5 + count_tools((TOOL,), len)
    assert weigh((), (), LETTERS) == 5
