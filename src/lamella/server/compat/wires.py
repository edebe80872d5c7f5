"""The APIs that clients and upstreams speak."""

from enum import StrEnum


class ApiFormat(StrEnum):
    """An API: Anthropic's Messages, or OpenAI's Chat Completions or Responses."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


# The path of each API below the address of an upstream, and the field with the messages.
PATHS = {ApiFormat.MESSAGES: "/messages", ApiFormat.CHAT: "/chat/completions", ApiFormat.RESPONSES: "/responses"}
MESSAGES_FIELD = {ApiFormat.MESSAGES: "messages", ApiFormat.CHAT: "messages", ApiFormat.RESPONSES: "input"}
