"""Suites that a plugin's own tests run: each checks that a plugin keeps the promises of its protocol.

A failed check raises ``PluginCheckError``, whose text says what was expected. ``lamella.testing`` exports all of them.
"""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlsplit

from lamella.attach import Note, Tool, Url
from lamella.conversation.engine import Engine
from lamella.conversation.turn_runner import EventName
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Delta, Message, ModelRequest, Role, StopDelta, TextDelta
from lamella.errors import ConflictError
from lamella.plugins import (
    CompactionStep,
    KindReader,
    PluginGroup,
    PriceBook,
    ProviderOpener,
    ReplyInPrompt,
    RunnerPlugin,
    SecretScannerPlugin,
    StoreOpener,
    TokenCounterPlugin,
    register,
    unregister,
)
from lamella.providers.scripted import ScriptedProvider
from lamella.wiring.python import open_engine

_TEXTS = ("", "a", "The bridge opens at noon.", "Ünïcode 語 🙂", "line\nline\n" * 50)


class PluginCheckError(AssertionError):
    """A plugin does not keep a promise of its protocol."""


def _expect(condition: object, promise: str) -> None:
    if not condition:
        raise PluginCheckError(promise)


@contextmanager
def _registered(group: PluginGroup, plugin: object, name: str | None = None) -> Iterator[str]:
    """Register a plugin under a name of its own, and forget it at the end."""
    used = name or f"checked_{secrets.token_hex(4)}"
    register(group, used, plugin)
    try:
        yield used
    finally:
        unregister(group, used)


def check_provider(opener: ProviderOpener, model: str) -> None:
    """Check a provider by asking it one short question. It must be reachable."""
    question = Message(role=Role.USER, pieces=("Answer with one word: which colour has the sky?",))
    request = ModelRequest(model=model, messages=(question,), max_output_tokens=50)

    async def ask() -> list[Delta]:
        provider = opener(model, timeout=60.0)
        try:
            return [delta async for delta in provider.stream(request)]
        finally:
            await provider.close()

    deltas = asyncio.run(ask())
    _expect(deltas, "stream() yields deltas.")
    _expect(isinstance(deltas[-1], StopDelta), "The last delta of stream() is a StopDelta.")
    _expect(sum(isinstance(one, StopDelta) for one in deltas) == 1, "stream() yields one StopDelta.")
    _expect(any(isinstance(one, TextDelta) and one.text for one in deltas), "stream() yields text.")


def check_store(opener: StoreOpener, url: str) -> None:
    """Check a store by keeping conversations in it, as two processes would. The store must be empty."""
    with _registered(PluginGroup.STORES, opener, urlsplit(url).scheme):
        with _open(url) as engine:
            chat = engine.chat("first")
            chat.ask("When does it open?", attach=[Note(path="hours.md", text="The bridge opens at noon.")])
            chat.reply("At noon.")
            sent = [turn.message.text for turn in chat.turns()]
        with _open(url) as engine, _open(url) as other:
            chat, same = engine.chat("first"), other.chat("first")
            _expect(
                [turn.message.text for turn in chat.turns()] == sent, "An acknowledged event is there after reopening."
            )
            _expect(chat.library(), "Contents are there after reopening.")
            chat.ask("And at night?")
            chat.reply("No.")
            try:
                same.ask("Written by another process?")
            except ConflictError:
                same.reload()
            else:
                _expect(
                    condition=False, promise="append() refuses events at a position that another process has filled."
                )
            _expect(len(same.turns()) == len(chat.turns()), "A second process reads what the first one wrote.")
            engine.rename("first", "Bridge")
            _expect([one.title for one in other.chats()] == ["Bridge"], "The list has the title.")
            _expect([*engine.search("noon")], "Messages are found in the store.")
            _expect(not [*engine.verify()], "verify() finds no problem in a sound store.")
            engine.erase("first")
            _expect(not [*engine.verify_erased(chat.id)], "Nothing is left of an erased conversation.")
            _expect(engine.find_conversation("first") is None, "The name of an erased conversation is free.")


def _open(url: str) -> Engine:
    return open_engine(url, model="scripted:check", provider=ScriptedProvider())


def check_token_counter(counter: TokenCounterPlugin) -> None:
    """Check that a token counter counts every text, always alike, and grows with the text."""
    _expect(counter.prefixes and all(counter.prefixes), "prefixes names at least one beginning of model names.")
    counts = [counter.count(text) for text in _TEXTS]
    _expect(all(isinstance(one, int) for one in counts), "count() returns whole numbers.")
    _expect(counts[0] == 0, "An empty text has no tokens.")
    _expect(all(one > 0 for one in counts[1:]), "Every other text has tokens.")
    _expect(counts == [counter.count(text) for text in _TEXTS], "Equal texts have equal counts.")
    _expect(counter.count("word " * 1_000) >= 500, "A long text has more tokens than a short one.")


