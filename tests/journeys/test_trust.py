"""Somebody else's words choose no place: not a project's file, not an archive, not a copied store."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, SECONDS, Ran, refusal, spawn_in
from tests.journeys.terminal import ENTER, Terminal
from tests.unit.providers.secret_scanner.test_formats import MADE

import lamella
from lamella.errors import SettingError

KEY = "sk-of-mine-1234"
# No line is wrapped, whatever folder the tests are in.
WIDE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A server that notices whoever comes."""

    socket: socket.socket

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    @property
    def model(self) -> str:
        return f"openai-compatible:http://{self.address}/v1#m"

    def was_asked(self) -> bool:
        with suppress(BlockingIOError):
            self.socket.accept()[0].close()
            return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A user with a folder to work in, where somebody else's files may lie."""

    here: Path
    environment: Mapping[str, str]

    def run(self, *words: str, typed: str = "", **environment: str) -> Ran:
        return spawn_in(
            {**os.environ, **self.environment, **environment}, *words, stdin=typed.encode(), folder=self.here
        )

    def project(self, text: str) -> Path:
        file = self.here / "lamella.toml"
        file.write_text(text, encoding="utf-8")
        return file

    @property
    def trust_file(self) -> Path:
        return Path(self.environment["XDG_CONFIG_HOME"]) / "lamella" / "trust.json"


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield Stranger(socket=listening)


@pytest.fixture
def desk(home: Mapping[str, str], tmp_path: Path) -> Desk:
    here = tmp_path / "project"
    here.mkdir()
    return Desk(here=here, environment={**home, "LAMELLA_API_KEY": KEY})


@pytest.fixture
def theirs(tmp_path: Path, script: Callable[..., str]) -> Desk:
    """Somebody else, who has begun a conversation called plans."""
    here = tmp_path / "theirs"
    here.mkdir()
    environment = {"HOME": str(here), "XDG_CONFIG_HOME": str(here / "config"), "LAMELLA_CONFIG": os.devnull}
    desk = Desk(here=here, environment=environment)
    assert desk.run("ask", "hello", "--chat", "plans", "--model", script("Hi.")).exit == 0
    return desk


def point_at(desk: Desk, model: str) -> None:
    """Have the conversation name another model from now on, as a program can."""
    code = "import sys, lamella; lamella.open(sys.argv[1]).chat('plans', model=sys.argv[2]).ask('x')"
    url = f"sqlite:///{desk.here}/.lamella/chats.db"
    subprocess.run(
        [sys.executable, "-c", code, url, model], env={**os.environ, **desk.environment}, check=True, timeout=SECONDS
    )


def import_by_archive(theirs: Desk, desk: Desk) -> tuple[str, ...]:
    assert theirs.run("chats", "export", "plans", "--to", str(desk.here)).exit == 0
    [file] = desk.here.glob("*.md")
    assert desk.run("chats", "import", str(file)).exit == 0
    return ()


def import_by_copy(theirs: Desk, desk: Desk) -> tuple[str, ...]:
    target = Path(desk.environment["HOME"]) / ".lamella" / "chats.db"
    target.parent.mkdir()
    source = f"sqlite:///{theirs.here}/.lamella/chats.db"
    assert desk.run("store", "copy", "--from", source, "--to", f"sqlite:///{target}").exit == 0
    return ()


def import_file(theirs: Desk, desk: Desk) -> tuple[str, ...]:
    shutil.copy(theirs.here / ".lamella" / "chats.db", desk.here / "got.db")
    return ("--store", "sqlite:///got.db")


