"""Print a diagnosis of logs for people, and as annotations for GitHub."""

from collections.abc import Sequence
from decimal import Decimal

from rich.text import Text

from lamella.cli.console import make_console, print_with_hanging_indent
from lamella.cli.output import escape_to_short_line, format_count, print_text
from lamella.schemas.doctor import DoctorConversationJson, DoctorJson, FindingJson, LogReplayJson

_MAX_LISTED_REQUESTS = 8
_MAX_CONVERSATIONS = 5
_SMALLEST_SHOWN = Decimal("0.01")


def print_diagnosis(body: DoctorJson) -> None:
    """Print totals, then each finding with its price, its place and what to do."""
    console = make_console()
    share, tokens = body.cached_share, body.tokens
    formats = ", ".join(f"{name} ({count:,})" for name, count in body.formats.items()) or "no known format"
    console.print(
        Text(
            f"{format_count(body.requests, 'request')} in {format_count(body.conversations, 'conversation')} · {formats}",
            style="bold",
        )
    )
    how = "" if not body.without_usage else f", {body.without_usage:,} of {body.requests:,} requests predicted"
    console.print(
        Text(
            f"{tokens.input:,} input tokens · {share.reached:.0%} served by the cache, {share.reachable:.0%} possible{how}"
        )
    )
    console.print(Text(f"spent {_money(body.cost.spent)} · lost {_money(body.cost.lost)}"))
    if body.failed:
        console.print(Text(f"{format_count(body.failed, 'request')} failed and cost nothing", style="dim"))
    if body.unpriced_models:
        names = ", ".join(escape_to_short_line(name) for name in body.unpriced_models)
        console.print(Text(f"no known price: {names}", style="dim"))
    for number, finding in enumerate(body.findings, start=1):
        console.print()
        _print_finding(number, finding)
    if not body.findings and body.requests:
        console.print()
        console.print(Text("Nothing to repair: each prefix that could be cached was cached.", style="green"))
    if len(body.most_expensive) > 1:
        console.print()
        console.print(Text("most expensive conversations", style="bold"))
        for one in body.most_expensive[:_MAX_CONVERSATIONS]:
            console.print(Text(f"  {_format_conversation(one)}"))
    if isinstance(body.replay, LogReplayJson):
        console.print()
        _print_replay(body.replay)
    if body.unread:
        console.print()
        console.print(Text(f"{format_count(body.unread, 'record')} not recognised, for example:", style="yellow"))
        for example in body.unread_examples:
            console.print(Text(f"  {escape_to_short_line(example)}", style="dim"))


def _print_finding(number: int, finding: FindingJson) -> None:
    console = make_console()
    head = Text(f"{number}. {finding.says}", style="bold red")
    print_with_hanging_indent(
        console, head.append(f"  {finding.cause} in {escape_to_short_line(finding.where)}", style="default")
    )
    price = f"lost {_money(finding.cost)}, " if finding.cost is not None else ""
    console.print(Text(f"   {price}{finding.tokens:,} tokens · {_format_requests(finding.requests)}"), soft_wrap=False)
    if finding.detail:
        console.print(Text(f"   {escape_to_short_line(finding.detail)}"))
    if finding.before or finding.after:
        console.print(Text(f"   before  {escape_to_short_line(finding.before)}", style="dim"))
        console.print(Text(f"   after   {escape_to_short_line(finding.after)}", style="dim"))
    print_with_hanging_indent(console, Text(f"   fix: {finding.fix}"))


def _print_replay(replay: LogReplayJson) -> None:
    console = make_console()
    console.print(Text("the same conversations again, input only", style="bold"))
    console.print(Text(f"  as logged               {_money(replay.logged_cost)}"))
    if replay.best_fix is not None and replay.best_fix_cost is not None:
        console.print(Text(f"  without {replay.best_fix:<15} {_money(replay.best_fix_cost)}"))
    console.print(Text(f"  in the layout auto      {_money(replay.auto_cost)}"))
    if replay.documents:
        console.print(
            Text(
                f"  {replay.readable:,} of {replay.documents:,} attached documents were in the prompt of their turn in full"
            )
        )
    for reason, count in replay.left_out.items():
        console.print(
            Text(f"  left out: {format_count(count, 'conversation')}: {escape_to_short_line(reason)}", style="dim")
        )


def print_annotations(body: DoctorJson) -> None:
    """Print each finding as a line that GitHub shows beside a build."""
    for finding in body.findings:
        cost = "" if finding.cost is None else f" Lost {_money(finding.cost)}."
        text = f"{finding.where}: {finding.fix}{cost} {_format_requests(finding.requests).capitalize()}."
        print_text(f"::warning title={_escape_property(finding.says)}::{_escape_message(text)}")
    summary = f"{body.cached_share.reached:.0%} of the input came from the cache, {body.cached_share.reachable:.0%} was possible."
    print_text(f"::notice title=lamella doctor::{_escape_message(summary)}")


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")


def _format_requests(listed: Sequence[int]) -> str:
    shown = ", ".join(f"{one:,}" for one in listed[:_MAX_LISTED_REQUESTS])
    more = f" and {len(listed) - _MAX_LISTED_REQUESTS:,} more" if len(listed) > _MAX_LISTED_REQUESTS else ""
    return f"request{'' if len(listed) == 1 else 's'} {shown}{more}"


def _format_conversation(one: DoctorConversationJson) -> str:
    label = f" {escape_to_short_line(one.label)}" if one.label else ""
    return (
        f"conversation {one.conversation}{label}  {_money(one.cost)} · {format_count(one.requests, 'request')} · "
        f"{one.cached_share.reached:.0%} cached, {one.cached_share.reachable:.0%} possible"
    )


def _money(amount: str | None) -> str:
    if amount is None:
        return "an unknown amount"
    value = Decimal(amount)
    return f"${value:,.2f}" if value >= _SMALLEST_SHOWN or not value else f"${value:.6f}"
