"""The conversation: ask and reply, in memory, with no store and no provider."""

from collections.abc import Mapping
from os import PathLike

from lamella.faces.library.checks import check_folder, check_summarizer, check_text
from lamella.faces.library.talk import Talk
from lamella.ports import Summarizer
from lamella.wiring import open_runner, read_services


class Conversation(Talk):
    """One conversation. ``ask`` gives what a model would be sent; ``reply`` records what it answered.

    Settings such as ``layout``, ``window`` or ``carry_forward`` are given by their names; see docs/settings.md.
    Without a ``ledger`` nothing is predicted or priced: a turn has its messages, tokens and the cause of a move.
    A ``summarizer`` is asked when the oldest turns have to become a summary; without one other steps make room.
    """

    def __init__(
        self,
        *,
        system: str | Mapping[str, str] = "",
        conversation: str = "chat",
        vault: str | PathLike[str] | None = None,
        ledger: bool = True,
        summarizer: Summarizer | None = None,
        **settings: object,
    ) -> None:
        runner = open_runner(
            read_services(settings),
            conversation=check_text(conversation, "conversation", may_be_empty=False),
            vault=check_folder(vault),
            ledger=ledger,
            summarizer=check_summarizer(summarizer),
        )
        super().__init__(runner, system=system)
