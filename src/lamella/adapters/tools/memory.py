"""``remember``: a fact written down for later conversations, where somebody keeps a memory."""

from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.attach import Tool
from lamella.ports import Remember

_LONGEST = 2_000


def make_remember_tool(remember: Remember) -> Tool:
    """A memory as a tool."""

    def run(given: Arguments) -> str:
        fact = " ".join(str(given["fact"]).split())
        if not fact:
            raise ValueError("fact is blank")
        if len(fact) > _LONGEST:
            raise ValueError(f"fact has {len(fact):,} characters; at most {_LONGEST:,} are kept of one")
        return remember(fact)

    return make_tool(
        "remember",
        "Write down a lasting fact about the user or their work for later conversations. Only when the user wants it.",
        parameters=(ToolParameter("fact", "The fact, as one sentence that is understood by itself.", required=True),),
        run=run,
    )
