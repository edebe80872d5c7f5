"""Run a command on a conversation's library and print its effect."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lamella.attach import Attachment, parse_policy
from lamella.cli.access import ChatArgument, JsonOption, StoreOption, open_conversation
from lamella.cli.ledger_tables import print_cache_expiry
from lamella.cli.mentions import with_policy
from lamella.cli.options import VaultOption
from lamella.cli.output import escape_to_short_line, print_json, print_text, show_if_slow
from lamella.cli.prompt_tables import print_command_effect, print_library
from lamella.conversation.commands import ALL_NAMES
from lamella.conversation.conversation import Conversation
from lamella.conversation.rules import get_rule
from lamella.conversation.turn import TurnRequest
from lamella.errors import BadInputError, UsageError
from lamella.ports import NO_VAULT_MESSAGE, Rule
from lamella.schemas.compaction import rules_to_json
from lamella.schemas.library import commands_to_json, library_to_json
from lamella.wiring import open_attachment_resolver


def check_names_not_blank(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names; raise ``UsageError`` if one is blank, as an empty shell variable gives it."""
    if not all(name.strip() for name in names):
        raise UsageError("A name is blank.", hint="Give a name; `lamella show CHAT` lists the attachments.")
    return tuple(names)


def run_library_command(
    chat: str,
    turn_request: TurnRequest | Callable[[], TurnRequest],
    *,
    store: str | None,
    as_json: bool,
    vault: Path | None = None,
    create: bool = False,
    all_or_nothing: bool = False,
) -> None:
    """Run a command on a conversation, and print the pending commands and the next request's size.

    ``create`` starts a missing conversation. ``turn_request`` may be a function, which is called once the
    conversation is
    known to exist. ``all_or_nothing`` says that several things are attached together: an error then says that none of
    them was.
    """
    # One time for both previews, so that they differ by the command alone and not by the age of the cache.
    nothing, now = TurnRequest(text=""), datetime.now(UTC)
    with open_conversation(store, chat, vault=vault, create=create) as conversation_log:
        with show_if_slow(f"Reading attachments for {chat}"):
            before = conversation_log.preview(nothing, at=now)
            with _explain_nothing_attached() if all_or_nothing else nullcontext():
                done = conversation_log.queue_command(
                    turn_request if isinstance(turn_request, TurnRequest) else turn_request()
                )
            after = conversation_log.preview(nothing, at=now)
        if as_json:
            print_json(commands_to_json(conversation_log.id, done, before=before, after=after))
        else:
            print_command_effect(conversation_log, done, before=before, after=after)
            if any(line.endswith(NO_VAULT_MESSAGE) for line in done.warnings):
                print_text("hint: Add --vault FOLDER.", err=True)


@contextmanager
def _explain_nothing_attached() -> Iterator[None]:
    """Extend an error about one of several attachments: nothing was attached, and the others still can be."""
    try:
        yield
    except BadInputError as error:
        advice = error.raw_hint
        error.message = f"{error.message} Nothing was attached."
        error.hint = lambda hints: (
            f"{advice if isinstance(advice, str) else advice(hints)} You can attach the others without it."
        )
        raise


# ``lamella attach`` and ``lamella refresh``: read attachments now and store them for the next turn.

QuestionOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="TEXT",
        help="Which notes to prefer if a folder or tag is too big.",
        show_default="the last question",
    ),
]


def attach(
    *,
    chat: ChatArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="File, URL, folder, [[Note]], #tag, or lines such as note.md:10-20."),
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="PATH:10-20", help="Lines of a file to attach. Repeatable.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="follow: send changes to the file; snapshot: keep the first version; pin: never shorten.",
            metavar="NAME",
            show_default="follow",
        ),
    ] = None,
    question: QuestionOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Attach files, folders or notes to the next turn.

    The text is read now and stored until then.

    lamella attach garden decisions/one-index.md --vault examples/vault
    """
    parse_policy(policy)
    if not names and not select:
        raise UsageError("Missing name of a file, folder, note or tag.", hint="Example: lamella attach garden note.md")
    named = check_names_not_blank(names or ())

    def find() -> TurnRequest:
        files = open_attachment_resolver(vault)
        found: list[Attachment] = [one for name in named for one in files.resolve(name.removeprefix("@"))]
        found += [files.select_lines(name) for name in select or ()]
        attached = tuple(with_policy(one, policy).to_artifact() for one in found)
        return TurnRequest(text=question or "", attach=attached)

    several = len(named) + len(select or ()) > 1
    run_library_command(chat, find, store=store, as_json=as_json, vault=vault, all_or_nothing=several)


def refresh(
    *,
    chat: ChatArgument,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Attachments to read again, by id.", show_default="all")
    ] = None,
    question: QuestionOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Read attachments again and send changes with the next turn.

    lamella refresh garden --vault examples/vault
    """
    named = check_names_not_blank(names) if names else (ALL_NAMES,)
    run_library_command(
        chat, TurnRequest(text=question or "", refresh=named), store=store, as_json=as_json, vault=vault
    )


