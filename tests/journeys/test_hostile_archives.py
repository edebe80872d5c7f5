"""Hostile archives are read in about the time of ordinary ones of the same size."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from time import process_time

import pytest

from lamella.archive.markdown import parse_archive
from lamella.conversation.import_export import ConversationRepository
from lamella.errors import BadInputError
from lamella.ports import SourceReaders
from lamella.sources.open_sources import make_source_opener
from lamella.wiring import open_backend

# Hostile files must not take longer than honest ones; a busy machine may take one of them longer than the other.
NOISE = 3
MEGABYTE = 1_000_000
STAMP = "[Timestamp: 2024/09/12 22:17:57]"
NOTE = "**user**: q\n<note_context>\n"
NAMES = "**user**: q\n[Context: Notes: "
TALK = f"**user**: And then?\n{STAMP}\n\n**ai**: Then it was noon.\n{STAMP}\n\n"


@cache
def make_hostile(size: int) -> Mapping[str, str]:
    """Files of about this size, each made to take long in its own way."""

    def fill(unit: str, *, before: str = "**user**: q\n", after: str = "\n") -> str:
        return before + unit * ((size - len(before) - len(after)) // len(unit)) + after

    def many(unit: str, *, each: int) -> str:
        return "".join(unit.format(number) for number in range(size // each))

    return {
        "turns": fill("**user**: a\n**ai**: b\n", before=""),
        "questions": fill("**user**: a\n", before=""),
        "as many questions as are read": "**user**: a\n" * (size // 50),
        "answers": fill("**ai**: b\n"),
        "blocks in blocks": fill("<a_b>\n<a_b>\n</a_b>\n"),
        "blocks": fill("<a_b>\n</a_b>\n"),
        "blocks that never close": fill("<a_b>\n"),
        "tags": "**user**: q\n" + many("<a_{}>\n", each=20) + many("</a_{}>\n", each=20),
        "contents": fill("<content>", before=NOTE, after="\n</note_context>\n"),
        "titles": fill("<title>", before=NOTE, after="\n<content>x</content>\n</note_context>\n"),
        "titles that close": fill("<title></title>", before=NOTE, after="\n<content>x</content>\n</note_context>\n"),
        "names": fill("a, ", before=NAMES, after="]\n"),
        "quotes": fill('"a, ', before=NAMES, after="]\n"),
        "different names": NAMES + many("n{}, ", each=9) + "]\n",
        "groups": fill("Notes: a | ", before="**user**: q\n[Context: ", after="]\n"),
        "folders": fill("., ", before="**user**: q\n[Context: Folders: ", after="]\n"),
        "a folder for each question": "**user**: q\n[Context: Folders: .]\n" * (size // 50),
        "front matter": fill("a: b\n", before="---\n", after="---\n**user**: q\n"),
        "nested front matter": fill("[", before="---\na: ", after="\n---\n**user**: q\n"),
        "keys": "---\n" + many("a{}: b\n", each=11) + "---\n**user**: q\n",
        "fences": fill("```\n"),
        "blanks": fill(" \n"),
        "reasoning marks": fill("<!--AGENT_REASONING:", before="**user**: q\n**ai**: "),
        "banners": fill("<!--TOOL_CALL_START:a:", before="**user**: q\n**ai**: ", after="-->\n"),
        "banner ends": fill("<!--TOOL_CALL_END:a:", before="**user**: q\n**ai**: <!--TOOL_CALL_START:a:-->"),
        "thoughts": fill("<think>", before="**user**: q\n**ai**: x"),
    }


def time_reading(text: str, sources: SourceReaders | None) -> float:
    begun = process_time()
    with suppress(BadInputError):
        parse_archive(text, sources=sources)
    return process_time() - begun


Vaults = Callable[[int], Path]


@pytest.fixture(scope="module")
def vaults(tmp_path_factory: pytest.TempPathFactory) -> Vaults:
    """A vault for files of a size, with a hundred notes for a megabyte."""

    @cache
    def make_vault(size: int) -> Path:
        folder = tmp_path_factory.mktemp("vault")
        for number in range(100 * size // MEGABYTE):
            (folder / f"note {number}.md").write_text(f"Text of note {number}.\n", encoding="utf-8")
        return folder

    return make_vault


@pytest.fixture(scope="module")
def honest(vaults: Vaults) -> Callable[[int], float]:
    """How long a file of this size takes with nothing in it but short talk."""

    @cache
    def time_honest(size: int) -> float:
        return min(time_reading(TALK * (size // len(TALK)), make_source_opener(vaults(size))()) for _ in range(2))

    return time_honest


@pytest.mark.parametrize("size", [MEGABYTE // 4, pytest.param(MEGABYTE, marks=pytest.mark.long)])
@pytest.mark.parametrize("shape", make_hostile(1_000))
@pytest.mark.parametrize("has_vault", [False, True])
def test_hostile_archive_is_parsed_as_fast_as_normal_one(
    vaults: Vaults, honest: Callable[[int], float], shape: str, size: int, *, has_vault: bool
) -> None:
    text = make_hostile(size)[shape]
    assert len(text) <= 1.05 * size
    # A machine that was busy with something else just then is asked once more; what is slow stays slow.
    times = (time_reading(text, make_source_opener(vaults(size))() if has_vault else None) for _ in range(3))
    assert any(taken <= NOISE * honest(size) for taken in times)


def test_number_of_any_length_is_not_line_number_or_time() -> None:
    digits = "9" * 5_000
    lines = f"<start_line>{digits}</start_line>\n<end_line>{digits}</end_line>"
    block = f"<selected_text>\n<path>a.md</path>\n{lines}\n<content>x</content>\n</selected_text>"
    export = parse_archive(f"---\nepoch: {digits}\n---\n**user**: q\n{block}\n", sources=None)
    assert set(export.contents.values()) == {b"x"}


def test_import_time_grows_linearly_with_turns(tmp_path: Path) -> None:
    stores = count()

    def time_import(turns: int) -> float:
        text = "".join(f"**user**: q {n}\n\n**ai**: a {n}\n\n" for n in range(turns))
        backend = open_backend(f"sqlite:///{tmp_path}/{next(stores)}.db", keep_ledger=False)
        begun = process_time()
        ConversationRepository(backend.store, backend.clock).import_conversation(parse_archive(text, sources=None))
        taken = process_time() - begun
        backend.store.close()
        return taken

    time_import(100)
    # Asked once more as above: a memory that others filled just then slows the long one more than the short one.
    times = ((time_import(8_000), time_import(2_000)) for _ in range(3))
    assert any(long <= 2.5 * 4 * short for long, short in times)
