"""Everything that has a name is in the docs, with its true values; and what the docs name is there."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from msgspec import Struct, structs
from pydantic import BaseModel
from tests.contracts.console import blocks, run_command
from tests.contracts.places import DOCS, ROOT, SRC, doc, python_files, tree
from tests.contracts.tables import names, rows
from tests.contracts.walks import walk_in_new_process

import lamella
from lamella import errors, refusals
from lamella.adapters.archive.attachments import AttachmentIn
from lamella.adapters.archive.transcript import (
    CallIn,
    ResultIn,
    RoundIn,
    SystemIn,
    ToolDefinitionIn,
    ToolIn,
    Transcript,
    TurnIn,
    parse_transcript,
)
from lamella.adapters.providers.facts import caches, day, models, prices
from lamella.adapters.sources.vault import MAX_FILE_BYTES
from lamella.adapters.tokens.families import FAMILIES, GENERIC
from lamella.core.artifacts.kinds import KINDS, Promotion
from lamella.core.artifacts.model import Kind, Policy
from lamella.core.compaction.rules import KindRules, SummaryRules
from lamella.core.ledger.cache import GENERIC_PROFILE, CacheProfile
from lamella.core.log.call import Cause
from lamella.core.log.placement import Form
from lamella.core.log.receipt import STEP_ORDER
from lamella.core.log.terms import History
from lamella.core.log.turn import PART_NAMES
from lamella.core.prompt.folding import SHOWN_TURNS
from lamella.core.prompt.laws import LAWS
from lamella.core.prompt.layers.model import STAND_INS, LayerId
from lamella.engine.checks import GivenLimits
from lamella.faces.cli.app import make_app
from lamella.faces.cli.chat.slash import COMMANDS
from lamella.profiles import GENERIC_PICTURES, PictureProfile
from lamella.settings import PROFILES, CompactionSettings, KindSettings, Settings, SummarySettings
from lamella.wiring import faults, reading
from lamella.wiring.running import workplaces
from lamella.wiring.serving import rules


def test_every_setting_is_documented_with_its_variable_and_default() -> None:
    told = [[cell.strip("`") for cell in cells[:3]] for cells in rows(doc("settings.md"))]
    assert told == [
        [name, f"LAMELLA_{name.upper()}", _default(getattr(Settings(), name))] for name in Settings.__struct_fields__
    ]


def _default(value: object) -> str:
    if isinstance(value, Struct):
        return "{}" if value == type(value)() else repr(value)
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_every_setting_of_a_conversation_can_stand_in_a_transcript() -> None:
    of_the_machine = {
        "store",
        "model_facts",
        "instructions_file",
        "cache_storage",
        "index_folder",
        "summarizer",
        "keep_alive",
    } | {
        # What calls tools goes by these; a replay calls none.
        "steps",
        "turn_seconds",
        "turn_tokens",
        "max_cost",
        "memory",
        "memory_folder",
        "memory_writes",
        "log_preview",
        "workflow_folder",
        "mcp",
        "serve",
        "private_addresses",
        "page_bytes",
        "page_seconds",
        "video_languages",
        "document_seconds",
        "document_memory",
        "conversions",
        "conversions_bytes",
        "note_writes",
        "note_backups",
        "web_search",
    }
    assert set(Settings.__struct_fields__) - of_the_machine <= set(Transcript.model_fields)


def test_every_step_of_the_chain_is_documented_in_its_order() -> None:
    assert names(doc("compaction.md"), under="The chain") == list(STEP_ORDER)


def test_every_setting_of_the_chain_is_documented_with_its_default() -> None:
    told = {cells[0].strip("`"): cells[1] for cells in rows(doc("compaction.md"), under="Settings of the chain")}
    models = (CompactionSettings, KindSettings, SummarySettings)
    assert set(told) == {name for model in models for name in model.__struct_fields__}
    ships = {**structs.asdict(KindRules()), **structs.asdict(SummaryRules())}
    assert {name: told[name] for name in ships} == {name: _default(value) for name, value in ships.items()}


def test_every_profile_is_documented_with_what_it_sets() -> None:
    told = {cells[0].strip("`"): cells[1] for cells in rows(doc("compaction.md"), under="Profiles")}
    assert set(told) == set(PROFILES)
    for name, sets in PROFILES.items():
        assert [
            line for setting, value in sets.items() for line in _sets(setting, value) if line not in told[name]
        ] == []


def _sets(setting: str, value: object) -> list[str]:
    """What a page says of a setting and its value; of a table, of each field in it."""
    if isinstance(value, dict):
        return [line for field, one in value.items() for line in _sets(f"{setting}.{field}", one)]
    return [f"`{setting}` {', '.join(value) if isinstance(value, list) else _default(value)}"]


def test_history_modes_are_documented_with_how_much_they_show() -> None:
    told = {cells[0].strip("`"): cells[1] for cells in rows(doc("compaction.md"), under="How much of the talk is sent")}
    assert set(told) == set(History)
    assert all(f"{shown} unless set" in told[mode] for mode, shown in SHOWN_TURNS.items())


def _error_classes(root: type[errors.LamellaError] = errors.LamellaError) -> Iterator[type[errors.LamellaError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)


def test_every_error_code_is_documented_with_its_exit_code() -> None:
    told = {cells[0].strip("`"): cells[1] for cells in rows(doc("errors.md"))}
    assert told == {c.code: "2" if issubclass(c, errors.BadInputError) else "1" for c in _error_classes()}


def test_every_error_stands_in_the_drawn_tree() -> None:
    drawn = f"{inspect.getdoc(errors)}\n{inspect.getdoc(refusals)}"
    for error in _error_classes():
        has_own_code = error not in (errors.LamellaError, errors.BadInputError)
        assert re.search(rf"{error.__name__}\b" + (rf"\s+{error.code}\b" if has_own_code else ""), drawn), error


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [error.code for error in _error_classes()]
    assert len(set(codes)) == len(codes)


def test_the_size_of_a_file_that_is_too_large_is_documented() -> None:
    assert f"{MAX_FILE_BYTES:,} bytes" in doc("errors.md")


def test_every_law_is_documented_under_its_name_with_its_statement() -> None:
    text = doc("laws.md")
    assert re.findall(r"^## (\w+)\n\n(.+)$", text, re.MULTILINE) == [(law.name, law.statement) for law in LAWS]


MODELS: list[tuple[str, type[BaseModel]]] = [
    ("The conversation", Transcript),
    ("A turn", TurnIn),
    ("system", SystemIn),
    ("tools", ToolIn),
    ("rounds", RoundIn),
    ("tool_definitions", ToolDefinitionIn),
]


@pytest.mark.parametrize(("heading", "model"), MODELS)
def test_every_field_of_a_transcript_is_documented(heading: str, model: type[BaseModel]) -> None:
    assert sorted(names(doc("transcript.md"), under=heading)) == sorted(model.model_fields)


def test_every_field_of_a_call_and_its_result_is_documented() -> None:
    told = {
        cells[0].strip("`"): re.findall(r"`(\w+)`", cells[3]) for cells in rows(doc("transcript.md"), under="rounds")
    }
    assert told["calls"] == list(CallIn.model_fields)
    assert told["results"] == list(ResultIn.model_fields)


def test_every_field_of_an_attachment_is_documented() -> None:
    told = [cells[0].strip("`") for cells in rows(doc("transcript.md"), under="Attachments") if len(cells) == 3]
    assert sorted(told) == sorted(AttachmentIn.model_fields)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_documented_with_all_that_follows_from_it(kind: Kind) -> None:
    table = {c[0].strip("`"): c for c in rows(doc("transcript.md"), under="Attachments") if len(c) == 7}
    assert set(table) == set(Kind)
    _, fields, tag, _, recoverable, promotion, trust = table[kind]
    spec = KINDS[kind]
    assert kind is Kind.TOOL or set(re.findall(r"`(\w+)`", fields)) == set(spec.fields)
    assert kind is Kind.IMAGE or tag == f"`{spec.tag}`"
    assert recoverable == ("yes" if spec.recoverable else "no")
    assert promotion == {"as_note": "as a plain note"}.get(spec.promotion, spec.promotion.replace("_", " "))
    assert trust == spec.trust
    assert spec.promotion in Promotion


def test_policies_and_parts_of_the_system_prompt_are_documented() -> None:
    text = doc("transcript.md")
    assert [policy for policy in Policy if f"`{policy}`" not in text] == []
    assert names(text, under="system") == list(PART_NAMES)


@pytest.mark.parametrize("page", ["transcript.md", "compaction.md"])
def test_every_transcript_shown_is_one(page: str) -> None:
    shown_ones = [block.body for block in blocks(doc(page)) if block.language == "json"]
    assert shown_ones
    for body in shown_ones:
        assert parse_transcript(body.encode(), name=page).turns


def _commands(command: object, name: str) -> Iterator[tuple[str, set[str]]]:
    parameters = getattr(command, "params", [])
    yield name, {option for parameter in parameters for option in parameter.opts if option.startswith("-")}
    # What a group is about stands before its commands.
    about = "".join(f" {one.metavar}" for one in parameters if one.param_type_name == "argument")
    for word, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{name}{about} {word}")


def test_every_command_and_option_is_documented() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    told = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    found = list(_commands(typer.main.get_command(make_app()), "lamella"))
    assert len(found) > 1
    assert [name for name, _ in found if name not in told] == []
    options = {option for _, options in found for option in options}
    assert sorted(option for option in options if f"`{option}" not in told) == []


def test_every_command_of_the_chat_is_documented() -> None:
    told = {name.partition(" ")[0] for name in names(doc("chat.md")) if name.startswith("/")}
    assert told == set(COMMANDS)


def test_every_keyword_of_asking_and_sending_is_documented() -> None:
    told = {name for cells in rows(doc("python.md"), under="A conversation in memory") for name in cells[:1]}
    asked = set(inspect.signature(lamella.Chat.ask).parameters) - {"self", "text"}
    assert {name.strip("`") for name in told} == asked
    sent = set(inspect.signature(lamella.Chat.send).parameters) - {"self", "text"} - asked
    sent = (sent - {"limits"}) | set(GivenLimits.__annotations__)
    assert sorted(name for name in sent if f"`{name}`" not in doc("python.md")) == []


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


@pytest.mark.parametrize("example", ["edits", "long"])
def test_every_field_of_the_replay_is_documented(example: str) -> None:
    told = set(re.findall(r"`(\w+)`", doc("replay.md")))
    printed = json.loads(run_command(f"lamella replay examples/{example}.json --json"))
    assert sorted(set(_keys(printed)) - told) == []


def test_causes_forms_and_layers_are_documented() -> None:
    text = doc("replay.md")
    assert sorted(names(text, under="prefix")) == sorted(Cause)
    assert [word for word in (*Form, *LayerId, *sorted(STAND_INS)) if f"`{word}`" not in text] == []


def test_every_family_is_documented_with_its_factor_and_error() -> None:
    told = rows(doc("tokens-and-money.md"), under="How tokens are counted")
    assert told == [
        [
            family.name,
            ", ".join(f"`{start}`" for start in family.starts) or "anything else",
            str(family.factor),
            str(family.per_message),
            str(family.per_request),
            family.error,
        ]
        for family in (*FAMILIES, GENERIC)
    ]


def test_every_way_of_counting_pictures_is_documented_as_it_is() -> None:
    told = rows(doc("tokens-and-money.md"), under="How pictures are counted")
    known = [(f"`{start}`", profile) for start, profile in models.PICTURES]
    assert told == [_picture_row(start, one) for start, one in (*known, ("anything else", GENERIC_PICTURES))]


def _picture_row(start: str, profile: PictureProfile) -> list[str]:
    counted = (profile.unit or None, profile.fit, profile.short, profile.budget, profile.base or None)
    limits = (profile.count, profile.edge, profile.size, profile.payload)
    sizes = ["" if one is None else f"{one:,}" for one in (*counted, *limits)]
    return [start, str(profile.rule), *sizes[:5], f"{profile.weight:g}", *sizes[5:]]


def test_every_cache_profile_is_documented_as_it_is() -> None:
    told = rows(doc("tokens-and-money.md"), under="What a cache would serve")
    known = [(f"`{start}`", profile) for start, profile in caches.CACHES]
    assert told == [_profile_row(start, profile) for start, profile in (*known, ("anything else", GENERIC_PROFILE))]


def _profile_row(start: str, profile: CacheProfile) -> list[str]:
    lifetime = "none" if profile.lifetime is None else f"{profile.lifetime} s"
    billed = "yes" if profile.bills_writes else "no"
    return [start, profile.name, str(profile.minimum), str(profile.granularity), lifetime, billed]


def test_facts_about_providers_carry_the_dates_they_are_from() -> None:
    text = doc("tokens-and-money.md")
    assert day.FACTS_DATE in text
    assert prices.SNAPSHOT_DATE.date().isoformat() in text


def test_every_form_of_template_is_documented() -> None:
    assert names(doc("templates.md"))[0] == "{activeNote}"
    forms = {cells[0].strip("`") for cells in rows(doc("templates.md"))}
    assert forms == {"{activeNote}", "{[[Note]]}", "{#tag}", "{folder/path}", "{}"}


def test_every_room_is_in_the_architecture() -> None:
    told = {name.partition(" ")[0] for name in names(doc("architecture.md"), under="Rooms")}
    outer = {path.parent.name for path in SRC.glob("*/__init__.py")}
    parents = {path.parents[1].name for path in SRC.glob("*/*/__init__.py")}
    inner = {path.parent.relative_to(SRC).as_posix() for path in SRC.glob("*/*/__init__.py")}
    public = {path.name for path in SRC.glob("*.py") if path.name != "__init__.py"}
    assert told == (outer - parents) | inner | public | {"lamella"}


def test_every_port_is_in_the_architecture() -> None:
    (told,) = [cells[1] for cells in rows(doc("architecture.md"), under="Rooms") if cells[0] == "`ports.py`"]
    ports = [
        node.name
        for node in tree(SRC / "ports.py").body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(one) == "Protocol" for one in node.bases)
    ]
    assert sorted(re.findall(r"`(\w+)`", told)) == sorted(ports)


def test_the_rooms_of_the_core_are_told_in_the_order_of_their_imports() -> None:
    told = [name.removeprefix("core/") for name in names(doc("architecture.md"), under="Rooms") if "core/" in name]
    drawn = " → ".join(told).replace("ledger → search", "ledger | search")
    assert drawn in doc("architecture.md")


def test_every_file_that_the_architecture_walks_through_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+/[\w/]+(?:\.py|/))`", doc("architecture.md")))
    assert len(named) > 30
    assert sorted(name for name in named if not (SRC / name).exists()) == []


@pytest.mark.parametrize(
    ("heading", "deeds"),
    [
        ("A note walks through", ("send",)),
        ("A compaction walks through, and back", ("plan", "commit", "undo", "ask_after_undo")),
    ],
)
def test_the_walks_of_the_architecture_pass_the_files_that_a_real_one_passes(
    heading: str, deeds: tuple[str, ...]
) -> None:
    section = doc("architecture.md").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+/[\w/]+(?:\.py|/))`", section)
    assert len(named) > 10
    passed = [file for deed in deeds for file in walk_in_new_process()[deed].passed]
    assert [name for name in named if not any(file.startswith(name) for file in passed)] == []


DOOR_ONLY = re.compile(r"\(\.\./src/lamella/([\w/]+)/__init__\.py\)( \(\*door only\*\))?")


def test_rooms_that_are_marked_as_doors_only_are_empty_and_the_others_are_not() -> None:
    told = {SRC / name: bool(mark) for name, mark in DOOR_ONLY.findall(doc("coming-from.md"))}
    assert told == {room: _is_door_only(room) for room in told}
    doors = {path.parent for path in SRC.rglob("__init__.py") if path.parent != SRC and _is_door_only(path.parent)}
    assert doors == {room for room, marked in told.items() if marked}


def test_a_room_is_empty_until_something_but_its_door_stands_in_it(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "__pycache__").mkdir()
    assert _is_door_only(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file.py").touch()
    assert not _is_door_only(tmp_path)


def _is_door_only(room: Path) -> bool:
    return [path.name for path in room.rglob("*") if path.is_file() and path.suffix != ".pyc"] == ["__init__.py"]


def test_the_promises_of_the_readme_have_the_numbers_of_the_measured_layouts() -> None:
    told, _, shown = (ROOT / "README.md").read_text(encoding="utf-8").partition("```console")
    promises = " ".join(told.split())
    measured = [
        re.search(rf"^\| {kind} chat \| (.*) \|$", doc("layouts.md"), re.MULTILINE) for kind in ("note", "long", "code")
    ]
    note, long, code = (found.group(1).split(" | ") for found in measured if found)
    appended, auto = 1, 5
    assert f"{note[auto]} (note chats), {long[auto]} (long chats) and {code[auto]} (code chats)" in promises
    assert f"appending alone costs {note[appended]}, {long[appended]} and {code[appended]}." in promises
    made = re.search(r"makes notes up: `auto` then costs\s+(.+?), appending", doc("layouts.md"))
    assert made
    assert f"it is {made.group(1)}." in promises
    # What the commands below the promises print is held by the test of every page.
    cached, ratio = re.search(r"(\d+)% cached.*?\(0(\.\d+)x\)", shown, re.DOTALL).groups()  # type: ignore[union-attr]
    assert f"nothing moves, and {cached} % of all that is sent" in promises
    assert f"The six turns cost {ratio} of gluing" in promises
    assert "`python -m bench layouts`" in promises
    assert f"{len(LAWS)} laws" in promises


def test_every_decision_is_in_the_list_of_decisions_by_its_own_words() -> None:
    listed = {name: title for title, name in re.findall(r"- \[(.+?)\]\(([\w-]+\.md)\)", doc("decisions/README.md"))}
    records = {path.name: path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md"}
    assert listed == {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for name, path in records.items()
    }


def test_names_that_were_mended_or_defended_are_in_use() -> None:
    page = rows(doc("decisions/names.md"))
    told = {name for cells in page for name in re.findall(r"`(\w+)`", cells[0 if len(cells) == 2 else 1])}
    assert len(told) > 40
    used = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in python_files("src"))))
    assert sorted(told - used) == []


@pytest.mark.parametrize("public", [lamella.Conversation, lamella.Chat, lamella.Engine])
def test_everything_that_a_public_object_can_do_is_in_the_docs(public: type) -> None:
    told = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    names = [name for name in dir(public) if not name.startswith("_")]
    assert len(names) > 5
    assert [name for name in names if not re.search(rf"[`.]{name}\b", told)] == []


def test_every_setting_that_only_ones_own_files_may_have_is_told_with_trust() -> None:
    told = [name for words, where, *_ in rows(doc("trust.md")) if "nowhere but" in where for name in words.split(", ")]
    own = {*faults.OWN, *reading.OWN, *workplaces.OWN, *rules.OWN}
    assert sorted(told) == sorted(f"`{name}`" for name in own)
