"""``lamella doctor``: what the requests in a log cost, which of it was avoidable, and why."""

from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.doctor_tables import print_annotations, print_diagnosis
from lamella.cli.output import print_json, print_text
from lamella.errors import UsageError
from lamella.schemas.doctor import diagnosis_to_json
from lamella.wiring import read_services
from lamella.wiring.doctor import examine_logs


def doctor(
    *,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Log files, folders of logs, or - for standard input.")
    ],
    as_json: JsonOption = False,
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if the cache served less than this share of what it could have."),
    ] = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print each finding as a GitHub annotation.")
    ] = False,
) -> int:
    """Show what the requests in a log cost, which of it was avoidable, and why.

    lamella doctor requests.jsonl
    """
    if as_json and annotations:
        raise UsageError("Use either --json or --annotations, not both.", hint="Run the command twice.")
    found = examine_logs(logs, read_services())
    diagnosis = found.diagnosis
    body = diagnosis_to_json(diagnosis, unread=found.unread, unread_examples=found.unread_examples)
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
