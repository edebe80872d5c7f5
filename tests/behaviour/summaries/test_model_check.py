"""With summary_check = "model" only statements that a model confirms are used."""

from collections.abc import Callable, Sequence

from tests.faithful_summaries import faithful_summary

from lamella import Conversation, Message
from lamella.core.log.receipts import CompactionReceipt

_CHECK = "Answer with one word: yes or no."


class ScriptedSummarizer:
    """Writes quotations as statements, and answers each check as told."""

    def __init__(self, confirm: Callable[[str], str]) -> None:
        self._confirm = confirm
        self.checks: list[str] = []
        self.summaries = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        text = messages[-1].text
        if not text.endswith(_CHECK):
            self.summaries += 1
            return faithful_summary(messages, statements=3)
        self.checks.append(text)
        return self._confirm(text)


def talk(summarizer: ScriptedSummarizer, **settings: object) -> Conversation:
    chat = Conversation(window=60_000, reserve=0, layout="in_place", summarizer=summarizer, **settings)  # type: ignore[arg-type]
    for number in range(30):
        chat.ask(f"Which harbour has pier {number}?")
        chat.reply(f"Pier {number} is in the northern harbour beside the fish market and behind the lighthouse " * 12)
    return chat


def skipped(receipt: CompactionReceipt | None) -> list[str]:
    return [] if receipt is None else [one.why for one in receipt.skipped if one.name == "summary"]


def prompt_of(chat: Conversation) -> str:
    return "\n".join(message.text for message in chat.preview("And now?").messages)


def test_only_confirmed_statements_are_used() -> None:
    summarizer = ScriptedSummarizer(
        lambda text: "No." if 'wrote: "Which harbour has pier 1?"' in text else "Yes, they do."
    )
    chat = talk(summarizer, summary_check="model")
    chat.compact(0.02)
    sent = prompt_of(chat)
    block = sent.partition("<conversation_summary>")[2].partition("</conversation_summary>")[0]
    assert '- [1] The user wrote: "Which harbour has pier 0?"' in block
    assert "[3] The user wrote" not in block
    assert "without 1 statements that failed the checks" in block
    assert "Rules and a model checked each line" in block
    assert len(summarizer.checks) == 3 * summarizer.summaries


def test_a_check_shows_the_statement_with_its_messages() -> None:
    summarizer = ScriptedSummarizer(lambda _text: "yes")
    talk(summarizer, summary_check="model").compact(0.02)
    assert summarizer.checks[0].startswith("[1] User: Which harbour has pier 0?\n\nThe lines above are material")
    assert 'The user wrote: "Which harbour has pier 0?"' in summarizer.checks[0]


def test_without_a_confirmed_statement_the_step_is_skipped_and_tried_again_later() -> None:
    answers = iter(["no"] * 3 + ["yes"] * 100)
    summarizer = ScriptedSummarizer(lambda _text: next(answers))
    chat = talk(summarizer, summary_check="model")
    assert skipped(chat.compact(0.02)) == ["A model confirmed none of its statements."]
    chat.undo()
    assert skipped(chat.compact(0.02)) == []
    assert "<conversation_summary>" in prompt_of(chat)


def test_a_check_that_fails_confirms_nothing() -> None:
    def fail(_text: str) -> str:
        raise RuntimeError("no connection")

    receipt = talk(ScriptedSummarizer(fail), summary_check="model").compact(0.02)
    assert skipped(receipt) == ["No statement was confirmed: the summariser failed with RuntimeError."]
    assert receipt is not None
    assert "summary" not in [step.name for step in receipt.steps]


def test_by_default_no_model_checks() -> None:
    summarizer = ScriptedSummarizer(lambda _text: "no")
    chat = talk(summarizer)
    chat.compact(0.02)
    assert summarizer.checks == []
    assert "Only names, numbers, dates and quotations were checked" in prompt_of(chat)
