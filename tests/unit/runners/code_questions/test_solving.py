"""One question with its history comes in; the answer, the whole history and the state of the prompt go out."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from lamella import Engine
from lamella import open as open_engine
from lamella.errors import AuthenticationError, InvalidOperationError
from lamella.providers import Usage
from lamella.runners.code_questions import (
    TASK_INSTRUCTIONS,
    CodeAnswer,
    CodeQuestion,
    CodeTask,
    ParsedHistory,
    PlainTurn,
    answer_code_question,
    drop_repeated_question,
    parse_messages,
    render_question,
)
from lamella.testing import ScriptedProvider, ScriptedReply

A, B, C = PlainTurn("a", "b"), PlainTurn("c", "d"), PlainTurn("e", "f")


def opened(provider: ScriptedProvider, url: str = "memory:") -> Engine:
    return open_engine(url, model="scripted:m", provider=provider)


def solve(engine: Engine, *problems: CodeQuestion) -> CodeAnswer:
    async def run() -> CodeAnswer:
        async with engine:
            for problem in problems:
                found = await answer_code_question(engine, problem)
        return found

    return asyncio.run(run())


def history_of(solution: CodeAnswer) -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in solution.history]


def sent(provider: ScriptedProvider, at: int = -1) -> list[str]:
    return [message.text for message in provider.requests[at].messages]


def test_reply_is_last_in_full_history() -> None:
    provider = ScriptedProvider(ScriptedReply(text="so", usage=Usage(plain=40, read=2, output=5)))
    found = solve(opened(provider), CodeQuestion(prompt="why", history=ParsedHistory("Be terse.", (A,))))
    assert found.reply == "so"
    assert history_of(found) == [
        ("system", "Be terse."), ("user", "a"), ("assistant", "b"), ("user", "why"), ("assistant", "so"),
    ]  # fmt: skip
    assert (found.tokens_used, found.model, found.conversation) == (47, "scripted:m", None)
    assert sent(provider)[1:] == ["a", "b", "why"]
    assert sent(provider)[0].startswith("Be terse.\n\n")


def test_unreported_usage_is_counted() -> None:
    found = solve(opened(ScriptedProvider("so")), CodeQuestion(prompt="why"))
    assert found.tokens_used > 10


def test_returned_state_and_history_grow_when_sent_again() -> None:
    provider = ScriptedProvider("one", "two", "three")
    engine = opened(provider)

    async def run() -> list[CodeAnswer]:
        found: list[CodeAnswer] = []
        async with engine:
            for kind in (CodeTask.REGULAR, CodeTask.FIX, CodeTask.CODEBASE):
                before = found[-1] if found else None
                messages = [one.to_dict() for one in before.history] if before else []
                problem = CodeQuestion(
                    prompt=f"{kind}?",
                    task=kind,
                    history=parse_messages(messages),
                    task_state=before.state if before else CodeQuestion().task_state,
                )
                found.append(await answer_code_question(engine, problem))
        return found

    found = asyncio.run(run())
    assert [one.state.task_names for one in found] == [
        ("regular",), ("regular", "fix"), ("regular", "codebase", "fix"),
    ]  # fmt: skip
    assert [len(one.history) for one in found] == [2, 4, 6]
    assert all(TASK_INSTRUCTIONS[kind].text in "".join(sent(provider)) for kind in (CodeTask.FIX, CodeTask.CODEBASE))


def test_question_in_messages_is_asked_once() -> None:
    asked = CodeQuestion(prompt="why", code="x = 1")
    worded = render_question(asked)
    for repeated in ("why", worded, f" {worded}\n"):
        assert drop_repeated_question([A, PlainTurn(repeated)], question=worded, prompt="why") == (A,)
    assert drop_repeated_question([A, PlainTurn("other")], question=worded, prompt="why") == (A, PlainTurn("other"))
    assert drop_repeated_question([A, PlainTurn("why\nso")], question=worded, prompt="why\r\nso") == (A,)
    assert drop_repeated_question([PlainTurn("why", "so")], question=worded, prompt="why") == (PlainTurn("why", "so"),)


def test_question_has_task_words_and_code() -> None:
    assert render_question(CodeQuestion(task=CodeTask.TESTS, code="x = 1")) == (
        "Write tests for this code.\n\n```\nx = 1\n```"
    )
    assert render_question(CodeQuestion(task=CodeTask.TESTS, prompt="with pytest", use_template=False)) == "with pytest"
    with pytest.raises(InvalidOperationError, match="There is no prompt"):
        render_question(CodeQuestion(task=CodeTask.TESTS, use_template=False, code="x"))
    with pytest.raises(InvalidOperationError, match="There is no prompt"):
        render_question(CodeQuestion(prompt=" \n"))


def test_braces_in_code_and_messages_name_no_notes(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("Nobody asked for this.")
    provider = ScriptedProvider("so")
    engine = open_engine("memory:", vault=tmp_path, model="scripted:m", provider=provider)
    talk = ParsedHistory("Draw {[[secret]]} in.", (PlainTurn("{[[secret]]}", "no"),))
    solve(engine, CodeQuestion(prompt="f'{[[secret]]}' {}", code="{[[secret]]}", history=talk))
    assert "Nobody asked" not in "".join(sent(provider))


def kept(*, prompt: str = "e", turns: Sequence[PlainTurn] = (), kind: CodeTask = CodeTask.REGULAR) -> CodeQuestion:
    return CodeQuestion(prompt=prompt, history=ParsedHistory(turns=tuple(turns)), conversation="garden", task=kind)


def test_stored_conversation_needs_no_messages_and_keeps_state(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    solve(opened(ScriptedProvider("b"), url), kept(prompt="a", kind=CodeTask.FIX))
    provider = ScriptedProvider("d")
    found = solve(opened(provider, url), kept(prompt="c"))
    assert [one.content for one in found.history] == ["Fix this terminal error.\n\na", "b", "c", "d"]
    assert found.state.task_names == ("regular", "fix")
    assert found.conversation is not None


def test_conversation_continues_where_client_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    solve(opened(ScriptedProvider("f"), url), kept(turns=[A, B]))
    same = solve(opened(ScriptedProvider("h"), url), kept(prompt="g", turns=[A, B, C]))
    assert [one.content for one in same.history] == list("abcdefgh")
    back = solve(opened(ScriptedProvider("j"), url), kept(prompt="i", turns=[A]))
    assert [one.content for one in back.history] == list("abij")
    with open_engine(url) as engine:
        conversation = engine.chat("garden")
        assert [one.message.text for one in conversation.turns()] == ["a", "i"]
        assert len(conversation.branches()) == 2, "what the client left out is still there"


def test_messages_of_other_conversation_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    solve(opened(ScriptedProvider("b"), url), kept(prompt="a"))
    with pytest.raises(InvalidOperationError, match="do not begin as the conversation 'garden' does") as caught:
        solve(opened(ScriptedProvider("d"), url), kept(turns=[C]))
    assert caught.value.hint
    with open_engine(url) as engine:
        assert [one.message.text for one in engine.chat("garden").turns()] == ["a"]


def test_unanswered_question_is_not_duplicated(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    solve(opened(ScriptedProvider("b"), url), kept(prompt="a"))
    broken = AuthenticationError("The key is refused.", hint="Check it.")
    with pytest.raises(AuthenticationError):
        solve(opened(ScriptedProvider(ScriptedReply(error=broken)), url), kept(prompt="c", turns=[A]))
    for turns in ([], [A], [A, PlainTurn("c")]):
        provider = ScriptedProvider("d")
        found = solve(opened(provider, url), kept(prompt="c", turns=turns))
        assert [one.content for one in found.history] == list("abcd")
        assert sent(provider)[-3:] == ["a", "b", "c"]
        with open_engine(url) as engine:
            conversation = engine.chat("garden")
            assert [one.message.text for one in conversation.turns()] == ["a", "c"]
            # As if the answer had not come.
            answer = conversation.turns()[-1].reply
            assert answer is not None
            conversation.fork(conversation.turns()[-1].message.id)


def test_question_repeated_as_other_task_abandons_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    solve(opened(ScriptedProvider("b"), url), kept(prompt="a"))
    broken = AuthenticationError("The key is refused.", hint="Check it.")
    with pytest.raises(AuthenticationError):
        solve(opened(ScriptedProvider(ScriptedReply(error=broken)), url), kept(prompt="c"))
    provider = ScriptedProvider("d")
    found = solve(opened(provider, url), kept(prompt="c", kind=CodeTask.CODEBASE))
    assert [one.content for one in found.history] == list("abcd")
    assert found.state.has_codebase
    assert TASK_INSTRUCTIONS[CodeTask.CODEBASE].text in sent(provider)[-1]


def test_line_ends_do_not_distinguish_histories(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    first = solve(opened(ScriptedProvider("b\r\nb"), url), kept(prompt="a\r\na"))
    assert [one.content for one in first.history] == ["a\na", "b\nb"]
    for said in (["a\na", "b\nb"], ["a\r\na", "b\r\nb"]):
        messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), said, strict=True)]
        problem = CodeQuestion(prompt="c", history=parse_messages(messages), conversation="garden")
        found = solve(opened(ScriptedProvider("d"), url), problem)
        assert [one.content for one in found.history][:2] == ["a\na", "b\nb"]


def test_first_question_can_be_repeated_as_other_task(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    broken = AuthenticationError("The key is refused.", hint="Check it.")
    with pytest.raises(AuthenticationError):
        solve(opened(ScriptedProvider(ScriptedReply(error=broken)), url), kept(prompt="a"))
    found = solve(opened(ScriptedProvider("b"), url), kept(prompt="a", kind=CodeTask.CODEBASE))
    # What was told of ordinary talk is in L1 since then, and the flag says so.
    assert ([one.content for one in found.history], found.state.task_names) == (["a", "b"], ("regular", "codebase"))