def check_kind(reader: KindReader, name: str) -> None:
    """Check a kind of attachment by attaching ``name`` in two questions."""
    with _registered(PluginGroup.KINDS, reader) as kind, open_engine("memory:", model="scripted:check") as engine:
        text = reader(name).text
        chat = engine.chat("check")
        turn = chat.ask("What is it?", attach=[Url(url=f"{kind}:{name}")])
        prompt = "".join(message.text for message in turn.messages)
        _expect(all(line in prompt for line in text.splitlines()), "The prompt has the text that was read.")
        chat.reply("It is that.")
        again = chat.ask("And again?", attach=[Url(url=f"{kind}:{name}")])
        later = "".join(message.text for message in again.messages)
        if reader(name).text == text and len(text) > 200:
            _expect(later.count(text) == 1, "An unchanged attachment is in the prompt once.")


def check_runner(runner: RunnerPlugin) -> None:
    """Check that a runner answers a question, and that question and answer are recorded."""
    with (
        _registered(PluginGroup.RUNNERS, runner) as name,
        open_engine("memory:", model="scripted:check", provider=ScriptedProvider(*["Yes."] * 10)) as engine,
    ):
        chat = engine.chat("check")

        async def ask() -> list[EventName]:
            async with aclosing(chat.send("Is it open?", runner=name)) as events:
                return [event.kind async for event in events]

        kinds = asyncio.run(ask())
        _expect(kinds and kinds[-1] is EventName.DONE, "The last event of a runner is DONE.")
        _expect([turn.message.text for turn in chat.turns()] == ["Is it open?"], "The question is recorded.")
        _expect(all(turn.reply is not None for turn in chat.turns()), "The answer is recorded.")


def check_tool(tool: Tool, **arguments: object) -> None:
    """Check that a tool can be described to a model, and that it answers a call with these arguments with text."""
    _expect(tool.name and tool.description, "A tool has a name and a description.")
    _expect(tool.parameters.get("type") == "object", "The parameters are a JSON schema of the type object.")
    _expect(tool.run is not None, "A tool has a function run.")
    tool.to_definition()
    assert tool.run is not None
    given = tool.run(**arguments)
    output = asyncio.run(given) if asyncio.iscoroutine(given) else given
    _expect(isinstance(output, str), "run() returns a text.")


def check_compaction_step(step: CompactionStep) -> None:
    """Check that a compaction step chooses known replies, and always the same of the same."""
    replies = [
        ReplyInPrompt(
            id=f"r{number}", turn=number, question=f"Question {number}?", text=text * 20, tokens=len(text) * 5
        )
        for number, text in enumerate(("short", "A longer reply with `code`.\n", "Lists:\n- one\n- two\n"), start=1)
    ]
    chosen = list(step(replies))
    _expect(set(chosen) <= {one.id for one in replies}, "A step chooses ids that it was given.")
    _expect(len(set(chosen)) == len(chosen), "A step chooses each reply once.")
    _expect(chosen == list(step(replies)), "A step chooses the same of the same replies.")
    _expect(list(step([])) == [], "A step chooses nothing of nothing.")


def check_price_book(book: PriceBook, model: str) -> None:
    """Check that a price book knows a model, charges more for more, and knows nothing of models that do not exist."""
    now = datetime.now(UTC)
    small = book.price(model, CacheUsage(read=0, write=0, uncached=1_000), now)
    large = book.price(model, CacheUsage(read=0, write=0, uncached=2_000), now, output=1_000)
    _expect(isinstance(small, Decimal) and isinstance(large, Decimal), f"price() returns a Decimal for {model}.")
    _expect(small is not None and large is not None and 0 <= small <= large, "More tokens never cost less.")
    unknown = book.price("nobody:no-such-model", CacheUsage(read=0, write=0, uncached=1_000), now)
    _expect(unknown is None, "price() returns None for a model that it does not know.")


def check_secret_scanner(scanner: SecretScannerPlugin, secret: str) -> None:
    """Check that a scanner finds an example of its secrets, in the right line, and none in ordinary text."""
    _expect(any(anchor in secret for anchor in scanner.anchors), "A text with a secret has one of the anchors.")
    found = list(scanner.scan(f"first line\nkey = {secret}\nlast line\n"))
    _expect([line for line, _ in found] == [2], "scan() names the line of the secret, counted from 1.")
    _expect(all(isinstance(what, str) and what for _, what in found), "scan() says what it found.")
    _expect(not list(scanner.scan("The bridge opens at noon.\n" * 20)), "scan() finds nothing in ordinary text.")
