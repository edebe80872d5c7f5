"""Which conversations have the memory, and where it is."""

from pathlib import Path

import pytest

from lamella.conversation.memory import no_memory_text
from lamella.errors import SettingError
from lamella.settings.loading import SettingOrigin, SettingsSources
from lamella.wiring.memory import choose_memory_renderer, open_memory, remove_conversation_fact
from lamella.wiring.services import ServiceContainer, read_services


def under(origin: SettingOrigin = SettingOrigin.USER, **values: object) -> ServiceContainer:
    found = ((origin, values),)
    return ServiceContainer(
        settings_sources=SettingsSources(files={origin: Path("lamella.toml")}, values_by_origin=found),
        load_models=read_services().load_models,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mine"


@pytest.mark.parametrize(("use", "talks", "has"), [("on", False, True), ("chat", True, True), ("chat", False, False)])
def test_memory_setting_decides_which_conversations_have_it(folder: Path, use: str, *, talks: bool, has: bool) -> None:
    services = under(memory=use, memory_folder=str(folder))
    open_memory(services=services).add("Likes tea")
    part = choose_memory_renderer(services, is_interactive=talks)
    assert (part is not None) is has
    if part is not None:
        assert "- Likes tea" in part(len, 1_000, "key")


def test_disabled_memory_is_removed_from_prompts(folder: Path) -> None:
    assert choose_memory_renderer(under(memory="off", memory_folder=str(folder)), is_interactive=True) is no_memory_text
    assert no_memory_text(len, 1_000, "key") == ""


def test_program_chooses_its_own_memory(folder: Path) -> None:
    services = under(memory="off", memory_folder=str(folder))
    assert choose_memory_renderer(services, enabled=False) is None
    assert choose_memory_renderer(services, enabled=True) not in (None, no_memory_text)


@pytest.mark.parametrize("name", ["memory", "memory_folder"])
def test_project_cannot_set_memory(folder: Path, name: str) -> None:
    services = under(SettingOrigin.PROJECT, **{name: "on"})
    with pytest.raises(SettingError, match=f"sets {name}"):
        choose_memory_renderer(services, is_interactive=True)


def test_unknown_memory_value_is_refused() -> None:
    with pytest.raises(SettingError, match="no memory 'yes'"):
        choose_memory_renderer(under(memory="yes"), is_interactive=True)


def test_forgetting_unknown_conversation_does_nothing(folder: Path) -> None:
    remove_conversation_fact("key", services=under(memory_folder=str(folder)))
    assert not folder.exists()
