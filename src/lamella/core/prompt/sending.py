"""An envelope as the neutral request that is sent to a model."""

from lamella.core.log.terms import Layout
from lamella.core.messages.request import Request, find_seams
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace


def make_chat_request(
    envelope: Envelope, *, model: str, answer: int, pause: float | None = None, compare: str | None = None
) -> Request:
    """The request, with what is known of its stability: in ``library`` a message that holds blocks is not sent again.

    ``pause`` and ``compare`` are as in the request.
    """
    changes = envelope.layout is Layout.LIBRARY and bool(envelope.layer(LayerId.L3).pieces)
    stays = len(envelope.messages) - 1 if changes else len(envelope.messages)
    return Request(
        model=model,
        messages=envelope.messages,
        tools=envelope.tools,
        answer=answer,
        conversation=envelope.conversation_id,
        seams=replace(find_seams(envelope.messages), messages=stays),
        pause=pause,
        compare=compare,
    )
