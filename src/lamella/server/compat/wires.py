"""The APIs that clients and upstreams speak."""

from enum import StrEnum


class Wire(StrEnum):
    """An API: Anthropic's Messages, or OpenAI's Chat Completions or Responses."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


# The path of each API below the address of an upstream, and the field with the messages.
PATHS = {Wire.MESSAGES: "/messages", Wire.CHAT: "/chat/completions", Wire.RESPONSES: "/responses"}
MESSAGES_FIELD = {Wire.MESSAGES: "messages", Wire.CHAT: "messages", Wire.RESPONSES: "input"}
