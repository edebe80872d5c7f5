"""User rules are detected by their cues, and not in quoted text."""

import pytest

from lamella.core.text.rule_detection import RULE_CUES, detect_rules


@pytest.mark.parametrize(
    "wish",
    [
        "Always include version numbers in your answers.",
        "From now on answer in Indonesian.",
        "Never send the price list to Dimas!",
        "I\u2019d rather have tables than lists",
        "Please remember that I am allergic to nuts.",
        "Whenever I paste a log, look for timeouts first.",
        "Mulai sekarang jawab dalam bahasa Inggris.",
        "Jangan pernah hapus catatan lama.",
        "Saya lebih suka jawaban yang pendek.",
        "Setiap kali saya kirim bab, periksa sitasinya.",
        "Going forward, keep replies under a page.",
        "When I ask about libraries, give their versions.",
        "In your answers use metric units.",
        "I strongly prefer PostgreSQL over MySQL.",
        "I'm allergic to peanuts.",
        "Don't forget that my deadline is in May.",
        "Starting today, respond in French.",
        "Use British spelling until I tell you otherwise.",
        "Always cite the page, okay?",
        "Kalau saya tanya soal biaya, beri tabel.",
        "Saya tidak suka jawaban bertele-tele.",
        "Selalu sertakan sumber, ya?",
    ],
)
def test_sentence_with_cue_is_rule_word_for_word(wish: str) -> None:
    assert detect_rules(wish) == (wish,)
    assert detect_rules(f"Thanks for that. {wish}\nAnd what is the time?") == (wish,)


@pytest.mark.parametrize(
    "text",
    [
        "What is the time?",
        "Do you always answer like this?",
        "```\nalways run this\n```",
        "> Never trust a quotation.",
        'The sign says "never enter".',
        "The config has `always` in it.",
        "He runs alwaysOn mode.",
        "Never mind.",
        "I have never been to Paris.",
        "We've always had three desks, as always.",
        "Could you answer in French?",
        "Should I always use a table, or not?",
        "He wrote \u201cfrom now on, answer in French\u201d on the wall.",
        "Dia menulis \u00abmulai sekarang diam\u00bb di papan.",
        "It's always a good idea to test. There is always room for improvement.",
        "He always forgets. The server never responds. It no longer works.",
        "I never said that. I always get an error when I run it. You never know.",
        "Dia selalu terlambat. Saya selalu lupa. Setiap hari saya ke kantor. Jangan-jangan dia lupa.",
        "I don't use a telephone. I like it, but it is long. I love that!",
        "The list has at most 5 items. The test fails every time I run it. It never worked for me.",
        "I'll make sure to have it ready next time.",
        "I want you to write a poem about rain. I'd like you to elaborate on the second point.",
        "It is important to remember that there is still much to do.",
        "",
    ],
)
def test_questions_code_and_quotations_are_not_rules(text: str) -> None:
    assert detect_rules(text) == ()


def test_rules_are_unique_in_order_and_custom_cues_count() -> None:
    text = "- Always cite.\n- Fine.\n- Never guess.\n- Always cite."
    assert detect_rules(text) == ("Always cite.", "Never guess.")
    assert detect_rules("Immer zitieren.") == ()
    assert detect_rules("Immer zitieren.", cues=RULE_CUES | {"immer"}) == ("Immer zitieren.",)


def test_clause_with_cue_of_long_sentence_is_rule() -> None:
    before, after = "the plan goes on and on, " * 12, "and so on it goes, " * 30
    text = f"Well, {before}always cite the page of a quotation, {after}until the end."
    (wish,) = detect_rules(text)
    assert wish.startswith("always cite the page of a quotation, and so on")
    assert wish in text
    assert len(wish) <= 400
    assert detect_rules("always" + "x" * 10 + " y" * 300) == ()
    assert detect_rules("never " + "y" * 500) == ()


@pytest.mark.parametrize(
    "text",
    [
        "I like it when you answer in one line.",
        "I want you to act as an advertiser.",
        "I'd like you to write in British English.",
        "Could you always answer in French?",
        "Bisakah kamu selalu menjawab singkat?",
        "Remember: my name is Ana.",
        "Dont use emojis ever",
        "Mulai skrg jawab singkat aja",
        "For all future answers, use bullet points.",
        "I no longer want tables.",
        "We never deploy on Friday.",
        'Use "never" sparingly and never shout.',
    ],
)
def test_borderline_rules_are_detected(text: str) -> None:
    assert detect_rules(text) == (text,)


def test_cues_are_lowercase_single_spaced() -> None:
    assert [cue for cue in RULE_CUES if cue != " ".join(cue.lower().split())] == []


@pytest.mark.parametrize("cue", sorted(RULE_CUES))
def test_every_cue_detects_a_rule(cue: str) -> None:
    wish = f"{cue.capitalize()} tables, in all chapters."
    assert detect_rules(wish) == (wish,)
