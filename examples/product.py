"""A small chat product: two users, stored conversations, streamed answers.

Start it in a clone of Lamella, after `make setup`:

    .venv/bin/uvicorn --app-dir examples product:app
"""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import lamella
from lamella import LamellaError, Note

STORE = os.environ.get("PRODUCT_STORE", "sqlite:///product.db")
MODEL = os.environ.get("PRODUCT_MODEL", "local")
NOTES = Path(__file__).parent / "vault"
HANDBOOK = [Note(path="office/hours.md"), Note(path="office/desks.md")]
SETTINGS = {"system": "Answer in one short sentence, only from the notes.", "temperature": 0}
USERS = {"ana-secret": "ana", "ben-secret": "ben"}  # replace with your sign-in


class Question(BaseModel):
    text: str


def current_user(authorization: Annotated[str, Header()] = "") -> str:
    user = USERS.get(authorization.removeprefix("Bearer "))
    if user is None:
        raise HTTPException(401, "Unknown token")
    return user


User = Annotated[str, Depends(current_user)]


def make_app(**options: object) -> FastAPI:
    """Return the application. ``options`` go to ``lamella.open``, for example a scripted provider in tests."""
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # one turn at a time in each conversation

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with lamella.open(**{"url": STORE, "model": MODEL, "vault": NOTES, **options}) as engine:
            app.state.engine = engine
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/chats")
    async def list_chats(user: User) -> list[str]:
        found = await asyncio.to_thread(app.state.engine.chats)
        return [chat.name.removeprefix(f"{user}/") for chat in found if chat.name.startswith(f"{user}/")]

    @app.get("/chats/{name}")
    async def read_chat(name: str, user: User) -> list[dict[str, str]]:
        chat = await app.state.engine.conversation(f"{user}/{name}")
        turns = await asyncio.to_thread(chat.turns)
        return [{"question": turn.message.text, "answer": turn.reply.text if turn.reply else ""} for turn in turns]

    @app.post("/chats/{name}")
    async def ask(name: str, question: Question, user: User) -> StreamingResponse:
        return StreamingResponse(answer(f"{user}/{name}", question.text), media_type="text/event-stream")

    async def answer(key: str, text: str) -> AsyncIterator[str]:
        async with locks[key]:
            try:
                chat = await app.state.engine.conversation(key, **SETTINGS)
                async with aclosing(chat.send(text, attach=HANDBOOK, max_tokens=40)) as events:
                    async for event in events:
                        if event.kind == "delta":
                            yield to_sse("delta", text=event.text)
                        elif event.kind == "done":
                            usage = chat.ledger()[-1][-1].usage
                            yield to_sse("done", message=chat.head, tokens=usage.prompt_tokens, cached=usage.read)
            except LamellaError as error:
                yield to_sse("error", code=error.code, message=str(error), hint=error.hint)

    return app


def to_sse(event: str, **data: object) -> str:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


app = make_app()
