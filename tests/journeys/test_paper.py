"""A paper from the first idea to a file that can be handed in, in both languages."""

import asyncio
import io
import json
import re
import subprocess
import sys
import zipfile
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument
from tests.unit.pictures import png

import lamella
from lamella import Conversation
from lamella.providers import ModelRequest, ToolCall
from lamella.testing import ScriptedProvider, ScriptedReply
from lamella.workflows import write_document

MODEL = "anthropic:claude-opus-5-5"
WINDOW = 16_000
AUTHORS = [
    "Sari",
    "Drake",
    "Clark",
    "Roehrs",
    "Landolt",
    "Ribeiro",
    "Snel",
    "Shilo",
    "Youngberg",
    "Irish",
    "Hidayat",
    "Lund",
]
REFERENCES = [
    {"type": "article-journal", "title": f"Study {number} of coffee", "author": [f"{name}, A."], "year": 2000 + number,
     "journal": "Journal of Sleep", "volume": "3", "pages": "1-9", "doi": f"10.1000/{number}"}
    for number, name in enumerate(AUTHORS)
]  # fmt: skip
KEYS = [f"{name.casefold()}{2000 + number}" for number, name in enumerate(AUTHORS)]
CITED = "; ".join(f"@{key}" for key in KEYS)
# What each stage has in the document. A sentence with the stage's name in it is found again in the files.
FIELDS: dict[str, dict[str, object]] = {
    "gagasan": {"ideKasar": "WORKING idea", "analisis": "WORKING", "angle": "WORKING"},
    "topik": {"definitif": "WORKING topic", "angleSpesifik": "WORKING", "researchGap": "WORKING"},
    "outline": {"sections": ["WORKING"], "totalWordCount": 3000},
    "abstrak": {"ringkasanPenelitian": "Sentence of abstrak.", "keywords": ["coffee", "sleep"]},
    "pendahuluan": {"latarBelakang": "Sentence of pendahuluan [@sari2000].", "rumusanMasalah": ["Why?", "How?"]},
    "tinjauan_literatur": {
        "kerangkaTeoretis": "Sentence of tinjauan_literatur.",
        "reviewLiteratur": f"All of [{CITED}].",
    },
    "metodologi": {
        "desainPenelitian": "Sentence of metodologi.",
        "pendekatanPenelitian": "As @drake2001 did, p < 0.05.",
    },
    "hasil": {"temuanUtama": "Sentence of hasil, see @tbl:hours and @fig:sleep in @sec:hasil."},
    "diskusi": {"interpretasiTemuan": "Sentence of diskusi."},
    "kesimpulan": {"ringkasanHasil": "Sentence of kesimpulan.", "jawabanRumusanMasalah": ["Because.", "So."]},
    "daftar_pustaka": {},
    "lampiran": {"isiLampiran": "Sentence of lampiran."},
    "judul": {"opsiJudul": ["WORKING title"], "judulTerpilih": "Coffee and Sleep", "penulis": ["Rina Sari"]},
}
TABLE = ("hours", "Hours of sleep", ["cups", "hours"], [["0", "7.9"], ["4", "6.1"]])
CHAPTERS = [
    f"Sentence of {stage}"
    for stage in FIELDS
    if stage not in ("gagasan", "topik", "outline", "daftar_pustaka", "judul")
]
HEADINGS = {
    "en": ["Abstract", "1 Introduction", "2 Literature Review", "3 Methodology", "4 Results", "5 Discussion",
           "6 Conclusion", "References", "Appendices"],
    "id": ["Abstrak", "1 Pendahuluan", "2 Tinjauan Literatur", "3 Metodologi", "4 Hasil Penelitian", "5 Diskusi",
           "6 Kesimpulan", "Daftar Pustaka", "Lampiran"],
}  # fmt: skip
LABELS = {"en": ("Figure 1", "Table 1", "Section 4"), "id": ("Gambar 1", "Tabel 1", "Bagian 4")}


