"""What to do next, in the words of HTTP: requests that can be sent as they are, and fields of bodies."""

from collections.abc import Sequence
from urllib.parse import quote


class HttpDoor:
    """Requests of ``/v1``."""

    def option(self, name: str) -> str:
        return f"the field `{name}`"

    def begin_store(self) -> str:
        return "`POST /v1/conversations`"

    def verify_store(self) -> str:
        return "the command `lamella store verify` of whoever runs the server"

    def repair_store(self) -> str:
        return "the command `lamella store verify --repair` of whoever runs the server"

    def list_chats(self) -> str:
        return "`GET /v1/conversations`"

    def show_chat(self, name: str, head: str | None = None) -> str:
        branch = "" if head is None else f"?branch={head}"
        return f"`GET /v1/conversations/{quote(name, safe='')}{branch}`"

    def go_to(self, name: str, head: str) -> str:
        return f'`POST /v1/conversations/{quote(name, safe="")}/switch` with {{"head": "{head}"}}'

    def trust(self, field: str, given: str, place: str) -> str:
        return "whoever runs the server says so once, with `POST /v1/trust` or the command `lamella trust add`"

    def load_again(self) -> str:
        return "Send the request again."

    def ask_again(self, *, max_tokens: int) -> str:
        return f'`POST …/messages/{{message}}/regenerate` and {{"max_tokens": {max_tokens}}}'

    def finish_calls(self, tools: Sequence[str]) -> str:
        return "Hand back what they gave with `POST …/messages/{message}/results`."

    def begin_work(self) -> str:
        return '`POST …/workflow` with {"workflow": "paper"}'

    def replay_file(self) -> str:
        return "the command `lamella replay`"


HTTP = HttpDoor()
