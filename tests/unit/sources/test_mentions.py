import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella import Code, Folder, Image, Note, Selection, Tag, Url, YouTube
from lamella.attach import Attachment
from lamella.errors import (
    ArtifactError,
    NotAvailableError,
    PathOutsideVaultError,
    SourceNotFoundError,
    SourceUnreadableError,
    UsageError,
)
from lamella.sources.mentions import AttachmentResolver

PNG = png(2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The current folder, with notes below it."""
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "plan.md").write_text("# Plan\none\ntwo\n", encoding="utf-8")
    (tmp_path / "notes" / "deep" / "old plan.md").write_text("# Old\n", encoding="utf-8")
    (tmp_path / "notes" / "run.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "notes" / "dot.png").write_bytes(PNG)
    with chdir(tmp_path):
        yield tmp_path


def test_vault_file_is_attached_by_path_for_each_turn(folder: Path) -> None:
    files = AttachmentResolver(folder / "notes")
    assert files.resolve("plan.md") == [Note(path="plan.md")]
    assert files.resolve("run.py") == [Code(path="run.py")]
    assert files.resolve("dot.png") == [Image(path="dot.png")]
    assert files.resolve("deep") == [Folder(path="deep")]


@pytest.mark.parametrize("name", ["notes/plan.md", "./notes/plan.md", "notes/deep/../plan.md"])
def test_path_that_a_shell_completed_means_the_file_in_the_vault(folder: Path, name: str) -> None:
    assert AttachmentResolver(Path("notes")).resolve(name) == [Note(path="plan.md")]
    assert AttachmentResolver(Path("notes")).resolve(str(folder / "notes" / "plan.md")) == [Note(path="plan.md")]


def test_file_without_vault_is_read_at_once(folder: Path) -> None:
    files = AttachmentResolver(None)
    assert files.resolve("notes/plan.md") == [Note(path="notes/plan.md", text="# Plan\none\ntwo\n")]
    assert files.resolve(f"{folder}/notes/run.py") == [Code(path=f"{folder}/notes/run.py", text="print(1)\n")]
    assert files.resolve("notes/dot.png") == [Image(data=PNG, media_type="image/png", path="notes/dot.png")]
    assert [note.path for note in files.resolve("notes") if isinstance(note, Note)] == [
        "notes/deep/old plan.md",
        "notes/plan.md",
    ]


@pytest.mark.parametrize("vault", [None, Path("notes")])
def test_lines_of_a_file_are_a_selection(folder: Path, vault: Path | None) -> None:
    path = "notes/plan.md" if vault is None else "plan.md"
    files = AttachmentResolver(vault)
    assert files.select_lines(f"{path}:2-3") == Selection(path=path, lines=(2, 3), text="one\ntwo")
    assert files.resolve(f"{path}:1") == [Selection(path=path, lines=(1, 1), text="# Plan")]


def test_file_name_resembling_line_range_is_that_file(folder: Path) -> None:
    (folder / "log:10-20").write_text("# Log\n", encoding="utf-8")
    assert AttachmentResolver(None).resolve("log:10-20") == [Note(path="log:10-20", text="# Log\n")]


@pytest.mark.parametrize("lines", ["0-1", "3-2", "1-9", "9"])
def test_missing_lines_are_refused(folder: Path, lines: str) -> None:
    with pytest.raises(ArtifactError, match=r"plan\.md has 3 lines"):
        AttachmentResolver(None).select_lines(f"notes/plan.md:{lines}")


def test_selection_without_lines_is_refused() -> None:
    with pytest.raises(UsageError, match="names no lines"):
        AttachmentResolver(None).select_lines("notes/plan.md")


@pytest.mark.parametrize("vault", [None, Path("notes")])
def test_missing_file_is_refused(folder: Path, vault: Path | None) -> None:
    with pytest.raises(SourceNotFoundError, match=r"There is no file gone\.md"):
        AttachmentResolver(vault).resolve("gone.md")
    with pytest.raises(SourceNotFoundError, match=r"There is no file gone\.md"):
        AttachmentResolver(vault).select_lines("gone.md:1")


@pytest.mark.parametrize("name", ["", "  "])
def test_blank_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="blank"):
        AttachmentResolver(folder).resolve(name)


def test_convertible_file_needs_converter(folder: Path) -> None:
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(NotAvailableError):
        AttachmentResolver(None).resolve("paper.pdf")


@pytest.mark.parametrize(
    ("text", "attached"),
    [
        ("Read @https://example.org/x, please.", Url(url="https://example.org/x")),
        ("(@https://example.org/Bar_(sea))", Url(url="https://example.org/Bar_(sea)")),
        ('@"https://example.org/a?b=c."', Url(url="https://example.org/a?b=c.")),
        ("@https://youtu.be/b4yT1de5_-x!", YouTube(url="https://youtu.be/b4yT1de5_-x")),
    ],
)
def test_mentioned_page_is_attached_and_not_fetched_yet(text: str, attached: Attachment) -> None:
    (outcome,) = AttachmentResolver(None).resolve_mentions(text)
    assert outcome.attachments == (attached,)
    assert isinstance(attached, Url | YouTube)
    assert outcome.description == attached.url
    assert AttachmentResolver(None).resolve(attached.url) == [attached]


@pytest.mark.parametrize("text", ["https://example.org/x", "me@https://example.org", "`@https://example.org`"])
def test_discussed_url_is_not_attached(text: str) -> None:
    assert AttachmentResolver(None).resolve_mentions(text) == []


def resolved(vault: Path | None, text: str) -> list[tuple[str, bool, str]]:
    """What a message names, whether it attaches something, and what is said of it."""
    return [
        (one.token, bool(one.attachments), one.description) for one in AttachmentResolver(vault).resolve_mentions(text)
    ]


def paths(vault: Path | None, text: str) -> list[object]:
    """Where what a message attaches is."""
    outcomes = AttachmentResolver(vault).resolve_mentions(text)
    return [getattr(one, "path", None) for outcome in outcomes for one in outcome.attachments]


@pytest.fixture
def vault(folder: Path) -> Path:
    """Notes with names that are shared, tags and headings."""
    root = folder / "notes"
    (root / "deep" / "Costs.md").write_text("# Costs\n\n## In May\n\n12\n\n## In June ##\n\n13\n", encoding="utf-8")
    (root / "twin.md").write_text("---\ntags: [garden]\n---\nTwin.\n", encoding="utf-8")
    (root / "deep" / "twin two").mkdir()
    (root / "deep" / "twin two" / "Same.md").write_text("Beans. #garden/beans\n", encoding="utf-8")
    (root / "deep" / "same.md").write_text("Peas.\n", encoding="utf-8")
    (root / "my list.md").write_text("# Note\nline\n", encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Read @plan.md now", ["plan.md"]),
        ("@plan.md, @plan.md and @plan.md:1-2.", ["plan.md", "plan.md"]),
        ('What is in @"my list.md"?', ["my list.md"]),
        ("Read @plan and (@plan.md), *@plan.md* or @plan's", ["plan.md"]),
        ("(@plan.md)", ["plan.md"]),
        ("@plan.md,@my", ["plan.md"]),
        ("@[[plan]] and [[Costs]]", ["plan.md", "deep/Costs.md"]),
        ("[[deep/Costs|what it costs]] ![[dot.png]]", ["deep/Costs.md", "dot.png"]),
        ("[[my list.md]]", ["my list.md"]),
        ("@costs", ["deep/Costs.md"]),
        ("@Costs#in-may, @[[Costs#In June]] and @deep/Costs.md#Costs#in_may", ["deep/Costs.md"] * 3),
        ("@deep/ and @deep.", ["deep"]),
        ("me@plan.md is an address, @nobody a name, and a lone @ nothing", []),
        ("`@plan.md` is code, ``[[plan]]`` too\n```\n@plan.md\n```\n", []),
        ("{[[plan]]} is a template; a[[0]], [[1, 2]] and [[ -f plan.md ]] are code", []),
    ],
)
def test_mentions_are_resolved_to_attachments(vault: Path, text: str, found: list[str]) -> None:
    assert list(dict.fromkeys(paths(vault, text))) == list(dict.fromkeys(found))
    assert all(attached for _, attached, _ in resolved(vault, text))


def test_lines_headings_folders_and_tags_are_resolved(vault: Path) -> None:
    assert resolved(vault, "@plan.md @plan.md:2-3 @plan:1 @Costs#In-June @deep/ @#garden") == [
        ("@plan.md", True, "plan.md"),
        ("@plan.md:2-3", True, "plan.md, lines 2 to 3"),
        ("@plan:1", True, "plan.md, line 1"),
        ("@Costs#In-June", True, "deep/Costs.md, lines 7 to 9 under In June"),
        ("@deep/", True, "deep/, 4 notes"),
        ("@#garden", True, "#garden, 2 notes"),
    ]
    files = AttachmentResolver(vault)
    (section,) = files.resolve("Costs#In June")
    assert section == Selection(path="deep/Costs.md", lines=(7, 9), text="## In June ##\n\n13")
    assert (files.resolve("#garden"), files.resolve("deep/"), files.resolve("[[plan]]")) == (
        [Tag(tag="#garden")],
        [Folder(path="deep")],
        [Note(path="plan.md")],
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Read @plna.md, please.", "There is no file plna.md in the vault. Did you mean plan.md?"),
        ("@deep/x:3-4", "There is no file deep/x in the vault. Did you mean deep/same.md, deep/Costs.md?"),
        (
            '@"nothing like it"',
            "There is no file nothing like it in the vault. Paths are relative to the vault folder.",
        ),
        ("@gone/", "There is no file gone/ in the vault. Paths are relative to the vault folder."),
        ("[[Cots]]", "No note is called Cots. Did you mean deep/Costs.md?"),
        ("@same", "2 notes are called same: deep/same.md, deep/twin two/Same.md. Name one by its path."),
        ("@plan.md:2-9", "plan.md has 3 lines; 2 to 9 were asked for. Lines count from 1, and the first comes first."),
        (
            "@Costs#In",
            "deep/Costs.md has no heading In. "
            'It has: Costs, In May, In June. One with blanks is named as @"deep/Costs.md#Costs".',
        ),
        ("@plan#^b1", "plan.md has no block ^b1. It has: none."),
        ("@#nothing", "No note carries #nothing. Tags are those of front matter and text, in any note of the vault."),
        ("@empty/", "The folder empty/ holds no notes. Name a file in it by its path."),
    ],
)
def test_unresolved_mention_suggests_similar_name(vault: Path, text: str, why: str) -> None:
    (vault / "empty").mkdir()
    ((_, attached, said),) = resolved(vault, text)
    assert (attached, said) == (False, why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            (f"See @{name}, please", f"{name} is outside the vault notes.")
            for name in ("/etc/passwd", "../", "..", "/")
        ),
        *((f"@{name}", f"{name} is outside the vault notes.") for name in ("/2024/01", "/gone/x", "./../x", "//host")),
        *((f"(@{name})", f"There is no file {name} in the vault.") for name in ("~", "~/", "~/plan", "~jo/x")),
        *((f"@{name}", f"There is no file {name} in the vault.") for name in ("C:\\x", "c:/x", "\\\\host\\x", "..\\x")),
        *((f"@{name}", f"There is no file {name} in the vault.") for name in ("$HOME/x", "${HOME}/x", "%HOME%\\x")),
        ("@file:///etc/passwd", "file:///etc/passwd is no path. Name the file by its path."),
        ("@ftp://example.org/x", "ftp://example.org/x is no file. A page is named by an address with http"),
        ("@www.example.org", "www.example.org is no file. A page is named by an address with http"),
    ],
)
def test_path_or_url_without_target_is_reported(vault: Path, text: str, why: str) -> None:
    ((_, attached, said),) = resolved(vault, text)
    assert not attached
    assert said.startswith(why)


def test_folder_of_numbers_is_ordinary_folder(vault: Path) -> None:
    (vault / "2024" / "01").mkdir(parents=True)
    (vault / "2024" / "01" / "02.md").write_text("Rain.\n", encoding="utf-8")
    assert resolved(vault, "Look at @2024/, @2024/01 and @2024/01/02") == [
        ("@2024/", True, "2024/, 1 note"),
        ("@2024/01", True, "2024/01, 1 note"),
        ("@2024/01/02", True, "2024/01/02.md"),
    ]


def test_names_and_email_addresses_are_not_mentions(vault: Path) -> None:
    assert (
        resolved(vault, "me@plna.md, @alice, @jo.smith, @example.com, @types/node, @v1.2, @.md, @#12 and a lone @")
        == []
    )
    assert resolved(vault, "@~jo, @..., @., @-, @10/12, @5 or @jo: @") == []
    assert resolved(vault, f"@{'a' * 5_000}.md @nul\0byte @") == []


@pytest.mark.parametrize("name", ["../secret.md", "deep/../../secret.md", "out.md", "out/secret.md", "../gone.md"])
def test_file_outside_vault_is_not_attached(vault: Path, folder: Path, name: str) -> None:
    (folder / "secret.md").write_text("# Secret\n", encoding="utf-8")
    (folder / "beyond").mkdir()
    (folder / "beyond" / "secret.md").write_text("# Secret\n", encoding="utf-8")
    (vault / "out.md").symlink_to(folder / "secret.md")
    (vault / "out").symlink_to(folder / "beyond")
    for one in (name, f"{name}:1", f"{name}#Secret"):
        ((_, attached, said),) = resolved(vault, f"@{one}")
        assert not attached
        assert f"{name} is outside the vault notes." in said
        with pytest.raises(PathOutsideVaultError):
            AttachmentResolver(vault).resolve(one)
    assert paths(vault, "@secret [[secret]]") == []


def test_without_a_vault_names_lead_from_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "notes")
    assert paths(None, "@plan, [[plan]] and @deep/ or @old") == ["plan.md", "plan.md", "deep/old plan.md"]
    assert resolved(None, "@plna.md @#garden [[Costs]]") == [
        ("@plna.md", False, "There is no file plna.md. Did you mean plan.md?"),
        ("@#garden", False, "There is no vault to look for #garden in. Name one with vault=…."),
        ("[[Costs]]", False, "No note is called Costs. A link names a note by its name or path."),
    ]
    assert resolved(None, "@gone/plna.md") == [
        ("@gone/plna.md", False, "There is no file gone/plna.md. Paths are relative to the current folder.")
    ]


def test_bare_dot_or_root_attaches_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "notes")
    for name in ("..", "../", "./", "/"):
        why = f"{name} holds the current folder. Name a folder in it, or have it as a vault with vault=…."
        assert resolved(None, f"See @{name}") == [(f"@{name}", False, why)]
    assert AttachmentResolver(None).resolve("."), "who names it to a command means it"
    ((_, attached, why),) = resolved(None, "@~/plan.md")
    assert (attached, "~ is one for a shell" in why) == (False, True)


@pytest.mark.parametrize("vault", [None, Path()])
def test_beginning_of_a_file_name_is_reported_with_that_file(tmp_path: Path, vault: Path | None) -> None:
    for name in ("dough-for-pizza-at-home.md", "Doubts.md", "joe.md", ".doubt.md"):
        (tmp_path / name).write_text("# A\n", encoding="utf-8")
    with chdir(tmp_path):
        ((token, attached, why),) = resolved(vault, "Fix @dou, @jo, @alice and @ugh")
    assert (token, attached) == ("@dou", False)
    assert "no file dou" in why
    assert "Did you mean Doubts.md, dough-for-pizza-at-home.md" in why


def test_folder_that_cannot_be_looked_into_makes_no_name_an_error(vault: Path) -> None:
    (vault / "locked").mkdir(mode=0)
    try:
        assert resolved(vault, "Ask @jo") == []
    finally:
        (vault / "locked").chmod(0o700)


def test_paths_are_completed_from_vault_or_working_folder(folder: Path) -> None:
    assert AttachmentResolver(folder / "notes").complete_path("PLAN") == ["deep/old plan.md", "plan.md"]
    assert AttachmentResolver(None).complete_path("no") == ["notes/"]
    assert AttachmentResolver(None).complete_path("notes/") == [
        "notes/deep/",
        "notes/dot.png",
        "notes/plan.md",
        "notes/run.py",
    ]
    assert AttachmentResolver(None).complete_path("gone/") == []
    assert AttachmentResolver(None).complete_path(f"{folder}/no") == [f"{folder}/notes/"]


@pytest.mark.parametrize("name", ["pipe.md", "pipe", "gone.md"])
def test_special_file_attaches_nothing_with_reason(folder: Path, name: str) -> None:
    os.mkfifo(folder / "notes" / "pipe.md")
    (folder / "notes" / "gone.md").symlink_to("nowhere.md")
    (outcome,) = AttachmentResolver(folder / "notes").resolve_mentions(f"What is in @{name}?")
    why = "gone.md is a link to nothing." if name == "gone.md" else "pipe.md is not a file."
    assert outcome.attachments == ()
    assert outcome.description.startswith(why)
    with pytest.raises(SourceNotFoundError, match=why):
        AttachmentResolver(folder / "notes").resolve(name)


def test_unreadable_file_is_error_before_attaching(folder: Path) -> None:
    (folder / "notes" / "latin.md").write_bytes("café".encode("latin-1"))
    with pytest.raises(SourceUnreadableError, match="is not UTF-8"):
        AttachmentResolver(folder / "notes").resolve_mentions("What is in @latin.md?")


@pytest.mark.parametrize(
    "text", ["@vault What grows?", "(@Vault)", "What of @web, @websearch: and @memory.", "@composer"]
)
def test_directive_attaches_no_folder_of_that_name(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for name in ("vault", "web", "websearch", "memory", "composer"):
        (folder / name).mkdir()
        (folder / name / "plan.md").write_text("Plan\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    assert resolved(None, text) == resolved(folder, text) == []


def test_folder_named_like_directive_needs_slash_or_quotes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "vault").mkdir()
    (folder / "vault" / "plan.md").write_text("Plan\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    for text in ("@vault/", '@"vault"'):
        assert paths(None, text) == ["vault/plan.md"]
    assert AttachmentResolver(None).resolve("vault")


def test_bare_name_of_large_folder_attaches_nothing_with_hint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "large").mkdir()
    for number in range(51):
        (folder / "large" / f"{number}.md").write_text("Note\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    ((_, attached, why),) = resolved(None, "Ask @large.")
    assert not attached
    assert why == (
        "large is a folder with 51 notes. Write @large/ to attach all of them, or have it as a vault with vault=…."
    )
    assert len(paths(None, "Ask @large/")) == 51


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Read @deep/old plan.md please.", "deep/old plan.md"),
        ("@deep/old plan.md, then stop", "deep/old plan.md"),
        ("@deep/old plan.md.", "deep/old plan.md"),
    ],
)
def test_name_with_spaces_and_no_quotes_is_reported(vault: Path, text: str, name: str) -> None:
    (outcome,) = AttachmentResolver(vault).resolve_mentions(text)
    assert outcome.attachments == ()
    assert outcome.token == f"@{name}"
    assert outcome.description == f'The name {name} has spaces. Put it into quotation marks: @"{name}"'


@pytest.mark.parametrize(
    "text", ["@deep/old plans.md", "@jo read plan.md", '@"deep/old plan.md"', "@deep/old\nplan.md"]
)
def test_words_that_name_no_file_with_spaces_are_not_reported_as_one(vault: Path, text: str) -> None:
    outcomes = AttachmentResolver(vault).resolve_mentions(text)
    assert [one.description for one in outcomes if "has spaces" in one.description] == []


def test_links_and_tags_are_completed(vault: Path) -> None:
    files = AttachmentResolver(vault)
    assert files.complete_note_name("cos") == ["Costs"]
    assert files.complete_note_name("same") == ["deep/same", "deep/twin two/Same"]
    assert files.complete_tag("GAR") == ["garden", "garden/beans"]
    assert AttachmentResolver(None).complete_tag("gar") == []
