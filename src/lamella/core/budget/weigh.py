"""What a whole request weighs in tokens."""

from collections.abc import Sequence

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget.counting import Measure, count_images, count_tools
from lamella.core.messages.model import Message


def weigh(messages: Sequence[Message], tools: Sequence[ToolDefinition], measure: Measure) -> int:
    """Everything a request bills: text, images, tool definitions and the overhead of its messages."""
    content = sum(message.tokens for message in messages)
    images = sum(count_images(message.images, measure) for message in messages if message.images)
    overhead = measure.per_message * len(messages) + measure.per_request
    return content + images + count_tools(tools, measure.count) + overhead
