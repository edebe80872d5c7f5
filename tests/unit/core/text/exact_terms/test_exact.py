"""Exact tokens: found verbatim, once, in order and in one pass; the list has what fits and counts the rest."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.text.exact_terms import extract_exact_strings, render_exact_strings


def quarters(text: str) -> int:
    return -(-len(text) // 4)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    "token",
    [
        "src/app.py",
        "src/app.py:12",
        "notes/plan.md#L10-L20",
        "./run.sh",
        "../shared/data",
        "~/notes/plan.md",
        "/etc/hosts",
        "docs/decisions",
        "catatan/bab-1/pendahuluan.md",
        "notes/Müller.md",
        r"C:\Users\me\file.txt",
        r"\\server\share\file.txt",
        "README.md",
        "report.final.PDF",
        "Makefile",
        ".env",
        "https://example.org/a_(b)?q=1&r=2#top",
        "www.example.org/find",
        "localhost:8080/status",
        "joe.doe+x@mail.example.org",
        "--flag",
    ],
)
def test_paths_file_names_and_addresses_are_found(token: str) -> None:
    assert extract_exact_strings(f"Look at {token}, then (see {token}). It is {token}.") == (token,)


@pytest.mark.parametrize(
    "token",
    [
        "12.5 %", "12%", "5 MB", "3 days", "200 tokens", "1,234.56", "1.234.567", "0.85", "-5.2", "$5",
        "€3.50", "Rp 1.500.000",
        "$3 million", "5432", "36.6 °C", "10x", "15 menit", "2,5 juta", "42", "-5", "+3",
        "12 500", "1\u2019250\u2019000", "1_000_000", "1e6", "1.5e-3",
    ],
)  # fmt: skip
def test_numbers_with_units_decimals_or_three_digits_are_found(token: str) -> None:
    assert extract_exact_strings(f"It is {token}, not less. Say {token} then.") == (token,)


@pytest.mark.parametrize(
    "token",
    [
        "2024-05-01", "2024-05-01 10:30", "2024-05-01T10:30:45Z", "2024-05-01T10:30:45.123+07:00",
        "01/05/2024", "3 May 2024",
        "May 3, 2024", "17 Agustus 1945", "Mei 2024", "21st June", "10:30", "10:30:45", "9 am",
        "10:30 PM", "2024年5月1日",
    ],
)  # fmt: skip
def test_dates_and_times_are_found(token: str) -> None:
    assert extract_exact_strings(f"We met ({token}) and again: {token}.") == (token,)


@pytest.mark.parametrize(
    "token",
    [
        "3f2a9c1", "deadbeef1", "0x1F", "123e4567-e89b-12d3-a456-426614174000", "ABC-123", "#42",
        "v1.2.3", "v2", "1.2.3-beta.1", "K-37", "B-12", "u_77", "order_2026_b", "Q3 2026",
        "192.168.0.1:8080", "10.1000/xyz-123", "HAT266", "M05KNL", "4WQ150", "12A", "555-123-4567",
        "978-3-16-148410-0", "550E8400-E29B-41D4-A716-446655440000",
    ],
)  # fmt: skip
def test_ids_hashes_and_versions_are_found(token: str) -> None:
    assert extract_exact_strings(f"It is {token}; see {token}.") == (token,)


@pytest.mark.parametrize(
    "text",
    [
        "Ask @alice about it, e.g. today, i.e. now.",
        "He and/or she, his/her, on/off, 24/7, 1/2.",
        "There are 3 of them and some more; the third one, a-7, x_y.",
        "A defaced facade, a self.attribute, a done.Next sentence.",
        "build().values().get(x)[0].items",
        "</div> and <br/> and <b>bold</b>",
        "",
    ],
)
def test_prose_has_no_exact_tokens(text: str) -> None:
    assert extract_exact_strings(text) == ()


@pytest.mark.parametrize(
    "token",
    [
        # Ids in small letters, of many parts, with digits inside; constants
        "abc-123", "usr_9f2k", "a7f93k2", "web-7d9f8b6c5-x2lqz", "INV-2026-0042", "utf-8", "sha256", "DATABASE_URL",
        # Accounts, telephones, networks, cards
        "DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "+49 (0)30 123456-78", "10.0.0.0/8", "2001:db8::/32",
        "fe80::1", "00:1A:2B:3C:4D:5E",
        # Numbers of other places, sizes, ordinals, dates
        "1.234.567,89", "1,234,567.89", "1 234 567,89", "45 CHF", "SGD 12.50", "1920x1080", "5x2,5 mm²", "16th",
        "14. März 2026", "3. Okt 2025",
        # Paths with spaces
        r"C:\Program Files\My App\config.ini", r"~/My\ Documents/tax\ 2025.pdf",
    ],
)  # fmt: skip
def test_ids_accounts_networks_and_numbers_of_other_places_are_found_whole(token: str) -> None:
    assert extract_exact_strings(f"It is {token}; see ({token}).") == (token,)


@pytest.mark.parametrize("path", [r"\\server\share\Q3 plan.xlsx", "/home/ann/My Documents/tax 2025.pdf", "./a b/c.md"])
def test_quoted_path_with_spaces_is_one_token(path: str) -> None:
    assert extract_exact_strings(f"Saved to \"{path}\", and to '{path}'.") == (path,)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a 20-minute walk in mid-2025, the top-10", ("20", "2025", "10")),
        ("covid-19-related T-shirts, e-mail, a B-side", ("covid-19",)),
        ("the 2nd of 3, as he's there", ()),
    ],
)
def test_only_exact_hyphenated_words_are_found(text: str, found: tuple[str, ...]) -> None:
    assert extract_exact_strings(text) == found


def test_legacy_rules_find_the_same_tokens() -> None:
    told = "abc-123, a7f93k2, 10.0.0.0/8, 1.234.567,89 and DATABASE_URL"
    assert extract_exact_strings(told, legacy=True) == ("123", "10.0.0.0", "1.234.567")


def test_id_after_number_is_not_its_unit() -> None:
    assert extract_exact_strings("Send -5 K-481 and 12 B-7 to desk 5 K-37.") == ("-5", "K-481", "12", "B-7", "K-37")
    assert extract_exact_strings("From 5 K to 10 K.") == ("5 K", "10 K")


def test_code_spans_are_found_whole() -> None:
    assert extract_exact_strings("Run `git log --oneline src/app.py` or ``a ` b`` in ` x `.") == (
        "git log --oneline src/app.py",
        "a ` b",
        "x",
    )


def test_quoted_names_are_found() -> None:
    assert extract_exact_strings("open('.env') and \"notes/plan.md\" and <src/app.py>") == (
        ".env",
        "notes/plan.md",
        "src/app.py",
    )


def test_links_to_notes_are_found_without_their_alias() -> None:
    assert extract_exact_strings("See [[Project Spec|the spec]] and [[Plan]].") == ("Project Spec", "Plan")


def test_lines_after_a_prompt_are_commands() -> None:
    assert extract_exact_strings("Do this:\n$ make test\n  $ make docs \nthen that") == ("make test", "make docs")


@pytest.mark.parametrize("shell", ["sh", "bash", "console", "zsh", "Shell"])
def test_lines_of_a_shells_code_block_are_commands(shell: str) -> None:
    text = f"```{shell}\n# a comment\npip install lamella\n\ncd src && ls\n```\nThat was 12 MB."
    assert extract_exact_strings(text) == ("pip install lamella", "cd src && ls", "12 MB")


def test_lines_without_shell_prompt_are_output() -> None:
    text = "```console\n$ lamella replay x.json\nwrote out.json in 35 ms\n```"
    assert extract_exact_strings(text) == ("lamella replay x.json", "out.json", "35 ms")


def test_other_code_blocks_are_read_like_text() -> None:
    assert extract_exact_strings('```python\nlimit = 0.85\npath = "src/app.py"\nself.text\n```') == (
        "0.85",
        "src/app.py",
    )


def test_code_block_that_is_never_closed_is_still_read() -> None:
    assert extract_exact_strings("~~~sh\nmake test") == ("make test",)


def test_tokens_are_ordered_unique_and_disjoint() -> None:
    text = "Put 5 MB into out/a.bin at https://example.org/5/MB, again 5 MB, on 2024-05-01."
    assert extract_exact_strings(text) == ("5 MB", "out/a.bin", "https://example.org/5/MB", "2024-05-01")


def test_tokens_between_characters_without_spaces_are_found() -> None:
    assert extract_exact_strings("版本1.2.3在2024年5月发布，共12.5%。") == ("1.2.3", "2024年5月", "12.5%")  # noqa: RUF001


PIECES = [
    "src/app.py", "`", "``", "```sh\n", "$ ", "\n", " ", "12", ".", ",", "5 MB", "May 3",
    "https://x.org/", "(", ")", "[[", "]]", "|",
    "@", "a", "é", "中", "-", "--", "/", "\\", ":", "#", "3f2a9c1", "ABC-1", "%", "€", "v1", "<", ">",
    "\t", "~", "年", "_", "\u0301", '"',
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


@steady
@given(texts)
def test_every_token_is_trimmed_span_of_text(text: str) -> None:
    found = extract_exact_strings(text)
    assert all(token in text and token and token == token.strip() and "\n" not in token for token in found)
    assert len(set(found)) == len(found)
    reached = 0
    for token in found:
        reached = text.index(token, reached) + len(token)


HOSTILE = [
    "a", "1", "1,", "a@", "`", "` `` ", "[[", "/", "://", "a://", "-", "1-", "0f", "May 1 ", "1:1",
    "1.1:", "$ ", "```sh\n",
    "a.b", "1 ", "v1-1", "x://)", "12345678-1234-", "12年", "#1", "10 m", "``a`", "\\a", "\\", "[[a|",
]  # fmt: skip


def test_megabyte_of_hostile_text_is_read_in_one_pass() -> None:
    size = 1_000_000 // len(HOSTILE)
    text = "\n".join(piece * (size // len(piece)) for piece in HOSTILE)
    assert len(text) > 990_000
    assert all(token in text for token in extract_exact_strings(text)[:100])


def test_ledger_has_the_tokens_of_all_texts_once_in_order() -> None:
    texts = ["Read src/app.py in 5 MB.", "Again src/app.py, v1.2.3."]
    assert render_exact_strings(texts, max_tokens=100, count=quarters) == "src/app.py\n5 MB\nv1.2.3"


def test_tokens_beyond_limit_are_counted_and_oldest_kept() -> None:
    ledger = render_exact_strings([f"file{n}.py" for n in range(1_500)], max_tokens=8, count=words)
    assert ledger == "file0.py\nfile1.py\nfile2.py\nfile3.py\nfile4.py\nand 1,495 more"


def test_names_and_rare_tokens_precede_numbers_and_common_ones() -> None:
    texts = [f"Desk K-{n} of 2026 has code {n}77, see plan.md." for n in range(30, 33)]
    ledger = render_exact_strings(texts, max_tokens=7, count=words)
    assert ledger == "K-30\nplan.md\nK-31\nK-32\nand 4 more"
    # As it was: by first appearance, and no id of one letter.
    former = render_exact_strings(texts, max_tokens=6, count=words, legacy=True)
    assert former == "2026\n3077\nplan.md\n3177\n3277"


def test_one_token_that_is_too_long_does_not_keep_the_others_out() -> None:
    ledger = render_exact_strings([f"https://example.org/{'x' * 400} and a.py and b.py"], max_tokens=20, count=quarters)
    assert ledger == "a.py\nb.py\nand 1 more"


def test_texts_without_exact_tokens_make_an_empty_ledger() -> None:
    assert render_exact_strings(["nothing exact here", ""], max_tokens=100, count=quarters) == ""


def test_limit_too_small_gives_empty_list() -> None:
    assert render_exact_strings(["a.py b.py"], max_tokens=0, count=quarters) == ""
    assert render_exact_strings(["a.py b.py"], max_tokens=1, count=quarters) == ""


@steady
@given(st.lists(texts, max_size=5), st.integers(0, 60), st.sampled_from([quarters, words, len]))
def test_token_list_stays_within_limit_and_counts_every_token(
    texts: list[str], cap: int, count: Callable[[str], int]
) -> None:
    ledger = render_exact_strings(texts, max_tokens=cap, count=count)
    assert count(ledger) <= cap
    tokens = list(dict.fromkeys(token for text in texts for token in extract_exact_strings(text)))
    lines = ledger.split("\n") if ledger else []
    kept = [line for line in lines if line in tokens]
    assert kept == [token for token in tokens if token in kept]
    assert not ledger or lines == [*kept, *[f"and {len(tokens) - len(kept):,} more"][: len(tokens) != len(kept)]]
