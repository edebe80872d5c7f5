"""MCP servers that may be started: the user's own, and those of a project that the user trusts."""

from pathlib import Path

import pytest

from lamella.errors import SettingError, UntrustedError
from lamella.settings.loading import SettingOrigin, SettingsSources
from lamella.wiring.mcp import build_server_spec, get_server_trust_key, is_trusted, list_servers, open_servers
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import add_trust, open_trust_file

OWN = {"files": {"command": "npx", "args": ["-y", "a server"]}}
THEIRS = {"theirs": {"command": "./run.sh", "env": ["HOME"]}}


def under(tmp_path: Path, **tables: object) -> ServiceContainer:
    """Settings with a table of servers by where it was found: user, project or environment."""
    origins = {"user": SettingOrigin.USER, "project": SettingOrigin.PROJECT, "environment": SettingOrigin.ENVIRONMENT}
    found = tuple((origins[name], {"mcp": table}) for name, table in tables.items())
    files = dict.fromkeys((SettingOrigin.USER, SettingOrigin.PROJECT), tmp_path / "lamella.toml")
    return ServiceContainer(
        settings_sources=SettingsSources(files=files, values_by_origin=found),
        load_models=read_services().load_models,
    )


def test_servers_of_all_places_are_there_by_name(tmp_path: Path) -> None:
    url = {"web": {"url": "https://example.org/mcp", "token": "WEB_TOKEN"}}
    services = under(tmp_path, user=OWN, project=THEIRS, environment=url)
    assert [(one.name, one.trust_line, is_trusted(one)) for one in list_servers(services)] == [
        ("files", "files: npx -y 'a server'", True),
        ("theirs", f"theirs: ./run.sh in {tmp_path} (gets HOME)", False),
        ("web", "web: https://example.org/mcp (gets WEB_TOKEN)", True),
    ]


def test_project_cannot_replace_user_server(tmp_path: Path) -> None:
    services = under(tmp_path, user=OWN, project={"files": {"command": "evil"}})
    assert [one.trust_line for one in list_servers(services)] == ["files: npx -y 'a server'"]


def test_project_server_starts_after_trust_of_whole_command(tmp_path: Path) -> None:
    services = under(tmp_path, project=THEIRS)
    place = list_servers(services)[0].trust_line
    with pytest.raises(UntrustedError, match=r"names the MCP server theirs: \./run\.sh"):
        open_servers(services).tools()
    add_trust("mcp", place)
    try:
        assert is_trusted(list_servers(services)[0])
        other = under(tmp_path, project={"theirs": {"command": "./run.sh", "env": ["HOME", "OPENAI_API_KEY"]}})
        assert not is_trusted(list_servers(other)[0])
    finally:
        open_trust_file().remove("mcp", place)


def test_opening_servers_starts_and_asks_nothing(tmp_path: Path) -> None:
    open_servers(under(tmp_path, project=THEIRS)).close()


def test_server_trust_key_is_found_by_name_or_shown_line(tmp_path: Path) -> None:
    services = under(tmp_path, project=THEIRS)
    place = list_servers(services)[0].trust_line
    assert (get_server_trust_key("theirs", services), get_server_trust_key("gone: ./x", services)) == (
        place,
        "gone: ./x",
    )
    with pytest.raises(SettingError, match="No project here"):
        get_server_trust_key("files", services)


def test_only_variables_that_are_listed_are_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_TOKEN", "t0ken")
    tables = {"a": {"command": "./x", "env": ["WEB_TOKEN"]}, "b": {"url": "http://127.0.0.1:1/", "token": "WEB_TOKEN"}}
    command, address = (build_server_spec(one) for one in list_servers(under(tmp_path, project=tables)))
    assert (command.command, dict(command.environment), command.folder) == (
        ("./x",),
        {"WEB_TOKEN": "t0ken"},
        str(tmp_path),
    )
    assert (address.url, address.token) == ("http://127.0.0.1:1/", "t0ken")
    monkeypatch.delenv("WEB_TOKEN")
    with pytest.raises(SettingError, match="WEB_TOKEN, which is not set"):
        build_server_spec(list_servers(under(tmp_path, project=tables))[0])


@pytest.mark.parametrize(
    ("name", "table", "told"),
    [
        ("two__marks", {"command": "x"}, "name"),
        ("", {"command": "x"}, "name"),
        ("n" * 25, {"command": "x"}, "name"),
        ("näme", {"command": "x"}, "name"),
        ("it", {}, "neither a command nor a url"),
        ("it", {"command": "x", "url": "http://h/"}, "a command and a url"),
        ("it", {"command": " "}, "an empty command"),
        ("it", {"command": "x", "token": "T"}, "a token, which is for a url"),
        ("it", {"command": "tools/server"}, "another one in every folder"),
        ("it", {"command": "x", "seconds": 0}, "waits 0 seconds"),
        ("it", {"url": "ftp://h/"}, "none of http or https"),
        ("it", {"url": "http://"}, "none of http or https"),
        ("it", {"url": "http://h:x/"}, "a url that is none"),
        ("it", {"url": "http://me:secret@h/"}, "a password in its url"),
    ],
)
def test_invalid_server_is_refused(tmp_path: Path, name: str, table: object, told: str) -> None:
    with pytest.raises(SettingError, match=told) as refused:
        list_servers(under(tmp_path, user={name: table}))
    assert "secret" not in refused.value.message
