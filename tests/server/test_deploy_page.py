"""The page about running the server tells true: its metrics and spans are those there are."""

import re
import tomllib

from tests.contracts.console import blocks
from tests.contracts.places import doc

from lamella.faces.server.watching.meters import ServerMeters
from lamella.settings.checks import check_settings


def test_every_metric_is_told_and_every_one_that_is_told_is_there() -> None:
    told = set(re.findall(r"`(lamella_\w+)`", doc("deploy.md")))
    families = ServerMeters().registry.collect()
    assert told == {one.name + ("_total" if one.type == "counter" else "") for one in families}


def test_the_settings_that_the_page_shows_are_settings() -> None:
    (shown,) = [block.body for block in blocks(doc("deploy.md")) if block.language == "toml"]
    settings = check_settings(tomllib.loads(shown))
    assert settings.serve.hosts == ["chats.example"]
