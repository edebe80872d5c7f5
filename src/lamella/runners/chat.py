"""``chat``: one question, one answer; tools are those that the caller gives."""

from collections.abc import AsyncGenerator

from lamella.engine.dialogue.ask import Ask
from lamella.engine.sending.sending import Delivery, Event, SendingChat, send
from lamella.engine.sending.tools import Toolbox


def run_chat(
    chat: SendingChat, asked: Ask, delivery: Delivery, *, toolbox: Toolbox | None, steps: int
) -> AsyncGenerator[Event, None]:
    """Ask, send, and record the answer, in as many rounds of tools as it takes."""
    return send(chat, asked, delivery, toolbox=toolbox, steps=steps)
