"""The evidence benchmark plants its sentences at the stated positions, in real and in generated texts."""

from bench.evidence import make_talk, plant, search_plainly
from bench.layouts.texts import load_texts, make_texts
from bench.planted import make_evidence

SIZE = 120_000


def test_planted_texts_have_realistic_share_of_user_text() -> None:
    for texts in (load_texts(), make_texts()):
        talk = make_talk(texts, 1, SIZE)
        typed, answered = (sum(len(pair[side]) for pair in talk) for side in (0, 1))
        assert 0.06 < typed / (typed + answered) < 0.1
        assert typed + answered >= SIZE
        assert talk == make_talk(texts, 1, SIZE)
        assert talk != make_talk(texts, 2, SIZE)


def test_sentences_are_planted_on_their_side_in_group_order() -> None:
    evidence = make_evidence(3, 60)
    talk = plant(make_talk(make_texts(), 3, SIZE), evidence, 3)
    at = {}
    for one in evidence:
        (at[one],) = [turn for turn, pair in enumerate(talk) if one.sentence in pair[one.replied]]
    for one in evidence:
        later = [other for other in evidence if other.group == one.group]
        assert [at[other] for other in later] == sorted({at[other] for other in later})
    assert {one.kind for one in evidence} == {"statement", "update", "preference", "instruction", "order", "answer"}


def test_plain_search_finds_shared_words_within_its_size() -> None:
    evidence = [one for one in make_evidence(4, 60) if one.kind == "statement"]
    texts = [text for pair in plant(make_talk(make_texts(), 4, SIZE), evidence, 4) for text in pair]
    assert all(search_plainly(texts, evidence, room=SIZE))
    assert not any(search_plainly(texts, evidence, room=10))