@pytest.mark.parametrize("bring", [import_by_archive, import_by_copy, import_file])
def test_imported_conversation_cannot_choose_server(
    bring: Callable[[Desk, Desk], tuple[str, ...]], theirs: Desk, desk: Desk, stranger: Stranger
) -> None:
    point_at(theirs, stranger.model)
    store = bring(theirs, desk)
    told = refusal(desk.run("ask", "my secret", "--chat", "plans", "--json", *store), code="untrusted")
    assert told.startswith(f"The conversation names the model openai-compatible:http://{stranger.address}/v1, and you")
    assert "LAMELLA_API_KEY would be sent to it" in told
    assert desk.run("chats", "regenerate", "plans", *store).exit == 2
    assert not stranger.was_asked()
    # It goes on with a model of one's own.
    assert desk.run("ask", "hello", "--chat", "plans", "--model", "local", "--max-tokens", "1", *store).exit == 0


def test_updated_archive_cannot_choose_other_server(
    theirs: Desk, desk: Desk, stranger: Stranger, script: Callable[..., str]
) -> None:
    import_by_archive(theirs, desk)
    mine = script("Mine.")
    assert desk.run("ask", "hello", "--chat", "plans").exit == 2
    assert desk.run("trust", "add", "model", mine).exit == 0
    point_at(theirs, stranger.model)
    import_by_archive(theirs, desk)
    refused = desk.run("ask", "my secret", "--chat", "plans")
    assert f"The conversation names the model openai-compatible:http://{stranger.address}/v1, and you" in refused.err
    assert not stranger.was_asked()


def test_untrusted_model_of_conversation_is_not_called(
    theirs: Desk, desk: Desk, stranger: Stranger, script: Callable[..., str]
) -> None:
    point_at(theirs, stranger.model)
    store = import_file(theirs, desk)
    mine = script("Mine.", "Mine again.")
    assert desk.run("ask", "hello", "--chat", "plans", "--model", mine, *store).out == "Mine.\n"
    shown = desk.run("chats", "show", "plans", *store).out
    [asked] = [line.split()[0] for line in shown.splitlines() if line.endswith("user: x")]
    refused = desk.run("chats", "regenerate", "plans", asked, *store)
    assert (refused.exit, refused.out) == (2, "")
    assert f"lamella trust add model openai-compatible:http://{stranger.address}/v1`" in refused.err
    assert desk.run("chats", "show", "plans", *store).out == shown
    assert not stranger.was_asked()
    again = desk.run("chats", "regenerate", "plans", asked, "--model", mine, *store)
    assert again.out == "Mine.\n", again.err


def test_project_cannot_choose_server(desk: Desk, stranger: Stranger) -> None:
    project = desk.project(f'model = "{stranger.model}"\n')
    for words in (("ask", "my secret"), ("ask", "my secret", "--chat", "new"), ("chat", "new")):
        refused = desk.run(*words)
        assert (refused.exit, refused.out) == (2, "")
        assert refused.err.splitlines()[-2].startswith(f"error: {project} names the model openai-compatible:http://")
        assert f"`lamella trust add model openai-compatible:http://{stranger.address}/v1`" in refused.err
        assert KEY not in refused.err
    assert not stranger.was_asked()
    assert f"names the model openai-compatible:http://{stranger.address}/v1" in desk.run("config", "show").out


@pytest.mark.parametrize("model", ["anthropic:claude-opus-5-5", "gemini:gemini-3.8-flash", "gguf:weights.gguf"])
def test_project_cannot_choose_model_provider_or_file(desk: Desk, model: str) -> None:
    desk.project(f'model = "{model}"\n')
    told = refusal(desk.run("ask", "my secret", "--json", ANTHROPIC_API_KEY=KEY, GEMINI_API_KEY=KEY), code="untrusted")
    assert f"names the model {model.partition(':')[0]}:" in told
    assert f"names the model {model.partition(':')[0]}:" in desk.run("config", "show").out


def test_bundled_model_and_memory_store_need_no_trust(desk: Desk) -> None:
    desk.project('model = "local"\nstore = "memory:"\n')
    assert desk.run("ask", "Hello?", "--chat", "x", "--max-tokens", "2").exit == 0
    assert not desk.trust_file.exists()


