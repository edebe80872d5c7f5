"""``lamella doctor``: what the requests in a log cost, which of it was avoidable, and why."""

from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from msgspec import UNSET, UnsetType

from lamella.cli.access import JsonOption
from lamella.cli.doctor_tables import print_annotations, print_diagnosis
from lamella.cli.output import format_count, print_json, print_text, show_if_slow
from lamella.doctor.html_report import render_report
from lamella.errors import UsageError
from lamella.schemas.doctor import LogReplayJson, diagnosis_to_json, replay_to_json
from lamella.wiring import ServiceContainer, read_services
from lamella.wiring.doctor import examine_logs, redact_logs


def doctor(
    *,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Log files, folders of logs, or - for standard input.")
    ],
    as_json: JsonOption = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Also show what the conversations would have cost in Lamella's layout `auto`."),
    ] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if the cache served less than this share of what it could have."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report with plots as one HTML file.")
    ] = None,
    redact: Annotated[
        Path | None,
        typer.Option("--redact", metavar="FILE", help="Write a log without texts that keeps every finding, and stop."),
    ] = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print each finding as a GitHub annotation.")
    ] = False,
) -> int:
    """Show what requests in a log cost, what was avoidable, and why.

    lamella doctor examples/requests.jsonl
    """
    if as_json and annotations:
        raise UsageError("Use either --json or --annotations, not both.", hint="Run the command twice.")
    services = read_services()
    if redact is not None:
        _write_redacted(logs, redact, services)
        return 0
    with show_if_slow("Reading logs"):
        found = examine_logs(logs, services, replays=replay)
    diagnosis = found.diagnosis
    replayed: LogReplayJson | UnsetType = UNSET
    if found.replay is not None:
        rows = [(one.logged, one.auto, one.documents, one.readable) for one in found.replay.conversations]
        replayed = replay_to_json(diagnosis, rows, found.replay.left_out)
    body = diagnosis_to_json(diagnosis, unread=found.unread, unread_examples=found.unread_examples, replay=replayed)
    if html is not None:
        _write_report(html, render_report(diagnosis, unread=found.unread))
    if as_json:
        print_json(body)
    elif annotations:
        print_annotations(body)
    else:
        print_diagnosis(body)
    if fail_under is None:
        return 0
    share = diagnosis.reached / diagnosis.reachable if diagnosis.reachable else 1.0
    good = share >= fail_under
    print_text(
        f"check {'passed' if good else 'failed'}: the cache served {share:.0%} of the tokens that it could have served, "
        f"{fail_under:.0%} required.",
        err=as_json or not good,
    )
    return 0 if good else 1


def _write_redacted(logs: list[str], path: Path, services: ServiceContainer) -> None:
    """Write the logs without their texts."""
    count = 0
    with _open_new(path) as file:
        for line in redact_logs(logs, services):
            file.write(line)
            count += 1
    print_text(f"{path}: {format_count(count, 'request')} without texts. Read it before you share it.")


def _write_report(path: Path, page: str) -> None:
    """Write the report into a new file."""
    with _open_new(path) as file:
        file.write(page.encode())


def _open_new(path: Path) -> BinaryIO:
    try:
        return path.expanduser().open("xb")
    except FileExistsError as error:
        raise UsageError(f"{path} exists.", hint="Name a new file; Lamella replaces none.") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}.", hint="Name a file in a folder that exists."
        ) from error
