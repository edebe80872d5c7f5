"""Which conversations have the memory, and where it is."""

from pathlib import Path

import pytest

from lamella.engine.memory import no_part
from lamella.errors import SettingError
from lamella.settings.configuration import Origin, Surroundings
from lamella.wiring.running.memory import find_part, forget_chat, open_memory
from lamella.wiring.services import Services, read_services


def under(origin: Origin = Origin.USER, **values: object) -> Services:
    found = ((origin, values),)
    return Services(
        surroundings=Surroundings(files={origin: Path("lamella.toml")}, found=found),
        load_models=read_services().load_models,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mine"


@pytest.mark.parametrize(("use", "talks", "has"), [("on", False, True), ("chat", True, True), ("chat", False, False)])
def test_the_setting_says_which_conversations_have_it(folder: Path, use: str, *, talks: bool, has: bool) -> None:
    services = under(memory=use, memory_folder=str(folder))
    open_memory(services=services).add("Likes tea")
    part = find_part(services, talks=talks)
    assert (part is not None) is has
    if part is not None:
        assert "- Likes tea" in part(len, 1_000, "key")


def test_switched_off_it_is_taken_out_of_every_prompt(folder: Path) -> None:
    assert find_part(under(memory="off", memory_folder=str(folder)), talks=True) is no_part
    assert no_part(len, 1_000, "key") == ""


def test_a_program_decides_for_itself(folder: Path) -> None:
    services = under(memory="off", memory_folder=str(folder))
    assert find_part(services, wanted=False) is None
    assert find_part(services, wanted=True) not in (None, no_part)


@pytest.mark.parametrize("name", ["memory", "memory_folder"])
def test_a_projects_file_says_nothing_of_it(folder: Path, name: str) -> None:
    services = under(Origin.PROJECT, **{name: "on"})
    with pytest.raises(SettingError, match=f"sets {name}"):
        find_part(services, talks=True)


def test_a_word_that_nobody_knows_is_refused() -> None:
    with pytest.raises(SettingError, match="no memory 'yes'"):
        find_part(under(memory="yes"), talks=True)


def test_what_tells_of_a_conversation_can_be_forgotten_where_there_is_nothing(folder: Path) -> None:
    forget_chat("key", services=under(memory_folder=str(folder)))
    assert not folder.exists()