# ``lamella detach`` and ``lamella drop``: remove attachments from the next turn on.


def detach(
    *,
    chat: ChatArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Attachment id, or its folder or tag.", show_default="all"),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Remove an attachment, or cancel a pending one.

    lamella detach garden decisions/one-index.md
    """
    run_library_command(
        chat,
        TurnRequest(text="", detach=check_names_not_blank(names) if names else (ALL_NAMES,)),
        store=store,
        as_json=as_json,
    )


def drop(
    *,
    chat: ChatArgument,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Attachment id, or its folder or tag.")],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Remove an attachment from the prompt; recall still finds it.

    lamella drop garden decisions/one-index.md
    """
    run_library_command(chat, TurnRequest(text="", drop=check_names_not_blank(names)), store=store, as_json=as_json)


# ``lamella pin`` and ``lamella unpin``: keep artifacts or messages in full, or let them be shortened again.

_NamesArgument = Annotated[
    list[str], typer.Argument(metavar="ID", help="Attachment id, message id, turn:3 or reply:3.")
]


def pin(*, chat: ChatArgument, names: _NamesArgument, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Keep attachments or messages in full, from the next turn on.

    lamella pin garden decisions/one-index.md
    """
    run_library_command(chat, TurnRequest(text="", pin=check_names_not_blank(names)), store=store, as_json=as_json)


def unpin(*, chat: ChatArgument, names: _NamesArgument, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Allow pinned attachments or messages to be shortened again.

    lamella unpin garden decisions/one-index.md
    """
    run_library_command(chat, TurnRequest(text="", unpin=check_names_not_blank(names)), store=store, as_json=as_json)


# ``lamella rules``: list, add and remove the user rules of a conversation.

NO_RULES_MESSAGE = "No rules."


def rules(
    *,
    chat: ChatArgument,
    add: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Rule to add from the next turn on. Repeatable.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Rule to remove: its id, number or text. Repeatable.")
    ] = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Candidate to make a rule: its id, number or text. Repeatable."),
    ] = None,
    dismiss: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Candidate to dismiss: its id, number or text. Repeatable."),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List, add and remove the rules of a conversation.

    A rule says what the model must do from now on, and stays in the system prompt until you remove it. The list also
    has candidates: sentences of yours that look like a rule. Confirm those that are rules, or dismiss them.

    lamella rules garden

    lamella rules garden --add "Answer in one sentence."

    lamella rules garden --confirm 1
    """
    if any(not one.strip() for one in (*(add or ()), *(remove or ()), *(confirm or ()), *(dismiss or ()))):
        raise UsageError("A rule is blank.", hint='Example: lamella rules garden --add "Answer in one sentence."')
    with open_conversation(store, chat) as conversation_log:
        _change_rules(
            conversation_log, add=add or [], confirm=confirm or [], remove=[*(remove or []), *(dismiss or [])]
        )
        found = conversation_log.rules()
    if as_json:
        print_json(rules_to_json(conversation_log.id, found))
    else:
        print_text("\n".join(format_rules(found)))


def _change_rules(
    conversation_log: Conversation, *, add: Sequence[str], confirm: Sequence[str], remove: Sequence[str]
) -> None:
    # Resolve every name before changing anything: numbers refer to the list as it was last shown.
    listed = conversation_log.rules() if confirm or remove else ()
    confirmed_rules = [get_rule(one, listed).text for one in confirm]
    removed_rules = [get_rule(one, listed).text for one in remove]
    for text in removed_rules:
        conversation_log.remove_rule(text)
    for text in (*confirmed_rules, *add):
        conversation_log.add_rule(text)


def format_rules(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield one line per rule and candidate with its number, id, text and the turn it comes from."""
    if not rules:
        yield NO_RULES_MESSAGE
    for number, one in enumerate(rules, start=1):
        since = f"turn {one.turn}" if one.message else "from the next turn on"
        kind = "rule" if one.origin == "user" else "candidate"
        yield f"{number:>3}  {one.id}  {escape_to_short_line(one.text)}  ({kind}, {since})"


# ``lamella show``: list a conversation's attachments and their share of the next request.


def show(
    *, chat: ChatArgument, vault: VaultOption = None, as_json: JsonOption = False, store: StoreOption = None
) -> None:
    """List the attachments of a conversation with their size, age and cache status.

    If the provider's cache has expired or will soon, it also shows what the next message will cost.

    lamella show garden
    """
    with open_conversation(store, chat, vault=vault) as conversation_log:
        now = datetime.now(UTC)
        with show_if_slow(f"Reading {chat}"):
            rows, expired = conversation_log.library(at=now), conversation_log.estimate_cache_expiry(at=now)
        if as_json:
            print_json(library_to_json(conversation_log.id, rows, conversation_log.pending_commands, expired=expired))
        else:
            print_library(conversation_log, rows)
            print_cache_expiry(expired, now=now)
