"""Recall: exact text is found again, in any script, whole or in part, and returned verbatim."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.search.index import Passage, PassageIndex
from lamella.core.search.search import SearchHit, search, search_for_question
from lamella.core.text.exact_terms import extract_exact_strings


def passage(name: str, text: str, *, title: str = "", role: str = "user") -> Passage:
    return Passage(id=name, place="turn 1", role=role, title=title, text=text)


def find(query: str, *texts: str, limit: int = 5) -> list[int]:
    """The numbers of the texts that are found, best first."""
    passages = [passage(str(number), text) for number, text in enumerate(texts)]
    return [int(found.passage.id) for found in search(PassageIndex(passages), query, limit=limit)]


def test_frequent_term_in_short_text_ranks_first() -> None:
    long = "a budget, " + "and many other words " * 40
    assert find("budget", "nothing of it", long, "budget and budget", "the budget") == [2, 3, 1]


def test_rare_word_weighs_more() -> None:
    assert find("the tokenizer", "the the the the", "a tokenizer", "the end", "the rest")[0] == 1


def test_local_match_in_long_text_is_found() -> None:
    filler = "plain words of no interest " * 300
    long = f"{filler}\nThe emerald anchor can take 32,273 visitors.\n{filler}"
    others = [
        f"The emerald {place} can take {n},000 visitors." for n, place in enumerate(("bridge", "castle", "desert"))
    ]
    assert find("how many visitors the emerald anchor can take", *others, "the azure anchor", long)[0] == 4


def words(number: int) -> str:
    return " ".join(["word"] * number)


def test_words_near_each_other_rank_higher() -> None:
    apart = f"alpha {words(120)} beta {words(60)}"
    for before in (0, 49, 50, 99):
        together = f"{words(before)} alpha word beta {words(180 - before)}"
        assert find("alpha beta", apart, together) == [1, 0]


def test_proximity_reaches_a_hundred_words() -> None:
    apart = f"alpha {words(120)} beta {words(59)}"
    for between in (59, 98):
        together = f"alpha {words(between)} beta {words(179 - between)}"
        assert find("alpha beta", apart, together) == [1, 0]
    assert find("alpha beta", apart, f"alpha {words(99)} beta {words(80)}") == [0, 1]


def test_long_texts_with_one_match_rank_equally() -> None:
    assert find("needle", f"needle {words(5_000)}", f"needle {words(150)}") == [0, 1]
    assert find("needle", f"needle {words(80)}", f"needle {words(20)}") == [1, 0]


def test_one_rare_word_does_not_outweigh_rest_of_query() -> None:
    answer = "We ship the coral anchor by hand. " + "And so on, with words of no interest. " * 12
    talk = [*["Mind that."] * 3, answer, *["A coral bridge."] * 6, *["Another line about nothing at all."] * 30]
    assert find("command that ships the coral anchor", *talk)[0] == 3


def test_title_counts_for_each_part_of_text() -> None:
    long = "words of no interest " * 300 + "the timeout is nine seconds"
    passages = [passage("a", "a timeout of one second"), passage("b", long, title="gateway.toml")]
    assert [found.passage.id for found in search(PassageIndex(passages), "gateway.toml timeout")] == ["b", "a"]


def test_equal_scores_keep_given_order() -> None:
    assert find("note", "one note", "two pages", "a note", "no note") == [0, 2, 3]


def test_no_more_than_the_limit_is_found() -> None:
    assert find("note", *["a note"] * 9) == [0, 1, 2, 3, 4]
    assert find("note", *["a note"] * 9, limit=2) == [0, 1]
    assert find("note", "a note", limit=0) == []


@pytest.mark.parametrize("query", ["", "  ", '""', '" "', "nowhere", "?!"])
def test_empty_or_absent_query_finds_nothing(query: str) -> None:
    assert find(query, "a note", "another note") == []


def test_excluded_passages_are_not_found() -> None:
    passages = [passage("a", "the budget"), passage("b", "a budget"), passage("c", "budget")]
    shown = search(PassageIndex(passages), "budget", excluded={"c", "a"})
    assert [found.passage.id for found in shown] == ["b"]


def test_score_follows_formula() -> None:
    texts = {"a": "budget and budget", "b": "the budget", "c": "nothing at all here"}
    passages = [passage(name, text, role="reply") for name, text in texts.items()]
    index = PassageIndex(passages)
    # Two of three have the one word and none the other; on average they have three words.
    rare, rarer = math.log(1 + 1.5 / 2.5), math.log(1 + 3.5 / 0.5)

    def worth(number: int, length: int) -> float:
        return rare * number * 2.2 / (number + 1.2 * (0.5 + 0.5 * length / 3))

    part = rare / (rare + rarer)
    scores = {found.passage.id: found.score for found in search(index, "budget plan")}
    assert scores == pytest.approx({"a": worth(2, 3) * part, "b": worth(1, 2) * part}, abs=1e-6)
    whole = {found.passage.id: found.score for found in search(index, "budget")}
    bonus = 1 + 1.2 * 2.2 * rare
    assert whole == pytest.approx({"a": worth(2, 3) + bonus, "b": worth(1, 2) + bonus}, abs=1e-6)


def test_message_id_beside_quoted_phrase_is_a_word() -> None:
    passages = [passage("m1", "the budget", role="reply"), passage("m2", "nothing at all", role="reply")]
    (found,) = search(PassageIndex(passages), 'm1 "budget"')
    # One of two has each of both words, each once; on average they have two and a half.
    rare = math.log(2)
    worth = 2 * rare * 2.2 / (1 + 1.2 * (0.5 + 0.5 * 2 / 2.5))
    assert found.passage.id == "m1"
    assert found.score == pytest.approx(worth + 1 + 1.2 * 2.2 * 2 * rare, abs=1e-6)


def test_empty_index_finds_nothing() -> None:
    assert search(PassageIndex([]), "budget") == ()
    assert search(PassageIndex([passage("a", "the budget")]), "budget", excluded={"a"}) == ()
    assert [found.passage.id for found in search(PassageIndex([passage("a", "?!")]), "?!")] == ["a"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("src/app.py", "Look at src/app.py."),
        ("app.py", "Look at src/app.py."),
        ("app", "Look at src/app.py."),
        ("1,234.56", "It costs 1,234.56 in all."),
        ("1,234", "It costs 1,234.56 in all."),
        ("234", "It costs 1,234.56 in all."),
        ("--flag", "Pass --flag to it."),
        ("flag", "Pass --flag to it."),
        ("10 MB", "It has 10MB."),
        ("max_tokens", "Set max_tokens now."),
        ("tokens", "Set max_tokens now."),
        ("STRASSE", "In der Straße."),
        ("\uff53\uff52\uff43", "Look at src/app.py."),
        ("file", "The ﬁle is here."),
        ("café", "In the cafe\u0301."),
        ("中文", "这是中文的文字"),
        ("東京", "昨日東京で会った"),
        ("ประเทศ", "นี่คือประเทศไทย"),
        ("привет", "Привет, мир!"),
        ("سلام", "قال سلام لهم"),
        ("한국", "여기는 한국 입니다"),
        ("📦", "The box 📦 is here."),
    ],
)  # fmt: skip
def test_words_of_any_script_and_parts_of_paths_and_numbers_are_found(query: str, text: str) -> None:
    assert find(query, "something else", text) == [1]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("turbine vibrates", "The turbines vibrate."),
        ("decide", "It was decided in May."),
        ("deciding the route", "We decided on routes."),
        ("kirim laporan", "Tolong mengirimkan pelaporan itu."),
        ("bekerja", "Pekerjaan itu selesai."),
        ("makanan", "Ikan itu dimakan kucing."),
        ("Kase", "Ein Stück Käse."),
        ("Käse", "Ein Stueck Kase."),
        ("smorrebrod", "Smørrebrød for lunch"),
        ("lodz", "In Łódź."),
        ("Αθηνα", "στην Αθήνα"),
        ("ΟΔΟΣ", "η οδός"),
        ("شكرا", "شُكْرًا لك"),
        ("12500", "It costs 12,500 in all."),
        ("12,500", "It costs 12500 in all."),
        ("12.500", "It costs 12,500 in all."),
        ("12,500", "Es kostet 12.500 Euro."),
        ("12500", "Il coûte 12 500 euros."),
        ("12500", "Es kostet 12'500 Franken."),
        ("1234567", "It is 12,34,567 rupees."),
        ("1234.56", "Es kostet 1.234,56 Euro."),
        ("1,234.56", "Es kostet 1.234,56 Euro."),
        ("3.5", "Es sind 3,5 Meter."),
        ("1_000_000", "LIMIT = 1000000"),
        ("37", "رقم ٣٧ هنا"),
        ("user name", "Call getUserName() first."),
        ("getUserName", "Call get_user_name first."),
        ("username", "Set user_name now."),
        ("user_name", "Set userName now."),
        ("http server", "class HTTPServer:"),
        ("e-mail", "Send an email."),
        ("istanbul", "İstanbul is far."),
        ("İSTANBUL", "istanbul is far."),
        ("ISPARTA", "\u0131sparta is near."),
        ("DİYARBAKIR", "Diyarbak\u0131r is east."),
        ("hyphenation", "A soft hy\u00adphen\u00adation."),
        ("zero width", "A zero\u200b wi\u200ddth."),
        ("wi\u00addth", "A zero width."),
        ("\ufeffmark", "A mark."),
    ],
)  # fmt: skip
def test_other_forms_accents_notations_and_cases_of_a_word_are_found(query: str, text: str) -> None:
    assert find(query, "something else", text, "quite another") == [1]


def test_exact_form_ranks_before_other_forms() -> None:
    assert find("decided today", "we decide, not today", "we decided, not today")[0] == 1


def test_user_text_ranks_before_reply_and_note() -> None:
    passages = [passage(role, "the budget is nine", role=role) for role in ("note", "reply", "user", "tool")]
    for query in ("budget", "what is the budget", '"budget is"', "budgets"):
        assert [found.passage.id for found in search(PassageIndex(passages), query)] == [
            "user",
            "note",
            "reply",
            "tool",
        ]


def test_common_words_only_rerank_hits_of_rare_ones() -> None:
    talk = [f"the plan of the day {number}" for number in range(2_500)]
    talk[1_700] = "the needle of the plan"
    talk[1_900] = "needle"
    assert find("the needle of the plan", *talk) == [1_700, 1_900]
    assert len(find("the plan", *talk, limit=5_000)) == 2_499
    # Words that all have are looked for all the same.
    assert find("the day 31 of", *talk)[0] == 31


def test_thousand_passages_with_rare_words_are_scored() -> None:
    talk = [word for word, having in (("alpha", 300), ("beta", 400), ("gamma", 500)) for _ in range(having)]
    assert sorted(find("alpha beta gamma", *talk, limit=5_000)) == [*range(700)]
    assert sorted(find("alpha gamma", *talk, limit=5_000)) == [*range(300), *range(700, 1_200)]


def test_absent_words_do_not_use_up_query_limit() -> None:
    unknown = [f"nowhere{number}" for number in range(70)]
    assert find(" ".join([*unknown, "needle", "thread", "eye"]), "nothing", "a needle, a thread, an eye") == [1]


def test_quoted_phrase_ignores_accents_case_and_space() -> None:
    assert find('"caf"', "in the cafe\u0301", "in the kitchen") == [0]
    assert find('"the cafe"', "in the cafe\u0301", "in the kitchen") == [0]
    assert find('"CAFÉ at"', "in the cafe\u0301\n at noon") == [0]
    assert find('"Kase"', "Käse") == []
    assert find('"soft hy"', "a soft\u00ad hy\u00adphen") == [0]
    assert find('"東京で"', "昨日東京で会った", "東京から") == [0]
    assert find('"?!"', "what?!", "what") == [0]
    assert find('"\u200b"', "a\u200bb", "ab") == [0]


def test_whole_path_ranks_before_its_parts() -> None:
    parts = "src and app and py, src app py, src app py"
    assert find("src/app.py", parts, "in src/app.py", "other") == [1, 0]


def test_word_within_word_is_not_found() -> None:
    assert find("art", "start the party", "state of the art") == [1]


def test_adjacent_characters_rank_before_separate_ones() -> None:
    assert find("中文", "文和中", "中文")[0] == 1


def test_quoted_query_demands_the_span() -> None:
    texts = ["never delete my notes", "delete my old notes, never", "my notes: never delete them", "nothing"]
    assert find('"delete my notes"', *texts) == [0]
    assert find("“delete my notes”", *texts) == [0]
    assert sorted(find('"my notes" never', *texts)) == [0, 2]
    assert find('"Delete  MY notes"', *texts) == [0]
    assert find('"lete my no"', *texts) == [0]


def test_titles_are_searched_as_well() -> None:
    passages = [passage("a", "text", title="Plan"), passage("b", "text", title="project-spec.md")]
    assert [found.passage.id for found in search(PassageIndex(passages), "project-spec.md")] == ["b"]


def test_hit_has_its_passage_and_short_excerpt() -> None:
    given_passage = passage("a", "  A\tNote\r\n with  ODD space ")
    (found,) = search(PassageIndex([given_passage]), "note")
    assert found.passage is given_passage
    assert found.excerpt == given_passage.text


def test_excerpt_of_long_text_shows_match() -> None:
    text = "before " * 400 + "here is the Needle, " + "after " * 400
    (found,) = search(PassageIndex([passage("a", text)]), "needle")
    assert "here is the Needle," in found.excerpt
    assert found.excerpt.startswith("… before")
    assert found.excerpt.endswith(" …")
    assert len(found.excerpt) <= 245


def test_excerpt_shows_place_with_most_matches() -> None:
    text = "alpha " + "filler " * 200 + "beta with alpha and gamma " + "filler " * 200 + "gamma"
    (found,) = search(PassageIndex([passage("a", text)]), "alpha beta gamma")
    assert "beta with alpha and gamma" in found.excerpt


def test_text_found_by_title_shows_beginning() -> None:
    (found,) = search(PassageIndex([passage("a", "word " * 200, title="Plan")]), "plan")
    assert found.excerpt.startswith("word word")


PIECES = [
    "src/app.py", "`", "``", "```sh\n", "$ ", "\n", " ", "12", ".", ",", "5 MB", "May 3", "https://x.org/", "(", ")",
    "[[", "]]", "|", "@", "a", "é", "中", "-", "--", "/", "\\", ":", "#", "3f2a9c1", "ABC-1", "%", "€", "$5", "v1", "<",
    ">", "~", "年", "_", "\u0301", '"', "“", "”", "ﬁ", "İ", "ß", "①", "\uff57", "~/n.md", "\u2028", "\xa0",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


@steady
@given(texts, st.lists(texts, max_size=3))
def test_every_exact_token_finds_its_text(text: str, others: list[str]) -> None:
    for token in extract_exact_strings(text):
        assert len(others) in find(token, *others, text)


@steady
@given(st.lists(texts, max_size=5), texts)
def test_search_is_the_same_each_time_and_ordered_by_score(bodies: list[str], query: str) -> None:
    passages = [passage(str(number), text) for number, text in enumerate(bodies)]
    found: tuple[SearchHit, ...] = search(PassageIndex(passages), query)
    assert found == search(PassageIndex(passages), query)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(one.score > 0 and one.passage in passages for one in found)


@steady
@given(st.text(alphabet="ab \n", min_size=250, max_size=900), st.sampled_from(["a", "b", "ab", "a b"]))
def test_excerpt_is_a_stretch_of_the_text(text: str, query: str) -> None:
    for found in search(PassageIndex([passage("a", text)]), query):
        assert found.excerpt.removeprefix("… ").removesuffix(" …") in text
        assert len(found.excerpt) <= 245


@steady
@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_every_quoted_span_finds_its_text(bodies: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(bodies) - 1))
    text = bodies[number]
    start = data.draw(st.integers(0, len(text)))
    span = text[start : data.draw(st.integers(start, len(text)))]
    if span.strip() and not set(span) & set('"“”'):
        assert number in find(f'"{span}"', *bodies, limit=10)


@pytest.mark.parametrize(
    "query",
    [
        "needle " * 150_000,
        '"needle" ' * 100_000,
        '"' * 1_000_000,
        "“" * 1_000_000,
        f'"{"needle " * 150_000}"',
        "." * 1_000_000,
        "(a+)+$" * 160_000,
        "\x00\x01\x1b[2J" * 150_000,
        "\u0301" * 500_000,
        "中" * 300_000,
        "1,234" * 200_000,
        " ".join(map(str, range(150_000))),
        "a_" * 500_000,
        "aB" * 500_000,
    ],
    ids=[*"abcdefghijklmn"],
)
def test_query_of_a_megabyte_is_answered(query: str) -> None:
    passages = [passage(str(number), f"a needle (a+)+$ number {number} 中文 1,234") for number in range(300)]
    assert len(search(PassageIndex(passages), query)) <= 5


@pytest.mark.parametrize("piece", ["a", "a.", "a ", "中", ".", "1a", "_", '"', "a.. "])
@pytest.mark.parametrize("size", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_very_much_hostile_text_is_searched_in_one_pass(piece: str, size: int) -> None:
    text = piece * (size // len(piece))
    assert 0 in find("needle a", "needle", text)


def help_with(question: str, *texts: str) -> list[int]:
    """The numbers of the texts that speak of the same as a question."""
    passages = [passage(str(number), text) for number, text in enumerate(texts)]
    return [int(found.passage.id) for found in search_for_question(PassageIndex(passages), question, limit=9)]


def test_related_passage_has_most_words_and_a_rare_one() -> None:
    talk = [
        "the harbour opens at six",
        "a budget for the harbour",
        "the tokenizer of the budget",
        "a budget",
        "tokenizer",
    ]
    assert help_with("What does the tokenizer say of the budget?", *talk) == [2]
    # One word is too little, and small words are none.
    assert help_with("What is the tokenizer?", *talk) == []
    assert help_with("What is the of a?", *talk) == []


@pytest.mark.parametrize(("having", "helps"), [(5, True), (6, False)])
def test_word_in_one_of_twenty_passages_is_rare(having: int, helps: bool) -> None:  # noqa: FBT001
    talk = [f"tokenizer budget {number}" if number < having else f"nothing at all {number}" for number in range(100)]
    assert (help_with("tokenizer budget", *talk) != []) is helps


@pytest.mark.parametrize(("text", "helps"), [("keel mast", False), ("keel mast sail", True)])
def test_text_with_half_of_question_is_unrelated(text: str, helps: bool) -> None:  # noqa: FBT001
    others = [word for word in ("keel", "mast", "sail", "stern") if word not in text.split()]
    assert (help_with("keel mast sail stern", text, *others) == [0]) is helps


@pytest.mark.parametrize(
    "query",
    [
        "What is the capital city of Mongolia?",
        "Wie hoch ist der Turm in Paris?",
        "berapa harga emas hari ini",
        "東京の天気はどうですか",
        "the weather in the city of the north",
    ],
)
def test_question_about_something_unmentioned_finds_nothing(query: str) -> None:
    talk = [f"We talked about bed {number} and the city, and it is what we said." for number in range(40)]
    talk += ["Der Hund ist in der Küche.", "Ini itu apa?", "私の犬はとても元気です。"]
    assert find(query, *talk) == []


def test_a_question_that_shares_one_rare_word_with_its_answer_finds_it() -> None:
    talk = [f"We talked about bed {number} and what it is like." for number in range(40)]
    assert find("What happened to the hallway?", *talk, "We had a leak in the hallway.") == [40]
    assert find("東京に行きたい", *talk, "私は東京に住んでいます。") == [40]
