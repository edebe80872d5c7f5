"""Finding secrets: by line, once per content, and in bounded time."""

from time import perf_counter

from tests.unit.providers.secret_scanner.test_formats import LETTERS, MADE

from lamella.providers.secret_scanner import SecretFinder

TOKEN = MADE["ghp_"]


def find(text: str) -> tuple[tuple[int, str], ...]:
    return SecretFinder().scan(text, "sha256:x")


def test_secret_lines_are_reported_by_number_and_kind() -> None:
    text = f"One.\ntoken = {TOKEN}\nThree.\n{MADE['PRIVATE KEY']}\n{TOKEN} {TOKEN}\n"
    assert find(text) == ((2, "a GitHub token"), (4, "a private key"), (5, "a GitHub token"))


def test_text_without_secrets_reports_nothing() -> None:
    assert find("Run `ghp_` or the task-us runner; see eyJ and AKIA in the manual.\n" * 50) == ()


def test_scan_result_is_cached_by_content_hash() -> None:
    finder = SecretFinder()
    assert finder.scan(TOKEN, "one")
    assert finder.scan("nothing", "one") == finder.scan(TOKEN, "one")


def test_long_line_is_scanned_in_linear_time() -> None:
    hostile = ["ghp_" * 250_000, "eyJ" + LETTERS * 7_000, f"AKIA{'A' * 1_000_000}", "//" + "/:_authToken=" * 80_000]
    for text in hostile:
        started = perf_counter()
        find(text)
        assert perf_counter() - started < 5
    assert find("x" * 1_000_000 + f" {TOKEN}") == ((1, "a GitHub token"),)