class Writer:
    """A model that writes every stage with tools, and talks at length about it."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.waiting: deque[ScriptedReply | str] = deque()

    def begin(self, stage: str) -> None:
        calls = (
            [ToolCall(id=f"{stage}-w", name="write_stage", arguments=json.dumps(FIELDS[stage]))]
            if FIELDS[stage]
            else []
        )
        if stage == "tinjauan_literatur":
            arguments = json.dumps({"references": REFERENCES})
            calls.insert(0, ToolCall(id=f"{stage}-r", name="add_references", arguments=arguments))
        if stage == "hasil":
            key, caption, columns, rows = TABLE
            table = {"key": key, "caption": caption, "columns": columns, "rows": rows}
            calls.append(ToolCall(id=f"{stage}-t", name="add_table", arguments=json.dumps(table)))
        decision = ToolCall(
            id=f"{stage}-d", name="propose_decision", arguments=json.dumps({"decision": f"Decided: {stage}."})
        )
        submit = ToolCall(id=f"{stage}-s", name="submit_stage", arguments="{}")
        for call in (*calls, decision, submit):
            self.waiting.append(ScriptedReply(calls=(call,)))
        self.waiting.append(f"I wrote {stage}. " + "It was considered from every side. " * 120)

    async def stream(self, request: ModelRequest) -> AsyncIterator[object]:
        self.requests.append(request)
        async for delta in ScriptedProvider(self.waiting.popleft()).stream(request):
            yield delta

    async def close(self) -> None:
        """There is nothing to give back."""


def open_engine(url: str, writer: Writer) -> lamella.Engine:
    return lamella.open(url, provider=writer, model=MODEL)  # type: ignore[arg-type]


def continue_paper(chat: Conversation, writer: Writer, *, until: str | None) -> list[str]:
    """Ask for each stage and only approve what the model submits; returns the steps of compactions on the way."""
    compacted: list[str] = []

    async def ask(text: str) -> None:
        async for event in chat.send(text, max_tokens=200):
            receipt = event.turn.compaction if event.turn is not None else None
            compacted.extend(step.name for step in (receipt.steps if receipt is not None else ()))

    while (work := chat.workflow) is not None and work.current not in (None, until):
        assert work.current is not None
        if work.current == "hasil":
            chat.add_figure("sleep", "Hours of sleep by cups", png(40, 20))
        writer.begin(work.current)
        asyncio.run(ask(f"Please write {work.current}."))
        assert chat.workflow is not None
        assert chat.workflow.status == "pending"
        chat.approve_stage()
    return compacted


def work_until_killed(url: str, language: str) -> None:
    """Begin a paper, go back from stage 9 to 4, and end without closing anything."""
    import os
    import signal

    writer = Writer()
    chat = open_engine(url, writer).chat("paper", runner="staged", window=WINDOW)
    chat.start_workflow("paper", language=language)
    continue_paper(chat, writer, until="diskusi")
    chat.rewind_to_stage("abstrak")
    continue_paper(chat, writer, until="metodologi")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module", params=["en", "id"])
def finished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Conversation, str]]:
    language = request.param
    url = f"sqlite:///{tmp_path_factory.mktemp('paper')}/chats.db"
    code = f"from tests.journeys.test_paper import work_until_killed; work_until_killed({url!r}, {language!r})"
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -9
    writer = Writer()
    with open_engine(url, writer) as engine:
        chat = engine.chat("paper")
        compacted = continue_paper(chat, writer, until=None)
        assert compacted
        yield chat, language


def check_text(text: str, language: str) -> None:
    """The text has every chapter once and in order, resolved citations, numbers, and nothing of the work itself."""
    flat = " ".join(text.split())
    assert [flat.count(sentence) for sentence in CHAPTERS] == [1] * len(CHAPTERS)
    positions = [flat.index(sentence) for sentence in CHAPTERS]
    assert positions == sorted(positions)
    assert "WORKING" not in flat
    for fields in FIELDS.values():
        assert [name for name in fields if name in flat and name not in ("keywords", "sections")] == []
    assert all(label in flat for label in LABELS[language])
    assert [key for key in KEYS if key in flat] == []
    assert "@" not in flat
    assert [name for name in AUTHORS if name not in flat] == []


def read_docx(path: Path) -> str:
    with zipfile.ZipFile(path) as packed:
        body = packed.read("word/document.xml").decode()
        assert any(name.startswith("word/media/") for name in packed.namelist())
    paragraphs = re.findall(r"<w:p[ >].*?</w:p>", body, re.DOTALL)
    runs = [re.findall(r"<w:t[^>]*>([^<]*)</w:t>|<w:tab ?/>", one) for one in paragraphs]
    texts = ["".join(text or " " for text in one) for one in runs]
    return "\n".join(texts).replace("\u00a0", " ").replace("&lt;", "<")


def read_pdf(path: Path) -> list[str]:
    with PdfDocument(path) as document:
        return [page.get_textpage().get_text_range().replace("\u00a0", " ") for page in document]


def test_only_approvals_lead_to_a_docx_and_a_pdf_in_two_styles(
    finished: tuple[Conversation, str], tmp_path: Path
) -> None:
    chat, language = finished
    document = chat.document()
    assert [one.code for one in document.problems] == []
    for style in ("apa", "ieee"):
        docx, pdf = tmp_path / f"{style}.docx", tmp_path / f"{style}.pdf"
        assert write_document(document, docx, style=style) == ()
        assert write_document(document, pdf, style=style) == ()
        check_text(read_docx(docx), language)
        pages = read_pdf(pdf)
        check_text("\n".join(pages), language)
        lines = [line.strip() for page in pages for line in page.splitlines()]
        found = [line for line in lines if line in HEADINGS[language]]
        assert found == HEADINGS[language]
        assert lines[:2] == ["Coffee and Sleep", "Rina Sari"]
        citation = "[1]" if style == "ieee" else "(Sari, 2000)"
        assert citation in " ".join(lines)


def test_work_survived_rewind_kill_and_compaction(finished: tuple[Conversation, str]) -> None:
    chat, _ = finished
    work = chat.workflow
    assert work is not None
    assert work.status == "approved"
    assert [line.decision for line in work.digest if not line.superseded] == [f"Decided: {stage}." for stage in FIELDS]
    assert sum(line.superseded for line in work.digest) == 5
    assert len(work.reference_items) == 12


def test_every_format_has_the_same_text(finished: tuple[Conversation, str], tmp_path: Path) -> None:
    chat, language = finished
    for name in ("paper.html", "paper.tex", "paper.md"):
        write_document(chat.document(), tmp_path / name)
        text = (
            (tmp_path / name).read_text(encoding="utf-8").replace("~", " ").replace("\u00a0", " ").replace("\\_", "_")
        )
        flat = " ".join(text.split())
        positions = [flat.index(sentence) for sentence in CHAPTERS]
        assert positions == sorted(positions)
        assert all(label in flat for label in LABELS[language])
    assert (tmp_path / "paper-figures" / "fig-sleep.png").read_bytes() == png(40, 20)


def test_person_types_everything(tmp_path: Path) -> None:
    chat = Conversation()
    chat.start_workflow("paper")
    for stage, fields in FIELDS.items():
        if stage == "tinjauan_literatur":
            chat.add_references(REFERENCES)
        if stage == "hasil":
            chat.add_table(*TABLE)
            chat.add_figure("sleep", "Hours of sleep by cups", png(40, 20))
        if fields:
            chat.write_stage(fields)
        chat.submit_stage()
        chat.approve_stage()
    write_document(chat.document(), tmp_path / "typed.pdf", style="ieee")
    check_text("\n".join(read_pdf(tmp_path / "typed.pdf")), "en")


def test_pages_of_the_pdf_are_not_empty(finished: tuple[Conversation, str], tmp_path: Path) -> None:
    """Margins are white, and each page has dark text inside them."""
    chat, _ = finished
    write_document(chat.document(), tmp_path / "paper.pdf")
    with PdfDocument(tmp_path / "paper.pdf") as document:
        for page in document:
            picture = page.render(scale=0.5).to_pil().convert("L")
            width, height = picture.size
            assert picture.crop((0, 0, width // 8, height)).getextrema()[0] > 200
            assert picture.crop((width // 5, height // 8, width - width // 6, height)).getextrema()[0] < 100


def test_raw_markup_in_a_text_reads_no_file(tmp_path: Path) -> None:
    chat = Conversation()
    chat.start_workflow("rfc")
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET", encoding="utf-8")
    text = f"\\input{{{secret}}} ![x]({secret}) `#read(\"{secret}\")`{{=typst}} <img src='{secret}'>"
    chat.write_stage({"problem": text, "goals": "None."})
    chat.submit_stage()
    chat.approve_stage()
    document = chat.document()
    assert "image_missing" in [one.code for one in document.problems]
    for name in ("a.pdf", "a.html", "a.docx"):
        write_document(document, tmp_path / name)
    assert "SECRET" not in "".join(read_pdf(tmp_path / "a.pdf")) + (tmp_path / "a.html").read_text(encoding="utf-8")
    packed = zipfile.ZipFile(io.BytesIO((tmp_path / "a.docx").read_bytes()))
    assert [name for name in packed.namelist() if name.startswith("word/media/")] == []


def test_paper_of_an_older_version_is_exported_with_sections(tmp_path: Path) -> None:
    """Its workflow, which is stored with the conversation, has neither sections nor descriptions of fields."""
    stages = "".join(
        f'[[stages]]\nid = "{stage}"\nlabels = {{ id = "Tahap", en = "Stage" }}\nrequired = {json.dumps(list(fields))}\n'
        for stage, fields in FIELDS.items()
    )
    old = tmp_path / "paper.toml"
    old.write_text(f'lamella = 1\nname = "paper"\nlanguage = "id"\n{stages}', encoding="utf-8")
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        chat = engine.chat("old")
        chat.start_workflow(str(old))
        for fields in FIELDS.values():
            if fields:
                chat.write_stage(fields)
            chat.submit_stage()
            chat.approve_stage()
    with lamella.open(url) as engine:
        document = engine.chat("old").document()
    assert [section.heading for section in document.sections][:2] == ["Abstrak", "Tahap"]
    assert document.title == "Coffee and Sleep"
    assert "WORKING" not in "".join(section.text for section in document.sections)
