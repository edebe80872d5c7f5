"""A selection from a codebase in a conversation: attached, referred to, promoted, followed, detached as one thing."""

import json
from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.codebase.repositories import write

from lamella import Code
from lamella import open as open_engine
from lamella.attach import Codebase
from lamella.code import select_code, selection_to_attachments
from lamella.errors import LamellaError

FILES = {
    "src/beds.py": "def water_beds():\n    return 'beds are watered'\n",
    "src/tools.py": "SPADE = 'a spade'\n",
    "notes/plan.md": "Not code.\n",
}


@pytest.fixture(autouse=True)
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", FILES)


def test_selected_code_files_are_sent_under_own_ids(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("Who waters the beds?", attach=[Codebase(path="src")])
    sent = turn.messages[-1].text
    assert "<codebase_context>" in sent
    assert "<path>src/beds.py</path>" in sent
    assert "beds are watered" in sent
    assert "Not code" not in sent


def test_previously_selected_file_is_referenced(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault, layout="in_place")
    chat.ask("Who waters the beds?", attach=[Codebase(path="src", question="beds")])
    chat.reply("They do.")
    turn = chat.ask("And now?", attach=[Codebase(path="src", question="beds"), Code(path="src/beds.py")])
    assert "beds are watered" not in turn.messages[-1].text
    assert "src/beds.py" in turn.messages[-1].text


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="what is promoted goes into the library, and what is detached leaves the working set")
def test_codebase_files_are_promoted_singly_and_detached_together(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault, attachments="sticky")
    chat.ask("Who waters the beds?", attach=[Codebase(path="src")])
    chat.reply("They do.")
    turn = chat.ask("And?")
    assert turn.messages[0].text.count("beds are watered") == 1
    chat.reply("So.")
    write(vault, {"src/beds.py": "def water_beds():\n    return 'changed'\n"})
    followed = chat.ask("And now?")
    assert "'changed'" in followed.messages[-1].text
    chat.reply("So.")
    write(vault, {"src/beds.py": "def water_beds():\n    return 'changed again'\n"})
    left = chat.ask("And then?", detach=["codebase:src"])
    assert "changed again" not in left.messages[-1].text


def test_new_question_about_codebase_replaces_previous_selection(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault, layout="in_place")
    chat.ask("One", attach=[Codebase(path="src", question="beds", budget=130)])
    chat.reply("So.")
    sent = chat.ask("Two", attach=[Codebase(path="src", question="a spade", budget=130)]).messages[-1].text
    assert "<update>" in sent
    assert "a spade" in sent


def test_manual_code_selection_needs_no_vault(converse: type[Watched], vault: Path) -> None:
    selection = select_code(vault / "src", "Who waters the beds?")
    turn = converse().ask("Who?", attach=selection_to_attachments(selection))
    assert "beds are watered" in turn.messages[-1].text
    assert selection.overview in turn.messages[-1].text


@pytest.mark.parametrize(
    ("path", "code"), [("none", "source_missing"), ("../..", "source_outside"), ("src/beds.py", "source_missing")]
)
def test_missing_codebase_is_error_and_turn_is_not_sent(
    converse: type[Watched], vault: Path, path: str, code: str
) -> None:
    chat = converse(vault=vault, attachments="sticky")
    with pytest.raises(LamellaError) as raised:
        chat.ask("What?", attach=[Codebase(path=path)])
    assert raised.value.code == code
    assert chat.ask("What else?").messages[-1].text == "What else?"


def test_name_without_text_and_vault_is_error(converse: type[Watched], vault: Path) -> None:
    with pytest.raises(LamellaError) as raised:
        converse().ask("What?", attach=[Codebase(path=str(vault))])
    assert raised.value.code == "source_missing"


def test_code_selection_is_stored_and_not_repeated_after_reopen(vault: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    with open_engine(store, vault=vault) as engine:
        conversation = engine.chat("garden", attachments="sticky")
        first = conversation.ask("Who waters the beds?", attach=[Codebase(path="src")])
        conversation.reply("They do.")
        exported = conversation.transcript()
    write(vault, {"src/new_beds.py": "def water_new_beds(): ...\n"})
    with open_engine(store, vault=vault) as engine:
        again = engine.chat("garden").ask("And?")
    assert again.messages[0].text.count("beds are watered") == 1
    assert "new_beds" not in "".join(one.text for one in again.messages)
    assert "codebase" in json.dumps(exported)
    assert "beds are watered" in first.messages[-1].text