def test_project_cannot_choose_store_or_receive_password(desk: Desk, stranger: Stranger) -> None:
    project = desk.project(f'store = "postgresql://me:pw@{stranger.address}/chats"\n')
    every = [("chats", "list"), ("chats", "search", "x"), ("store", "stats"), ("ledger", "x"), ("replay", "x")]
    for words in (
        *every,
        ("ask", "hi", "--chat", "x"),
        ("recall", "x", "y"),
        ("compact", "x"),
        ("chats", "export", "x"),
    ):
        refused = desk.run(*words, PGPASSWORD=KEY)
        assert refused.exit == 2, words
        assert f"error: {project} names the store postgresql://me@{stranger.address}/chats, and you" in refused.err
        assert "pw" not in refused.err.replace(str(project), "")
        assert "; PGPASSWORD would be sent to it." in refused.err
    assert not stranger.was_asked()


def test_project_cannot_disable_secret_warnings(desk: Desk, script: Callable[..., str]) -> None:
    file = desk.project('secrets = "off"\n')
    said = f"{file} sets secrets, which only your own settings may."
    for kept in ((), ("--chat", "plans")):
        asked = desk.run("ask", f"Use {MADE['ghp_']}", "--model", script("Yes."), "--json", *kept)
        assert refusal(asked, code="bad_setting") == said
    assert said in desk.run("config", "show").err
    own = desk.run("ask", f"Use {MADE['ghp_']}", "--model", script("Yes."), "--json", LAMELLA_SECRETS="warn")
    assert own.exit == 0, own.err
    assert "looks like a GitHub token" in own.out


