"""``lamella doctor`` as a user runs it."""

import json
from pathlib import Path

from tests.journeys.running import run
from tests.planted_logs import make_log


def _write_log(folder: Path, cause: str | None) -> str:
    path = folder / "requests.jsonl"
    path.write_text("\n".join(make_log(31, cause, "chat")), encoding="utf-8")
    return str(path)


def test_doctor_prints_cause_fix_and_request_numbers(tmp_path: Path) -> None:
    printed = run("doctor", _write_log(tmp_path, "time_in_prompt"))
    assert printed.exit == 0
    assert "1. A time changes inside the prompt" in printed.out
    assert "fix: Move the time into the last message" in printed.out
    assert "requests 2, 3" in printed.out


def test_doctor_fails_a_build_below_the_share(tmp_path: Path) -> None:
    bad, good = _write_log(tmp_path, "tools_reordered"), tmp_path / "good.jsonl"
    assert run("doctor", bad, "--fail-under", "0.8").exit == 1
    good.write_text("\n".join(make_log(31, None, "chat")), encoding="utf-8")
    passed = run("doctor", str(good), "--fail-under", "0.8")
    assert (passed.exit, "check passed" in passed.out) == (0, True)


def test_doctor_prints_annotations_for_github(tmp_path: Path) -> None:
    lines = run("doctor", _write_log(tmp_path, "time_in_prompt"), "--annotations").out.splitlines()
    assert lines[0].startswith("::warning title=A time changes inside the prompt::")
    assert lines[-1].startswith("::notice title=lamella doctor::")


def test_doctor_writes_html_and_redacted_logs_only_into_new_files(tmp_path: Path) -> None:
    log, page, shared = _write_log(tmp_path, "time_in_prompt"), tmp_path / "report.html", tmp_path / "shared.jsonl"
    assert run("doctor", log, "--html", str(page)).exit == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run("doctor", log, "--redact", str(shared)).exit == 0
    original = Path(log).read_bytes()
    for path in (page, shared, Path(log)):
        refused = run("doctor", log, "--redact", str(path))
        assert (refused.exit, "exists" in refused.err) == (2, True)
    assert Path(log).read_bytes() == original
    causes = [
        [one["cause"] for one in json.loads(run("doctor", path, "--json").out)["findings"]]
        for path in (log, str(shared))
    ]
    assert causes[0] == causes[1] == ["time_in_prompt"]


def test_doctor_names_a_missing_file_and_what_to_do(tmp_path: Path) -> None:
    failed = run("doctor", str(tmp_path / "gone.jsonl"))
    assert failed.exit == 2
    assert failed.err.startswith("error: There is no file")
    assert "hint:" in failed.err
