"""Tool rounds for models whose template has none: rendered as text, the same each time."""

from tests.unit.providers.local.asking import SMALL, TERSE, ask, assistant, request, run, user

from lamella.core.messages import ProviderReply, Role, ToolCall, ToolOutput, ToolRound, round_messages
from lamella.providers.local import LocalProvider, render_rounds_as_text

ROUND = ToolRound(
    text="Let me look.",
    calls=(ToolCall(id="a", name="search", arguments='{"q":"tides"}'), ToolCall(id="b", name="read", arguments="{}")),
    outputs=(ToolOutput(call="a", output="Noon."), ToolOutput(call="b", output="No such note.", failed=True)),
    provider_reply=ProviderReply(format="openai_chat", json='{"role":"assistant","content":null}'),
)
TALK = (TERSE, user("When?"), *round_messages(ROUND), assistant("At noon."), user("And low tide?"))


def test_tool_rounds_are_rendered_as_text_in_their_turn() -> None:
    told = render_rounds_as_text(TALK)
    assert [message.role for message in told[1:]] == [Role.USER, Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.USER]
    assert told[2].text == 'Let me look.\n\n[Call of search]: {"q":"tides"}\n\n[Call of read]: {}'
    assert told[3].text == "[Result of search]:\nNoon.\n\n[Failure of read]:\nNo such note."
    assert not any(message.calls or message.call_id or message.provider_reply for message in told)


def test_messages_without_tools_are_returned_unchanged() -> None:
    talk = (TERSE, user("When?"), assistant("At noon."))
    assert all(one is other for one, other in zip(talk, render_rounds_as_text(talk), strict=True))


def test_call_without_text_is_rendered_alone() -> None:
    said, *_ = render_rounds_as_text(
        round_messages(ToolRound(text=" ", calls=ROUND.calls[1:], outputs=ROUND.outputs[1:]))
    )
    assert said.text == "[Call of read]: {}"


def test_embedded_model_answers_after_round_and_caches_it() -> None:
    async def talk() -> tuple[int, int]:
        provider = LocalProvider(options=SMALL)
        try:
            first = await ask(provider, request(TERSE, user("When?"), *round_messages(ROUND)))
            second = await ask(provider, request(*TALK))
        finally:
            await provider.close()
        assert (first.forecast, second.forecast) == (first.reported, second.reported)
        return first.reported.prompt_tokens, second.reported.cached_tokens

    prompt, cached = run(talk())
    # The answer that the second request tells is another than the model gave; all before it is served.
    assert cached >= prompt
