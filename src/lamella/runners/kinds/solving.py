"""Solving: one question with its history comes in; the answer, the whole history and the state of the prompt go out."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from msgspec import Struct

from lamella.attach import Attachment
from lamella.engine.chat import Chat
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.engine import Engine
from lamella.engine.log_line import add_used
from lamella.engine.sending.events import Event, EventName
from lamella.engine.sending.job import USUAL_RUNNER
from lamella.errors import CallError
from lamella.runners.kinds.asking import fence_code, word_wish
from lamella.runners.kinds.blocks import ATTACHED, BLOCKS, PART, ChatKind, make_instruction
from lamella.runners.kinds.messages import PlainMessage, PlainTalk, PlainTurn, even_lines, list_history
from lamella.runners.kinds.state import ChatState, find_state, read_state

Listener = Callable[[Event], None]


class Problem(Struct, frozen=True, kw_only=True):
    """A question as a client asks it, with all that it knows of the conversation.

    ``code`` rides in the question, since it is part of what was said; ``attach`` is what a kept conversation keeps
    beside it. With a ``template`` the question begins as its kind is asked for. Without a ``conversation`` nothing is
    kept: the history is all there is, and ``state`` says which blocks it had.
    """

    prompt: str = ""
    talk: PlainTalk = PlainTalk()
    code: str = ""
    attach: tuple[Attachment, ...] = ()
    template: bool = True
    model: str | None = None
    kind: ChatKind = ChatKind.REGULAR
    state: ChatState = ChatState()
    conversation: str | None = None
    max_tokens: int | None = None


class Solution(Struct, frozen=True, kw_only=True):
    """An answer, and all that was said until then: never what a prompt was made smaller to.

    ``conversation`` is the key of the one that keeps it, none where nothing is kept. ``ignored`` are fields of the
    request that were not looked at.
    """

    reply: str
    history: tuple[PlainMessage, ...]
    state: ChatState
    tokens_used: int
    model: str
    conversation: str | None = None
    warnings: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


async def solve_problem(engine: Engine, problem: Problem, *, tell: Listener | None = None) -> Solution:
    """Ask, and give back the answer with the whole history; ``tell`` hears of what happens on the way.

    Where it fails nothing is lost: what came in is as it was, and a kept question waits to be asked again.
    """
    asked = word_question(problem)
    settings = {} if problem.model is None else {"model": problem.model}
    if problem.conversation is None:
        # Nobody would keep what a summary cost.
        chat = await asyncio.to_thread(lambda: engine.unkept(**settings, summarizer="off"))
    else:
        chat = await engine.conversation(problem.conversation)
    given = drop_repeated(problem.talk.turns, asked=asked, prompt=problem.prompt)
    turns = await asyncio.to_thread(lambda: _catch_up(chat, given, asked=asked))
    waits = await asyncio.to_thread(lambda: _find_waiting(chat, problem, asked=asked))
    turn = await _send(chat, waits or asked, problem, tell=tell)
    return await asyncio.to_thread(lambda: _tell(chat, turn, problem, before=turns, asked=asked))


def word_question(problem: Problem) -> str:
    """What is asked, in full: as its kind is asked for where that is wanted, then the prompt, then the code."""
    said, wish = even_lines(problem.prompt).strip("\n"), BLOCKS[problem.kind].wish
    if problem.template and wish:
        said = word_wish(problem.kind, said)
    if not said.strip():
        raise CallError("There is no prompt.", hint="Say what is asked, or choose a function and its template.")
    return f"{said}\n\n{fence_code(even_lines(problem.code))}" if problem.code.strip() else said


def drop_repeated(turns: Sequence[PlainTurn], *, asked: str, prompt: str) -> tuple[PlainTurn, ...]:
    """Turns before a question; clients put it among the messages as well, with the code or without."""
    last = turns[-1] if turns else None
    same = (asked.strip(), even_lines(prompt).strip())
    repeated = last is not None and not last.answered and last.asked.strip() in same
    return tuple(turns[:-1] if repeated else turns)


def _catch_up(chat: Chat, given: Sequence[PlainTurn], *, asked: str) -> tuple[PlainTurn, ...]:
    """Bring a conversation to where a client has it, and say what was said in it until then.

    What a client leaves out at the end stays on a branch of its own; what it has beyond is added.
    """
    told = chat.turns()
    # Line ends are those that messages come with, or clients would differ in what nobody sees.
    kept = [PlainTurn(even_lines(one.message.typed), even_lines(one.reply.text) if one.reply else "") for one in told]
    waits = bool(told) and told[-1].reply is None and kept[-1].asked == asked
    if not given:
        return tuple(kept[:-1] if waits else kept)
    same = next((at for at, pair in enumerate(zip(kept, given, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(kept), len(given)) if same is None else same
    if kept and not shared:
        raise CallError(
            f"The messages do not begin as the conversation {chat.name!r} does.",
            hint="Send those that the last answer gave back, or none, or leave the conversation out.",
        )
    if shared < len(kept) - int(waits and shared == len(kept) - 1):
        last = told[shared - 1].reply
        if last is None:
            raise CallError(
                f"Question {shared:,} of the conversation {chat.name!r} was not answered there.",
                hint="Send those that the last answer gave back, or none, or leave the conversation out.",
            )
        chat.fork(last.id)
    chat.add_turns(given[shared:])
    return tuple(given)


def _find_waiting(chat: Chat, problem: Problem, *, asked: str) -> TurnView | None:
    """The turn that asks this already and was never answered, to be sent once more.

    One that was asked in the same words as another kind, or without what comes along now, is left behind on its branch.
    """
    told = chat.turns()
    if not told or told[-1].reply is not None or told[-1].message.typed != asked:
        return None
    waits = chat.regenerate()
    there = read_state(waits.envelope.prompt).given
    brings = len(problem.attach) + int(problem.kind is not ChatKind.REGULAR)
    if problem.kind in there and len(waits.envelope.prompt.attached) >= brings:
        return waits
    chat.delete(told[-1].message.id)
    return None


async def _send(chat: Chat, text: str | TurnView, problem: Problem, *, tell: Listener | None) -> TurnView:
    kinds = [kind for kind in ATTACHED if kind is problem.kind or _carries(problem, kind)]
    parts = {PART: BLOCKS[ChatKind.REGULAR].text}
    regular = problem.kind is ChatKind.REGULAR or _carries(problem, ChatKind.REGULAR)
    system = {**({"base": problem.talk.system} if problem.talk.system else {}), **(parts if regular else {})}
    events = chat.send(
        text,
        attach=[*(make_instruction(kind) for kind in kinds), *problem.attach],
        system=system or None,
        model=problem.model,
        runner=USUAL_RUNNER,
        max_tokens=problem.max_tokens,
        verbatim=True,
    )
    done: TurnView | None = None
    async with aclosing(events):
        async for event in events:
            done = event.turn if event.kind is EventName.DONE else done
            if tell is not None:
                tell(event)
    assert done is not None, "a turn that is sent ends, or raises"
    return done


def _carries(problem: Problem, kind: ChatKind) -> bool:
    """Whether a block is in the prompt because it was before: what is kept knows that by itself."""
    return problem.conversation is None and kind in problem.state.given


def _tell(chat: Chat, turn: TurnView, problem: Problem, *, before: Sequence[PlainTurn], asked: str) -> Solution:
    node = chat.turns()[-1].reply
    reply = "" if node is None else even_lines(node.text)
    prompt = turn.envelope.prompt
    used = add_used(turn.ledger.calls)
    return Solution(
        reply=reply,
        history=list_history(problem.talk.system, [*before, PlainTurn(asked, reply)]),
        state=find_state(chat),
        # A provider that does not say is counted for.
        tokens_used=prompt.total + prompt.measure.count(reply) if used is None else used,
        model=turn.envelope.model or "",
        conversation=None if problem.conversation is None else chat.id,
        warnings=(*problem.talk.warnings, *turn.envelope.warnings),
    )
