"""The text that ``lamella`` prints without arguments. It loads no command and no parser, so that it appears at once."""

PROGRAM_SUMMARY = "Chat with language models, and see what each prompt contains and costs."

# The ten commands to know first, in the order of help, with at most eight words each.
FIRST_COMMANDS = {
    "chat": "Talk with a model.",
    "ask": "Ask one question; the answer goes to stdout.",
    "search": "Search your notes, offline.",
    "show": "List the attachments of a conversation.",
    "chats": "List, read, edit, export and delete conversations.",
    "ledger": "Show cost, cache hits and timing per turn.",
    "why": "Explain why an item is in the prompt.",
    "compact": "Shorten the prompt of a conversation.",
    "serve": "Serve conversations over HTTP.",
    "config": "Show settings and where they come from.",
}
_NAME_WIDTH = max(map(len, FIRST_COMMANDS)) + 2


def render_overview() -> str:
    """Return the overview: what Lamella does, two examples, the first commands, and where to read more."""
    commands = [f"  {name:<{_NAME_WIDTH}}{summary}" for name, summary in FIRST_COMMANDS.items()]
    return "\n".join(
        (
            PROGRAM_SUMMARY,
            "",
            "Examples:",
            "  lamella chat garden --vault examples/vault",
            '  lamella search "what is decided" --vault examples/vault',
            "",
            "Commands:",
            *commands,
            "",
            "lamella --help lists all commands.",
            "Documentation: README.md and the docs folder",
        )
    )
