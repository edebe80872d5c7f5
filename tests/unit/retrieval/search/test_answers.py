"""Answers: what is found by words, names, tags, folders and days, and in which order."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.retrieval.vaults import date, find, indexed, paths, write

from lamella.retrieval.index import VaultIndex
from lamella.retrieval.search import NoteSearcher

NOTES = {
    "garden/beans.md": "---\ntitle: Growing beans\ntags: [Garden/Vegetables, plan]\naliases: [Bohnen]\n---\n"
    "# Sowing\n\nBeans are sown in May.\n\n# Watering\n\nWater the beans in the evening.\n",
    "garden/tools.md": "# Tools\n\nA spade, a rake and a watering can. #garden\n",
    "daily/2026-11-12.md": "Met Jo about the irrigation pump.\n",
    "daily/2026-11-16.md": "Bought a pump.\n",
    "code/PodTemplateSpec.md": "The `PodTemplateSpec` and max_connections, kube-apiserver.\n",
    "places/Café Łódź.md": "Naïve façade in Łódź and İstanbul.\n",
    "ja/東京.md": "東京都の天気は晴れです。会議の資料を準備しました。\n",
    "id/rapat.md": "Catatan rapat yang dibuat untuk tim dan pengguna: makanan dibagikan, perencanaan selesai.\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VaultIndex]:
    """The notes above, searched by tests that change nothing."""
    with indexed(write(tmp_path_factory.mktemp("vaults") / "v", NOTES)) as index:
        yield index


def test_index_answers_with_note_searcher(index: VaultIndex) -> None:
    assert isinstance(index._finder, NoteSearcher)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("sowing a bean", "garden/beans.md"),
        ("waters", "garden/beans.md"),
        ("Bohnen", "garden/beans.md"),
        ("template spec", "code/PodTemplateSpec.md"),
        ("podtemplatespec", "code/PodTemplateSpec.md"),
        ("maxConnections", "code/PodTemplateSpec.md"),
        ("max_connections", "code/PodTemplateSpec.md"),
        ("api server kube", "code/PodTemplateSpec.md"),
        ("cafe lodz", "places/Café Łódź.md"),
        ("FACADE", "places/Café Łódź.md"),
        ("istanbul", "places/Café Łódź.md"),
        ("天気", "ja/東京.md"),
        ("資料を準備", "ja/東京.md"),
        ("会", "ja/東京.md"),
        ("makan", "id/rapat.md"),
        ("gunakan", "id/rapat.md"),
        ("perencanaannya", "id/rapat.md"),
    ],
)
def test_forms_accents_parts_of_names_and_other_scripts_are_found(index: VaultIndex, query: str, path: str) -> None:
    assert paths(index, query)[:1] == [path]


def test_exact_word_form_ranks_first(tmp_path: Path) -> None:
    notes = {f"{word}.md": f"Something about {word} here." for word in ("connects", "connected", "connecting")}
    with indexed(write(tmp_path / "v", {**notes, "x.md": "Other things."})) as index:
        for word in ("connects", "connected", "connecting"):
            assert paths(index, f"{word} something")[0] == f"{word}.md"


def test_adjacent_words_in_order_rank_first(tmp_path: Path) -> None:
    notes = {"a.md": "A pump for water. A hose on the roof.", "b.md": "Water on the roof. A hose pump for it."}
    with indexed(write(tmp_path / "v", notes)) as index:
        assert paths(index, "hose pump") == ["b.md", "a.md"]


def test_linked_note_comes_first_with_matching_passage(index: VaultIndex) -> None:
    hits = find(index, "[[Growing Beans]] evening pump")
    assert (hits[0].path, hits[0].heading) == ("garden/beans.md", "Watering")
    assert {hit.path for hit in hits[1:]} == {"daily/2026-11-12.md", "daily/2026-11-16.md"}
    for name in ("[[beans]]", "[[garden/beans.md]]", "[[Bohnen|those]]"):
        [first, *_] = found = find(index, name)
        assert {hit.path for hit in found} == {"garden/beans.md"}
        assert (first.heading, first.why) == ("Sowing", "named [[Growing beans]]")


def test_link_without_note_is_searched_by_words(index: VaultIndex) -> None:
    assert paths(index, "[[spade and rake]]")[0] == "garden/tools.md"


def test_tag_includes_subtags(index: VaultIndex) -> None:
    assert set(paths(index, "#garden")) == {"garden/beans.md", "garden/tools.md"}
    assert paths(index, "#GARDEN/vegetables") == ["garden/beans.md"]
    assert paths(index, "#gard") == []
    assert paths(index, "#garden watering")[0] in ("garden/beans.md", "garden/tools.md")
    assert paths(index, "#garden pump") == []
    [hit, *_] = find(index, "#plan evening")
    assert hit.why == "evening in text; tagged #plan"


def test_folder_filter_includes_subfolders(index: VaultIndex) -> None:
    assert set(paths(index, "path:daily pump")) == {"daily/2026-11-12.md", "daily/2026-11-16.md"}
    assert paths(index, "folder:Garden/ pump") == []
    assert paths(index, 'path:"daily/2026-11-12.md"') == ["daily/2026-11-12.md"]


def test_dates_come_from_names_or_modification(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    date(root / "garden" / "tools.md", datetime(2026, 11, 10, 9, tzinfo=UTC))
    date(root / "daily" / "2026-11-16.md", datetime(2026, 11, 10, 9, tzinfo=UTC))
    with indexed(root) as index:
        assert paths(index, "what happened last week") == ["daily/2026-11-12.md", "garden/tools.md"]
        assert paths(index, "beans last week") == ["daily/2026-11-12.md", "garden/tools.md"]
        assert paths(index, "minggu lalu") == ["daily/2026-11-12.md", "garden/tools.md"]
        assert paths(index, "kemarin") == ["daily/2026-11-16.md"]
        assert paths(index, "pump yesterday") == ["daily/2026-11-16.md"]
        assert find(index, "pump yesterday")[0].why == "pump in text; yesterday: 2026-11-16"
        assert len(paths(index, "in June 2025", limit=20)) == len(NOTES) - 3


def test_quoted_phrase_must_match_exactly(index: VaultIndex) -> None:
    assert paths(index, '"watering can"') == ["garden/tools.md"]
    assert paths(index, '"can watering"') == []


def test_every_note_that_fits_has_one_passage_before_any_has_two(tmp_path: Path) -> None:
    many = "\n".join(f"# Part {number}\n\nbeans beans beans {number}\n" for number in range(80))
    few = {f"few{number}.md": f"Nothing much, {'more ' * 50} some beans." for number in range(9)}
    with indexed(write(tmp_path / "v", {"many.md": many, **few, "other.md": "Nothing."})) as index:
        hits = find(index, "beans", limit=12)
        assert {hit.path for hit in hits[:10]} == {"many.md", *few}
        assert [hit.path for hit in hits[10:]] == ["many.md", "many.md"]
        assert len({hit.id for hit in hits}) == 12


def test_equal_scores_are_ordered_by_path(tmp_path: Path) -> None:
    notes = {f"{name}.md": "The same pump." for name in ("c", "a", "d", "b")}
    with indexed(write(tmp_path / "v", notes)) as index:
        assert paths(index, "pump") == ["a.md", "b.md", "c.md", "d.md"]


def test_equal_scores_beyond_fetch_limit_are_ordered_by_path(tmp_path: Path) -> None:
    notes = {f"{name:03}.md": "The same pump." for name in range(150)}
    with indexed(write(tmp_path / "v", {path: notes[path] for path in sorted(notes, reverse=True)})) as index:
        for path in ("070.md", "000.md"):
            (tmp_path / "v" / path).write_text("The same pump", encoding="utf-8")
            index.refresh()
        assert paths(index, "pump", limit=20) == [f"{name:03}.md" for name in range(20)]


@pytest.mark.parametrize(
    "query", ['"', "*", "NEAR(", "a:b", "-x", "^", "#", "[[", "path:", '""', "(((", "AND OR NOT", "'; --"]
)
def test_no_sign_means_anything_to_the_database(index: VaultIndex, query: str) -> None:
    find(index, query)
    find(index, f"{query} pump")


def test_query_without_words_finds_nothing(index: VaultIndex) -> None:
    assert find(index, "…") == []
    assert find(index, "zzzyzx") == []
    assert find(index, "the of") == [] or find(index, "the of")


def test_all_given_notes_are_ranked(index: VaultIndex) -> None:
    among = ["nowhere.md", *sorted(NOTES), "garden/beans.md"]
    ranked = index.rank_notes("pump irrigation", paths=among)
    assert ranked[:2] == ["daily/2026-11-12.md", "daily/2026-11-16.md"]
    assert sorted(ranked) == sorted(set(among))
    assert index.rank_notes("", paths=["b.md", "a.md"]) == ["a.md", "b.md"]
    assert index.rank_notes("beans", paths=["garden/tools.md"]) == ["garden/tools.md"]
