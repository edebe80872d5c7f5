"""Plugins of every kind: what they bring is used, and one that misbehaves is named and skipped."""

import asyncio
import json
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plugins import examples

import lamella
from lamella import BadInputError, Url
from lamella.conversation.turn_runner import EventName
from lamella.core.log.events.kinds import EventBatch
from lamella.errors import NotAvailableError, SettingError
from lamella.plugins import PluginGroup, PluginWarning, list_plugins, register, unregister
from lamella.testing import (
    InMemoryStore,
    PluginCheckError,
    ScriptedProvider,
    check_compaction_step,
    check_kind,
    check_price_book,
    check_provider,
    check_runner,
    check_secret_scanner,
    check_store,
    check_token_counter,
    check_tool,
)

EXAMPLES: dict[PluginGroup, tuple[str, object]] = {
    PluginGroup.PROVIDERS: ("echo", examples.open_echo),
    PluginGroup.STORES: ("shelf", examples.open_shelf),
    PluginGroup.TOKEN_COUNTERS: ("words", examples.WordCounter()),
    PluginGroup.KINDS: ("ticket", examples.read_ticket),
    PluginGroup.RUNNERS: ("shouting", examples.run_shouting),
    PluginGroup.TOOLS: ("dice", examples.ROLL),
    PluginGroup.COMPACTION_STEPS: ("longest", examples.choose_longest),
    PluginGroup.PRICE_BOOKS: ("house", examples.HousePrices()),
    PluginGroup.SECRET_SCANNERS: ("badges", examples.BadgeScanner()),
}


@pytest.fixture
def plugged() -> Iterator[None]:
    """Every example is registered."""
    for group, (name, plugin) in EXAMPLES.items():
        register(group, name, plugin)
    yield
    for group, (name, _) in EXAMPLES.items():
        unregister(group, name)


def _send(engine: lamella.Engine, text: str, **options: Any) -> str:  # noqa: ANN401
    chat = engine.chat("c")

    async def send() -> str:
        async with aclosing(chat.send(text, **options)) as events:
            kinds = [event.kind async for event in events]
        assert kinds[-1] is EventName.DONE
        reply = chat.turns()[-1].reply
        return "" if reply is None else reply.text

    return asyncio.run(send())


def test_every_example_passes_its_suite() -> None:
    check_provider(examples.open_echo, "any")
    check_store(examples.open_shelf, "shelf://checked")
    check_token_counter(examples.WordCounter())
    check_kind(examples.read_ticket, "ABC-7")
    check_runner(examples.run_shouting)
    check_tool(examples.ROLL, sides=6)
    check_compaction_step(examples.choose_longest)
    check_price_book(examples.HousePrices(), "echo:any")
    check_secret_scanner(examples.BadgeScanner(), "BADGE-12345")


@pytest.mark.usefixtures("plugged")
def test_provider_store_counter_and_prices_of_plugins_serve_a_conversation() -> None:
    with lamella.open("shelf://one", model="echo:any") as engine:
        assert _send(engine, "one two three") == "one two three"
    with lamella.open("shelf://one", model="echo:any") as engine:
        (turn,) = engine.chat("c").turns()
        assert turn.message.text == "one two three"
        sent = engine.chat("c").preview("four five")
        assert sent.tokens.by_layer["L5_USER"] == 2
        assert sent.cost is not None
        assert sent.cost.amount == Decimal(sent.tokens.total) / 1_000_000


@pytest.mark.usefixtures("plugged")
def test_a_kind_of_a_plugin_is_attached_once_and_read_again() -> None:
    with lamella.open("memory:", model="echo:any") as engine:
        chat = engine.chat("c")
        first = chat.ask("What is it?", attach=[Url(url="ticket:ABC-7")])
        assert "Ticket ABC-7: the bridge opens at noon." in first.messages[-1].text
        chat.reply("A ticket.")
        second = chat.ask("Again?", attach=[Url(url="ticket:ABC-7")])
        assert sum(message.text.count("opens at noon") for message in second.messages) == 1


@pytest.mark.usefixtures("plugged")
def test_a_mention_names_what_a_plugin_reads(tmp_path: Path) -> None:
    (outcome,) = lamella.find_mentions("What is @ticket:ABC-7?", vault=tmp_path)
    assert list(outcome.attachments) == [Url(url="ticket:ABC-7")]