def test_project_cannot_disable_secret_warnings_in_python(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.project('secrets = "off"\n')
    monkeypatch.chdir(desk.here)
    with pytest.raises(SettingError, match="sets secrets"):
        lamella.Conversation()
    with lamella.open("memory:") as engine, pytest.raises(SettingError, match="sets secrets"):
        engine.chat("plans")
    assert lamella.Conversation(secrets="warn").ask("Hello").number == 1


def test_project_file_in_parent_folder_is_untrusted(desk: Desk, stranger: Stranger) -> None:
    project = desk.project(f'model = "{stranger.model}"\nstore = "postgresql://{stranger.address}/x"\n')
    below = Desk(here=desk.here / "deep" / "below", environment=desk.environment)
    below.here.mkdir(parents=True)
    assert f"error: {project} names the store" in below.run("chats", "list").err
    assert f"error: {project} names the model" in below.run("ask", "hi").err
    assert not stranger.was_asked()


def test_project_facts_cannot_redirect_known_model_name(desk: Desk) -> None:
    (desk.here / "facts.toml").write_text(
        '[[model]]\nmatch = "gpt-6"\nprovider = "anthropic"\nas_of = 2026-01-01\n', encoding="utf-8"
    )
    project = desk.project('model_facts = "facts.toml"\n')
    refused = desk.run("ask", "my secret", "--model", "gpt-6", ANTHROPIC_API_KEY=KEY)
    assert f"error: {project} names the model anthropic:gpt-6, and you have not." in refused.err
    assert "There is no key for OpenAI" in desk.run("ask", "my secret", "--model", "openai:gpt-6").err


def test_project_store_file_needs_trust_in_each_folder(desk: Desk, tmp_path: Path, script: Callable[..., str]) -> None:
    desk.project('store = "sqlite:///chats.db"\n')
    words = ("ask", "hi", "--chat", "x", "--model", script("One.", "Two."))
    assert desk.run(*words).exit == 2
    assert not (desk.here / "chats.db").exists()
    assert desk.run("trust", "add", "store", "sqlite:///chats.db").exit == 0
    assert desk.run(*words).out == "One.\n"
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = Desk(here=other, environment=desk.environment)
    elsewhere.project('store = "sqlite:///chats.db"\n')
    assert elsewhere.run("chats", "list").exit == 2


def test_location_named_by_user_is_used_wherever_named(desk: Desk, tmp_path: Path, script: Callable[..., str]) -> None:
    model, url = script("One."), "sqlite:///own.db"
    desk.project(f'model = "{model}"\nstore = "{url}"\n')
    own = tmp_path / "own.toml"
    own.write_text(f'model = "{model}"\nstore = "{url}"\n', encoding="utf-8")
    for environment in ({"LAMELLA_MODEL": model, "LAMELLA_STORE": url}, {"LAMELLA_CONFIG": str(own)}):
        assert desk.run("ask", "hi", "--chat", "x", **environment).out == "One.\n"
        desk.trust_file.unlink()
    assert desk.run("ask", "hi", "--chat", "x", "--store", url, "--model", model).out == "One.\n"


def test_conversation_continues_with_model_it_started_with(desk: Desk, script: Callable[..., str]) -> None:
    assert desk.run("ask", "hi", "--chat", "x", "--model", script("One.")).out == "One.\n"
    assert desk.run("ask", "hi", "--chat", "x").out == "One.\n"
    assert desk.run("ask", "hi", "--model", script("Two.")).out == "Two.\n"
    [row] = json.loads(desk.run("trust", "list", "--json").out)["trusted"]
    assert (row["field"], row["place"]) == ("model", script("Two."))


def test_model_that_never_answered_is_not_trusted(desk: Desk, script: Callable[..., str]) -> None:
    unused, other = script("Never."), desk.here / "other.json"
    other.write_text(json.dumps([]), encoding="utf-8")
    typed = f"/model openai:gpt-5\n/model {unused}\n/model openai-compatible:http://10.0.0.7/v1#m\n/quit\n"
    named = desk.run("chat", "x", "--model", unused, typed=typed)
    assert "OPENAI_API_KEY" in named.err, "the first has no key"
    assert "openai-compatible:http://10.0.0.7/v1#m (from the next message on" in named.out, named.err
    assert not desk.trust_file.exists()
    assert desk.run("ask", "hi", "--chat", "y", "--model", f"scripted:{other}").exit != 0, "it has nothing to say"
    assert not desk.trust_file.exists()
    assert "and you have not" in refusal(desk.run("ask", "hi", "--chat", "y", "--json"), code="untrusted")


def test_continue_command_names_model_that_would_be_refused(desk: Desk) -> None:
    model = "openai-compatible:http://127.0.0.1:1/v1#m"
    left = desk.run("chat", "x", "--model", model, typed="hi\n")
    assert left.err.splitlines()[-1] == f"Saved. Continue with: lamella chat x --model '{model}'"
    refused = desk.run("chat", "x")
    assert refused.exit == 2
    assert refused.err.splitlines()[-1].endswith("/v1`. Or name the model yourself with --model NAME.")
    again = desk.run("chat", "x", "--model", model, typed="/quit\n")
    assert again.exit == 0, again.err


def test_resume_command_names_model_that_would_be_refused(desk: Desk, stranger: Stranger) -> None:
    words = (*COMMAND, "ask", "hi", "--chat", "x", "--model", stranger.model)
    environment = {**os.environ, **desk.environment}
    with subprocess.Popen(words, cwd=desk.here, env=environment, stderr=subprocess.PIPE, text=True) as asking:
        stranger.socket.settimeout(SECONDS)
        with stranger.socket.accept()[0]:
            asking.send_signal(signal.SIGINT)
            _, told = asking.communicate(timeout=SECONDS)
    assert told.endswith(f"The question is saved. Continue with: lamella chats resume x --model '{stranger.model}'\n")


def test_model_chosen_in_chat_is_trusted_after_answer(desk: Desk, script: Callable[..., str]) -> None:
    model = script("One.", "Two.")
    assert desk.run("chat", "x", "--model", "local", typed=f"/model {model}\nhi\n").exit == 0
    [row] = json.loads(desk.run("trust", "list", "--json").out)["trusted"]
    assert (row["field"], row["place"]) == ("model", model)


def test_trust_is_stored_privately_listed_and_revoked(desk: Desk) -> None:
    assert desk.run("trust", "list").out.startswith("No entries.")
    desk.trust_file.parent.mkdir(parents=True, mode=0o755)
    added = desk.run("trust", "add", "model", "anthropic")
    assert added.out == "Trusted: anthropic\n"
    assert desk.run("trust", "add", "model", "Anthropic").out == "Already trusted: anthropic\n"
    assert desk.run("trust", "add", "store", "postgresql://me:secret@h/x").exit == 0
    assert "secret" not in desk.trust_file.read_text(encoding="utf-8")
    assert [desk.trust_file.stat().st_mode & 0o777, desk.trust_file.parent.stat().st_mode & 0o777] == [0o600, 0o700]
    listed = [line.split() for line in desk.run("trust", "list").out.splitlines()]
    assert [(row[0], row[2]) for row in listed] == [("model", "anthropic"), ("store", "postgresql://me@h/x")]
    # All models of a provider that is trusted are.
    desk.project('model = "anthropic:claude-opus-5-5"\n')
    assert "There is no key for Anthropic" in desk.run("ask", "hi").err
    assert desk.run("trust", "remove", "model", "anthropic").out == "No longer trusted: anthropic\n"
    assert desk.run("trust", "remove", "model", "anthropic").exit == 2
    assert "names the model anthropic:" in desk.run("ask", "hi").err


def test_trust_commands_print_json(desk: Desk) -> None:
    place = {"lamella": 1, "field": "model", "place": "anthropic:claude-opus-5-5"}
    words = ("model", "claude-opus-5-5", "--json")
    assert json.loads(desk.run("trust", "add", *words).out) == {**place, "trusted": True, "new": True}
    assert json.loads(desk.run("trust", "add", *words).out) == {**place, "trusted": True, "new": False}
    assert json.loads(desk.run("trust", "remove", *words).out) == {**place, "trusted": False}
    assert refusal(desk.run("trust", "remove", *words), code="bad_usage").startswith("Trusted entry not found: ")


def test_invalid_place_cannot_be_trusted_and_broken_file_is_reported(desk: Desk) -> None:
    for words in (("colour", "red"), ("model", "openai-compatible"), ("model", "local"), ("store", "memory:")):
        refused = desk.run("trust", "add", *words)
        assert (refused.exit, len(refused.err.splitlines())) == (2, 2), words
    desk.trust_file.parent.mkdir(parents=True)
    desk.trust_file.write_text("[", encoding="utf-8")
    assert f"{desk.trust_file} cannot be read" in desk.run("trust", "list").err
    desk.trust_file.unlink()
    os.mkfifo(desk.trust_file)
    assert f"{desk.trust_file} cannot be read: it is a pipe, not a file." in desk.run("trust", "list").err


def test_terminal_asks_for_trust_once(desk: Desk, script: Callable[..., str]) -> None:
    model = script("One.", "Two.")
    url = f"sqlite:///{desk.here}/chats.db"
    desk.project(f'model = "{model}"\nstore = "{url}"\n')
    words = ("chat", "talk")
    with Terminal(words, desk.environment, columns=WIDE, folder=desk.here) as terminal:
        terminal.wait_for(f"{desk.here}/lamella.toml names the store {url}, and you have not.")
        terminal.wait_for(f"Use {url} from now on? [y/N]")
        terminal.press_now("n", ENTER)
        terminal.wait_for("If you trust it, run `lamella trust add store")
        assert terminal.wait_for_end() == 2
    assert not (desk.here / "chats.db").exists()
    with Terminal(words, desk.environment, columns=WIDE, folder=desk.here) as terminal:
        terminal.wait_for(f"Use {url} from now on? [y/N]")
        terminal.press_now("y", ENTER)
        terminal.wait_for(f"Trusted. To undo: lamella trust remove store {url}")
        terminal.wait_for(f"Use {model} from now on? [y/N]")
        terminal.press_now("y", ENTER)
        terminal.wait_for("tokens used")
        terminal.press("hi", ENTER)
        terminal.wait_for("One.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    with Terminal(words, desk.environment, columns=WIDE, folder=desk.here) as terminal:
        terminal.wait_for("(1 turn)")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert "from now on" not in terminal.shown


def test_refused_trust_is_not_asked_again(desk: Desk, script: Callable[..., str]) -> None:
    mine = script("One.")
    assert desk.run("ask", "hi", "--chat", "plans", "--model", mine).exit == 0
    other = desk.here / "other.json"
    other.write_text(json.dumps(["Theirs."]), encoding="utf-8")
    point_at(Desk(here=Path(desk.environment["HOME"]), environment=desk.environment), f"scripted:{other}")
    with Terminal(["chat", "plans"], desk.environment, columns=WIDE) as terminal:
        terminal.wait_for(f"The conversation names the model scripted:{other}, and you have not.")
        terminal.press_now("n", ENTER)
        assert terminal.wait_for_end() == 2
    assert terminal.shown.count("from now on?") == 1


PROGRAM = """
import asyncio, sys, lamella
async def main():
    url, model = sys.argv[1:]
    with lamella.open(url) as engine:
        chat = await engine.conversation("plans")
        for given in (None, model):
            try:
                print("".join([event.text async for event in chat.send("hi", model=given)]))
            except lamella.LamellaError as error:
                print(error.code, error.hint)
        [print(event.text) async for event in chat.send(chat.regenerate()) if event.text]
asyncio.run(main())
"""


def test_python_is_refused_with_hint_and_may_name_model(theirs: Desk, desk: Desk, script: Callable[..., str]) -> None:
    import_file(theirs, desk)
    model = script("Yes.", "Again.")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "sqlite:///got.db", model],
        cwd=desk.here,
        env={**os.environ, **desk.environment},
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    refused, *answers = done.stdout.decode().splitlines()
    assert answers == ["Yes.", "Again."], done.stderr
    assert refused == f"untrusted If you trust it, name it in your program: model={model!r}.", done.stderr
    assert not desk.trust_file.exists()


def test_imported_archive_cannot_choose_runner_or_paid_settings(
    theirs: Desk, desk: Desk, script: Callable[..., str]
) -> None:
    with lamella.open(f"sqlite:///{theirs.here}/chats.db") as engine:
        conversation = engine.chat("plans", model="local", runner="agent", keep_alive=2, steps=99)
        conversation.ask("When?")
        conversation.reply("Now.")
        archive = engine.export_archive("plans", theirs.here)
    done = desk.run("chats", "import", str(archive))
    assert done.exit == 0, done
    for name, value in (("runner", '"agent"'), ("keep_alive", "2"), ("steps", "99")):
        assert f"sets {name} to {value}, which is not used until you set {name} yourself." in done.out + done.err
    again = desk.run("chats", "import", str(archive))
    assert (again.exit, again.out.split()[0]) == (0, "same"), again
    assert "which is not used" not in again.out + again.err
    with lamella.open(f"sqlite:///{desk.here}/mine.db") as engine:
        chat, _, warnings = engine.import_archive(archive)
        assert len(warnings) == 3
        assert (chat.default_runner, chat.max_keep_alives) == ("chat", 0)
        chat.set(runner="agent")
        assert chat.default_runner == "agent"
        chat.ask("And now?")
        chat.reply("Later.")
        engine.export_archive("plans", desk.here)
    # What was continued there comes back, although settings were withheld in between.
    with lamella.open(f"sqlite:///{theirs.here}/chats.db") as engine:
        chat, outcome, warnings = engine.import_archive(next(desk.here.glob("*.md")))
        assert (str(outcome), len(chat.turns())) == ("extended", 2)
        assert [warning.split()[3] for warning in warnings] == ["runner"]
        assert chat.max_keep_alives == 2
