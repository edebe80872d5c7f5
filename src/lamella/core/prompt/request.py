"""An envelope as the neutral request that is sent to a model."""

from lamella.core.messages.request import Request, find_seams
from lamella.core.prompt.envelope import Envelope
from lamella.core.values import replace


def make_request(
    envelope: Envelope, *, model: str, answer: int, pause: float | None = None, compare: str | None = None
) -> Request:
    """The request, with what is known of its stability: blocks that are promoted at once are not sent again.

    ``pause`` and ``compare`` are as in the request.
    """
    prompt, messages = envelope.prompt, envelope.messages
    changes = prompt.placement.promotes and bool(prompt.shown[1])
    stays = prompt.asked_at if changes and not prompt.rounds else len(messages)
    return Request(
        model=model,
        messages=messages,
        tools=prompt.tools,
        answer=answer,
        conversation=prompt.conversation_id,
        seams=replace(find_seams(messages), messages=stays),
        pause=pause,
        compare=compare,
    )
