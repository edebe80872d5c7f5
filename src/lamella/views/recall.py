"""What a search in originals found, what is remembered, and the rules of a conversation, as data."""

from collections.abc import Iterable, Sequence

from lamella.core.search.finding import Found
from lamella.holdings import ChatListing, Fact, Rule


def view_recall(conversation: str, query: str, found: Sequence[Found]) -> dict[str, object]:
    """What left the prompt and has these words, best first."""
    return {"conversation": conversation, "query": query, "found": [_view_found(one) for one in found]}


def view_recall_hits(query: str, hits: Iterable[tuple[ChatListing, Found]]) -> dict[str, object]:
    """What has these words in any conversation, best first, each with the conversation that it is of."""
    found = [
        {"conversation": chat.conversation, "name": chat.name, "chat_title": chat.title, **_view_found(one)}
        for chat, one in hits
    ]
    return {"lamella": 1, "query": query, "found": found}


def _view_found(found: Found) -> dict[str, object]:
    passage = found.passage
    return {
        "place": passage.place,
        "at": found.at,
        "role": passage.role,
        "id": passage.id,
        "message": passage.message or None,
        "title": passage.title,
        "score": found.score,
        "excerpt": found.excerpt,
        "text": passage.text,
    }


def view_rules(conversation: str, rules: Sequence[Rule]) -> dict[str, object]:
    """The user's standing wishes that hold, the newest last."""
    return {"lamella": 1, "conversation": conversation, "rules": [view_rule(one) for one in rules]}


def view_rule(rule: Rule) -> dict[str, object]:
    """One of them, with its source; a message that is not asked yet is none."""
    return {
        "id": rule.id,
        "text": rule.text,
        "message": rule.message or None,
        "turn": rule.turn,
        "by": rule.by,
    }


def view_memory(folder: str, facts: Sequence[Fact]) -> dict[str, object]:
    """What is remembered, in its order, each with the number that names it."""
    listed = [view_fact(fact, number=number) for number, fact in enumerate(facts, start=1)]
    return {"lamella": 1, "folder": folder, "facts": listed}


def view_fact(fact: Fact, **more: object) -> dict[str, object]:
    """One line of the memory, and what else is to be said of it."""
    return {"id": fact.id, "kind": fact.kind.value, "text": fact.text, "chat": fact.chat or None, **more}
