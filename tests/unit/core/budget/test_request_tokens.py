"""The tokens of a request include everything that is billed for it."""

from lamella.core.artifacts.kinds import make_image_data, make_tool_definition
from lamella.core.budget import Tokenizer, count_request_tokens, count_tools_tokens
from lamella.core.messages import Message, Role

LETTERS = Tokenizer(
    name="letters",
    count=len,
    encode=lambda text: list(text.encode()),
    count_image=lambda width, height: width * height,
    tokens_per_message=3,
    tokens_per_request=5,
    count_factor=1.0,
)
PICTURE = make_image_data(b"bytes", media_type="image/png", width=7, height=11)
TOOL = make_tool_definition("search", description="Finds.", parameters={})


def test_request_tokens_include_text_images_tools_and_overhead() -> None:
    messages = [
        Message(role=Role.SYSTEM, pieces=("Be brief.",), tokens=100),
        Message(role=Role.USER, pieces=("Look.",), tokens=20, images=(PICTURE, PICTURE)),
    ]
    assert count_request_tokens(messages, (), LETTERS) == 120 + 2 * 77 + 2 * 3 + 5
    assert count_request_tokens(messages, (TOOL,), LETTERS) == 120 + 2 * 77 + 2 * 3 + 5 + count_tools_tokens(
        (TOOL,), len
    )
    assert count_request_tokens((), (), LETTERS) == 5