@pytest.mark.usefixtures("plugged")
def test_runner_and_tool_of_plugins_are_offered() -> None:
    with lamella.open("memory:", model="scripted:x", provider=ScriptedProvider("Yes.")) as engine:
        assert "shouting" in engine.runners()
        assert "roll_dice" in [tool.name for tool in engine.tools()]
        assert _send(engine, "Is it open?", runner="shouting") == "Yes."


@pytest.mark.usefixtures("plugged")
def test_a_secret_that_a_plugin_knows_is_refused() -> None:
    chat = lamella.Conversation(model="anthropic:claude-opus-5-5", secrets="refuse")
    with pytest.raises(BadInputError, match="a badge"):
        chat.ask("My number is BADGE-12345.")
    assert chat.turns() == []


@pytest.mark.usefixtures("plugged")
def test_a_step_of_a_plugin_chooses_what_is_shortened_and_the_receipt_needs_no_plugin(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    long, longer = "The tide was low. " * 80, "The tide was high. " * 160
    with lamella.open(url, model="scripted:x") as engine:
        chat = engine.chat("c")
        for reply in (long, longer, long, "Short."):
            chat.ask("How was the tide?")
            chat.reply(reply)
        before = chat.preview("And now?").tokens
        receipt = chat.compact(to=(before.total - 100) / before.limit)
        assert receipt is not None
        assert [step.name for step in receipt.steps] == ["replies"]
        sent = [message.text for message in chat.preview("And now?").messages]
        assert long in sent
        assert longer not in sent
    for group, (name, _) in EXAMPLES.items():
        unregister(group, name)
    with lamella.open(url, model="scripted:x") as engine:
        assert [message.text for message in engine.chat("c").preview("And now?").messages] == sent


def _talk_and_compact(chat: lamella.Conversation) -> None:
    for _ in range(3):
        chat.ask("How was the tide?")
        chat.reply("The tide was low. " * 200)
    chat.compact(to=0.05)


class _BrokenPrices:
    def price(self, *_given: object, **_named: object) -> Decimal:
        raise RuntimeError("no connection")


class _WrongCounter:
    prefixes = ("wrong:",)

    def count(self, text: str) -> int:
        return -len(text)


@pytest.mark.parametrize(
    ("group", "plugin", "problem"),
    [
        (PluginGroup.PRICE_BOOKS, _BrokenPrices(), "raised RuntimeError: no connection"),
        (PluginGroup.TOKEN_COUNTERS, _WrongCounter(), "gave -"),
        (PluginGroup.COMPACTION_STEPS, lambda _replies: ["no such reply"], "gave \\['no such reply'\\]"),
    ],
)
def test_a_plugin_that_misbehaves_is_named_and_skipped(group: PluginGroup, plugin: object, problem: str) -> None:
    name = f"broken_{group.name.lower()}"
    register(group, name, plugin)
    try:
        chat = lamella.Conversation(model="wrong:model", window=20_000)
        with pytest.warns(PluginWarning, match=f"{name}.*{problem}"):
            _talk_and_compact(chat)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert chat.ask("And now?").tokens.total > 0
        (listed,) = [one for one in list_plugins() if one.name == name]
        assert listed.problem
    finally:
        unregister(group, name)


def test_a_store_or_provider_that_fails_is_named_in_the_error() -> None:
    def open_nothing(_name: str, *, timeout: float) -> None:
        raise OSError("no route")

    register(PluginGroup.STORES, "gone", open_nothing)
    register(PluginGroup.PROVIDERS, "gone", open_nothing)
    try:
        with pytest.raises(NotAvailableError, match=r"'gone' of lamella\.stores failed: OSError: no route"):
            lamella.open("gone://x")
        with (
            pytest.raises(NotAvailableError, match=r"'gone' of lamella\.providers failed: OSError: no route"),
            lamella.open("memory:", model="gone:x") as engine,
        ):
            _send(engine, "Hello?")
    finally:
        unregister(PluginGroup.STORES, "gone")
        unregister(PluginGroup.PROVIDERS, "gone")


def test_a_kind_that_fails_leaves_the_conversation_as_it_was() -> None:
    def read_nothing(_name: str) -> object:
        return "only a text"

    register(PluginGroup.KINDS, "odd", read_nothing)
    try:
        chat = lamella.Conversation()
        with pytest.raises(NotAvailableError, match=r"'odd' of lamella\.kinds"):
            chat.ask("What?", attach=[Url(url="odd:1")])
        assert chat.turns() == []
    finally:
        unregister(PluginGroup.KINDS, "odd")


class _FailingScanner:
    anchors = ("BADGE-",)

    def scan(self, _text: str) -> list[tuple[int, str]]:
        raise OSError("no list of badges")


def test_nothing_is_sent_unscanned_because_a_scanner_fails() -> None:
    register(PluginGroup.SECRET_SCANNERS, "badges", _FailingScanner())
    try:
        chat = lamella.Conversation(model="anthropic:claude-opus-5-5")
        for _ in range(2):
            with pytest.raises(NotAvailableError, match=r"'badges'.*no list of badges"):
                chat.ask("My number is BADGE-12345.")
        assert chat.turns() == []
    finally:
        unregister(PluginGroup.SECRET_SCANNERS, "badges")


def test_no_plugin_replaces_a_built_in_part() -> None:
    def run_nothing(_run_request: object) -> object:
        raise AssertionError("the built-in runner has this name")

    register(PluginGroup.RUNNERS, "chat", run_nothing)
    register(PluginGroup.STORES, "memory", examples.open_shelf)
    try:
        with lamella.open("memory:", model="scripted:x", provider=ScriptedProvider("Yes.")) as engine:
            assert _send(engine, "Is it open?", runner="chat") == "Yes."
    finally:
        unregister(PluginGroup.RUNNERS, "chat")
        unregister(PluginGroup.STORES, "memory")


@pytest.mark.parametrize(("group", "plugin"), [(group, object()) for group in PluginGroup])
def test_an_object_of_another_form_is_refused(group: PluginGroup, plugin: object) -> None:
    with pytest.raises(BadInputError, match="'wrong' is no"):
        register(group, "wrong", plugin)


def test_an_unknown_group_or_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lamella\.hats"):
        register("lamella.hats", "top", object())
    with pytest.raises(BadInputError, match="characters"):
        register(PluginGroup.STORES, "a:b", examples.open_shelf)
    with pytest.raises(SettingError, match="no kind of store 'nowhere'"):
        lamella.open("nowhere://x")


def test_suites_say_which_promise_is_broken() -> None:
    with pytest.raises(PluginCheckError, match="Every other text has tokens"):
        check_token_counter(_WrongCounter())
    with pytest.raises(PluginCheckError, match="ids that it was given"):
        check_compaction_step(lambda _replies: ["x"])
    with pytest.raises(PluginCheckError, match="the line of the secret"):
        check_secret_scanner(_NothingFound(), "BADGE-1")


class _ForgetfulStore(InMemoryStore):
    """A store that appends wherever it is told to."""

    def append(self, conversation_key: str, batch: EventBatch, *, expected: int, **named: Any) -> int:  # noqa: ANN401
        return super().append(conversation_key, batch, expected=len(self.load(conversation_key)), **named)


def test_the_suite_of_stores_fails_for_one_that_lets_two_processes_overwrite() -> None:
    store = _ForgetfulStore()
    with pytest.raises(PluginCheckError, match="a position that another process has filled"):
        check_store(lambda _url, timeout: store, "forgetful://x")


class _NothingFound:
    anchors = ("BADGE-",)

    def scan(self, _text: str) -> list[tuple[int, str]]:
        return []


def test_plugins_of_an_installed_package_are_found_and_a_broken_one_is_skipped(tmp_path: Path) -> None:
    package = tmp_path / "plugin_package"
    (package / "house-1.0.dist-info").mkdir(parents=True)
    (package / "house-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    points = "[lamella.kinds]\nhouse = house:read\ngone = house:missing\n[lamella.runners]\nodd = house:NUMBER\n"
    (package / "house-1.0.dist-info/entry_points.txt").write_text(points)
    code = """
        from lamella.plugins import ReadText
        NUMBER = 7
        def read(name): return ReadText(text=f"House {name}.")
    """
    (package / "house.py").write_text(textwrap.dedent(code))
    program = (
        "import json, lamella; from lamella import Url; from lamella.plugins import list_plugins;"
        "turn = lamella.Conversation().ask('What?', attach=[Url(url='house:9')]);"
        "print(json.dumps([turn.messages[-1].text, [(p.name, p.package, p.problem) for p in list_plugins()]]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(package), "HOME": str(tmp_path), "PATH": ""},
    )
    prompt, listed = json.loads(done.stdout)
    assert "House 9." in prompt
    assert [name for name, package, problem in listed if package == "house" and not problem] == ["house"]
    problems = {name: problem for name, _, problem in listed}
    assert "cannot be loaded" in problems["gone"]
    assert problems["odd"] == "is no RunnerPlugin"
