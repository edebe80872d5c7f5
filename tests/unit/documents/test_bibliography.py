"""References come from files of reference managers and from doi.org."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from lamella.documents.bibliography import fetch_reference, is_bibliography, read_references
from lamella.errors import DocumentError

BIBTEX = """@article{sari2021,
  author = {Sari, Rina and {World Health Organization}},
  title = {Coffee and {SLEEP}},
  journal = {Journal of Sleep}, year = 2021, doi = {10.1000/abc}
}"""
RIS = "TY  - JOUR\nAU  - Sari, Rina\nTI  - Coffee\nPY  - 2021\nDO  - 10.1000/abc\nER  - \n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_bibtex_ris_and_csl_json_give_the_same_reference(tmp_path: Path) -> None:
    bibtex = read_references(write(tmp_path, "a.bib", BIBTEX))
    assert [(one["id"], one["DOI"]) for one in bibtex] == [("sari2021", "10.1000/abc")]
    assert bibtex[0]["author"] == [{"family": "Sari", "given": "Rina"}, {"literal": "World Health Organization"}]
    ris = read_references(write(tmp_path, "a.ris", RIS))
    assert (ris[0]["title"], ris[0]["DOI"]) == ("Coffee", "10.1000/abc")
    assert read_references(write(tmp_path, "a.json", json.dumps(ris))) == ris
    assert read_references(write(tmp_path, "one.json", json.dumps(ris[0]))) == ris


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", "{"), ("a.json", "[]"), ("a.json", "[1]"), ("a.bib", ""), ("a.txt", "x"), ("a.json", "7")],
)
def test_file_without_references_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(DocumentError):
        read_references(write(tmp_path, name, text))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        read_references(tmp_path / "gone.bib")
    assert is_bibliography("LIBRARY.BIB")
    assert not is_bibliography("Sari (2021). Coffee.")


def test_doi_is_asked_for_as_csl_json_and_keeps_no_foreign_key() -> None:
    asked: list[tuple[str, Mapping[str, str]]] = []

    def fetch(url: str, headers: Mapping[str, str]) -> bytes:
        asked.append((url, headers))
        return json.dumps({"id": "https://doi.org/10.1000/abc", "title": "Coffee", "DOI": "10.1000/ABC"}).encode()

    item = fetch_reference("doi:10.1000/abc", fetch)
    assert asked == [("https://doi.org/10.1000/abc", {"Accept": "application/vnd.citationstyles.csl+json"})]
    assert item == {"title": "Coffee", "DOI": "10.1000/abc"}
    with pytest.raises(DocumentError, match="is no DOI"):
        fetch_reference("coffee", fetch)
