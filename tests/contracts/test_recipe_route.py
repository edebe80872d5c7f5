"""The recipe for a route, followed in a copy of the source: it answers, and the OpenAPI description has it."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy

SCHEMA = '''"""JSON body of the length of a conversation."""

from lamella.schemas.body import ConversationJsonBase, Count


class LengthJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The number of turns of a conversation."""

    turns: Count


def length_to_json(conversation_key: str, turns: int) -> LengthJson:
    """Return the number of turns of a conversation."""
    return LengthJson(conversation=conversation_key, turns=turns)
'''
ROUTE = '''"""Routes for the length of a conversation."""

from lamella.schemas.length import LengthJson, length_to_json
from lamella.server.openapi import make_router
from lamella.server.state import ReadCaller, StateDep

router = make_router(prefix="/v1/conversations/{conversation}/length", tag="length")


@router.get("", summary="The length of a conversation")
def read_length(*, conversation: str, state: StateDep, caller: ReadCaller) -> LengthJson:
    """Return the number of turns of a conversation."""
    chat = state.open_conversation(caller, conversation)
    return length_to_json(chat.id, len(chat.turns()))
'''
SERVING = """
import json, threading, urllib.error, urllib.request
import uvicorn
from lamella.server.app import make_app
from lamella.server.serving import ServerOptions, bind_socket, build_uvicorn_config, open_server_state
from lamella.testing import ScriptedProvider

state = open_server_state(ServerOptions(store="memory:", model="scripted:x"), provider=ScriptedProvider("Yes."))
listener = bind_socket("127.0.0.1", 0)
server = uvicorn.Server(build_uvicorn_config(make_app(state), state.settings))
thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
thread.start()
while not server.started:
    assert thread.is_alive()
    threading.Event().wait(0.005)
root = f"http://127.0.0.1:{listener.getsockname()[1]}"

def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(root + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

call("/v1/conversations", {"name": "garden"})
call("/v1/conversations/garden/messages", {"text": "Hello?", "stream": False})
status, body = call("/v1/conversations/garden/length")
print(status, body["turns"])
status, body = call("/v1/conversations/none/length")
print(status, body["error"]["code"])
described = call("/openapi.json")[1]
print("/v1/conversations/{conversation}/length" in described["paths"])
print("LengthJson" in described["components"]["schemas"])
server.should_exit = True
thread.join(20)
"""


def test_route_recipe_gives_a_route_that_answers_and_is_described(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.create("schemas/length.py", SCHEMA)
    copy.create("server/routes/length.py", ROUTE)
    copy.insert("server/app.py", "    length,\n", before="    memory,")
    copy.insert("server/app.py", "    length.router,\n", before="    memory.router,")
    assert copy.run(SERVING).splitlines() == ["200 1", "404 not_found", "True", "True"]
    copy.check("Add a route", name="length")
