"""Run a command on several items; a failure of one item does not stop the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer
from msgspec import UNSET
from msgspec.structs import replace

from lamella.cli.errors import CliHints, exit_code, failure_to_json, print_failure
from lamella.cli.output import print_json, print_text, show_if_slow
from lamella.errors import LamellaError, StoreCorruptedError
from lamella.schemas.body import JsonBody
from lamella.schemas.conversations import FailedItemJson

if TYPE_CHECKING:
    from lamella.schemas.compaction import RecallEverywhereJson
    from lamella.schemas.conversations import MessageHitListJson

_Item = TypeVar("_Item")
_Hit = TypeVar("_Hit")
_Body = TypeVar("_Body", bound=JsonBody)


def run_each_and_print_results(
    items: Mapping[str, _Item],
    run_item: Callable[[_Item], tuple[_Body, Sequence[str]]],
    *,
    make_body: Callable[[Sequence[_Body], Sequence[FailedItemJson]], JsonBody],
    description: str,
    store: str | None,
    as_json: bool,
) -> None:
    """Run ``run_item`` on each item and print the lines it returns: the first to stdout, the others to stderr.

    If some items fail, the others are still done, and the process exits with the highest exit code. A single item
    raises its error. With ``as_json`` stdout gets one body at the end, which ``make_body`` makes of the results and the failures.
    """
    bodies: list[_Body] = []
    failed: dict[str, LamellaError] = {}
    with show_if_slow(description) as waiting:
        for done, (name, item) in enumerate(items.items()):
            waiting.set_count(done, len(items))
            try:
                body, lines = run_item(item)
            except LamellaError as error:
                if len(items) == 1:
                    raise
                failed[name] = error
                with waiting.hidden():
                    print_failure(error, CliHints(store), as_json=False)
                continue
            bodies.append(body)
            with waiting.hidden():
                for number, line in enumerate(lines):
                    if number or not as_json:
                        print_text(line, err=number > 0)
    if as_json:
        errors = {name: failure_to_json(error, CliHints(store)).error for name, error in failed.items()}
        print_json(make_body(bodies, [FailedItemJson(item=name, error=error) for name, error in errors.items()]))
    if failed:
        print_text(f"{description}: {len(failed):,} of {len(items):,} failed; the others succeeded.", err=True)
        raise typer.Exit(max(map(exit_code, failed.values())))


class SearchHitCollector(list[_Hit]):
    """The hits of a search over all conversations; a damaged conversation does not hide hits of the others."""

    def __init__(self, store: str | None) -> None:
        super().__init__()
        self._hints = CliHints(store)
        self._corruption: StoreCorruptedError | None = None

    def collect(self, hits: Iterator[_Hit]) -> Iterator[_Hit]:
        """Yield each hit and collect it after the caller has printed it.

        Store corruption ends the iteration. ``print_results`` reports it.
        """
        try:
            for one in hits:
                yield one
                # Appended after the yield: the caller tests ``not found`` to recognise the first hit.
                self.append(one)
        except StoreCorruptedError as error:
            self._corruption = error

    def print_results(
        self, body: "MessageHitListJson | RecallEverywhereJson", *, empty_message: str, as_json: bool
    ) -> int:
        """Print the results as one JSON object, or the message for "nothing found", and any corruption.

        Returns the exit code: 0 if there are hits and no corruption, 1 otherwise.
        """
        if as_json:
            error = UNSET if self._corruption is None else failure_to_json(self._corruption, self._hints).error
            print_json(replace(body, error=error))
        elif not self and self._corruption is None:
            print_text(empty_message, err=True)
        if self._corruption is not None:
            print_failure(self._corruption, self._hints, as_json=False)
        return 0 if self and self._corruption is None else 1
