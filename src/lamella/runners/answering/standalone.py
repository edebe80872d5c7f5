"""Standalone questions: what somebody asks in a conversation, in words that can be understood without it.

Whoever searches has only the question. A model words it; what it says is used where it can be meant by what was said,
else what was typed is.
"""

import re
from collections.abc import Sequence

from lamella.core.messages.model import Message, Role
from lamella.core.prompt.state import State
from lamella.core.search.terms import find_terms
from lamella.core.text.exact import find_exact
from lamella.core.text.words import cut_words
from lamella.engine.sending.asides import ask_aside
from lamella.engine.sending.job import Job
from lamella.engine.sending.preparing import read_typed
from lamella.errors import BadInputError, ProviderError, SecretError

_TASK = (
    "You put the last question of a conversation into words that can be understood without the conversation. Keep its "
    "language, names, numbers, times, [[links]] and #tags as they are. Answer with the question alone, in one line. If "
    "it can be understood by itself, repeat it."
)
# How much of the talk is told: its last turns, and of each so many characters.
_TURNS = 3
_ASKED, _SAID = 400, 800
_ANSWER = 200
_LONGEST = 600
# How much of what a model says must be words that were said before: the rest may be those that any question has.
_KNOWN = 1 / 3
_QUOTES = '"“”„«»'
_FILTER = re.compile(r'\[\[[^\[\]\n]+\]\]|(?<!\S)#[\w/-]+|(?<!\S)(?:path|folder):(?:"[^"]+"|\S+)', re.IGNORECASE)


async def make_standalone(job: Job) -> str:
    """The question of a job as it can be understood by itself; where nothing was said before it, as it was typed."""
    typed = read_typed(job)
    talk = list_talk(job.chat.standing[0])
    if not talk or not typed.strip():
        return typed
    job.chat.refuse_secrets([("what was typed", typed)], model=job.post.model)
    question = "\n".join((*talk, "", f"Question: {cut_words(typed, _LONGEST)}"))
    asked = [Message(role=Role.SYSTEM, pieces=(_TASK,)), Message(role=Role.USER, pieces=(question,))]
    try:
        reply = await ask_aside(job, asked, answer=_ANSWER, purpose="question")
    except SecretError:
        raise
    except (ProviderError, BadInputError):
        # A question that is not put well is still a question.
        return typed
    return choose_wording(reply.text, typed, talk)


def list_talk(state: State) -> list[str]:
    """The last turns of a conversation, a line for each message; what was left without an answer says nothing."""
    told = [(one.user.text, one.reply.text) for one in state.talk.exchanges[-_TURNS:]]
    return [
        line
        for asked, said in told
        if said.strip()
        for line in (f"User: {cut_words(asked, _ASKED)}", f"Assistant: {cut_words(said, _SAID)}")
    ]


def choose_wording(worded: str, typed: str, talk: Sequence[str]) -> str:
    """What a model made of a question, with the filters that it was typed with; else the question as it was typed."""
    line = worded.strip().strip("*_").strip()
    line = line if any(mark in typed for mark in _QUOTES) else "".join(one for one in line if one not in _QUOTES)
    if not line.strip() or "\n" in line or len(line) > _LONGEST or not _is_meant(line, " ".join((typed, *talk))):
        return typed
    return " ".join((line, *(one for one in list_filters(typed) if one not in line)))


def list_filters(question: str) -> list[str]:
    """What in a question says where to look, as it stands: links, tags and folders."""
    return _FILTER.findall(question)


def _is_meant(line: str, said: str) -> bool:
    """Whether a wording can be meant by what was said: most of its words and all of its exact ones come from there."""
    words, known = set(find_terms(line.casefold())), set(find_terms(said.casefold()))
    if not words or len(words & known) < _KNOWN * len(words):
        return False
    return all(token in said for token in find_exact(line))
