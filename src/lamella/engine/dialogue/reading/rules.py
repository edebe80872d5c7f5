"""Rules: the user's standing wishes, found in what was typed or added by hand, and what is done about them."""

from collections.abc import Callable, Iterable, Sequence, Set

from lamella.core.log.turn import RuleBook
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import join_wishes
from lamella.core.text.content import normalise, short_hash
from lamella.core.text.said.wishes import find_wishes
from lamella.engine.dialogue.ask import Ask
from lamella.errors import CallError
from lamella.holdings import Rule

# As long as a sentence may be that is found by itself.
_LONGEST = 400
_ID_DIGITS = 8
# What rules added by hand may take of what fits: they stand whatever else goes.
RULES_SHARE = 0.05

# The number of a turn, the id of its question, and what was typed in it.
Question = tuple[int, str, str]


def read_rules(asked: Ask, state: State) -> RuleBook | None:
    """What was done by hand about rules once this is asked; none if as before."""
    before, turn = state.rules if asked.book is None else asked.book, state.turns + 1
    added = [one for one in before.added if one[1] not in asked.ended]
    ended = [one for one in before.ended if one[1] not in (*asked.rules, *asked.ended)]
    there = {text for _, text in added}
    book = RuleBook(
        added=(*added, *((turn, text) for text in asked.rules if text not in there)),
        ended=(*ended, *((turn, text) for text in asked.ended)),
    )
    return None if book == state.rules else book


def write_rules(book: RuleBook, before: RuleBook) -> dict[str, list[str]]:
    """What a turn does about rules as a transcript has it: texts that hold from then on, and those that end."""
    known = {text for _, text in before.added}
    added = [text for _, text in book.added if text not in known]
    ended = [one[1] for one in book.ended if one not in before.ended]
    return {name: texts for name, texts in (("rules", added), ("ended_rules", ended)) if texts}


def list_rules(questions: Iterable[Question], book: RuleBook, waits: Ask, *, cues: Set[str]) -> tuple[Rule, ...]:
    """Every rule that holds, with its source, the newest last: what waits for the next question counts as asked."""
    asked = list(questions)
    messages = {turn: message for turn, message, _ in asked}
    coming = 1 + max(messages, default=0)
    found = [(turn, wish) for turn, _, text in asked for wish in find_wishes(text, cues=cues)]
    own = {text: turn for turn, text in book.added if text not in waits.ended}
    own |= dict.fromkeys([text for text in waits.rules if text not in own], coming)
    over = {text: turn for turn, text in book.ended} | dict.fromkeys(waits.ended, coming)
    ended = [(turn, text) for text, turn in over.items() if text not in waits.rules]
    held = join_wishes(found, [(turn, text) for text, turn in own.items()], ended=ended)
    return tuple(
        Rule(
            id=name_rule(text),
            text=text,
            message=messages.get(turn, ""),
            turn=turn,
            by="user" if own.get(text) == turn else "found",
        )
        for turn, text in held
    )


def name_rule(text: str) -> str:
    """What a rule is called: a few letters and digits that follow from its words."""
    return short_hash(text)[:_ID_DIGITS]


def check_rule(text: str, rules: Sequence[Rule], *, limit: int, count: Callable[[str], int]) -> str:
    """A rule as it is kept: one line, as long as a sentence, and no more of them than may stand in any prompt."""
    line = " ".join(normalise(text).split())
    if not line or len(line) > _LONGEST:
        raise CallError(
            f"A rule has {len(line):,} characters; it may have 1 to {_LONGEST}.",
            hint="Say in one sentence what is to be done from now on; longer instructions go into the system prompt.",
        )
    room = int(RULES_SHARE * limit)
    taken = sum(count(one.text) for one in rules if one.by == "user" and one.text != line)
    if taken + count(line) > room:
        raise CallError(
            f"The rules added by hand would take {taken + count(line):,} tokens; {room:,} are for them.",
            hint="Remove one first, or choose a larger window.",
        )
    return line


def find_rule(name: str, rules: Sequence[Rule]) -> Rule:
    """The rule that somebody names: by its id, its number in the list, or its words."""
    numbers = {str(number): one for number, one in enumerate(rules, start=1)}
    for one in rules:
        if name in (one.id, one.text):
            return one
    if name in numbers:
        return numbers[name]
    there = ", ".join(one.id for one in rules)
    raise CallError(
        f"There is no rule {name!r} here.", hint=f"Rules: {there}." if there else "This conversation has no rules."
    )
