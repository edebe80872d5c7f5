"""Extracting blocks: certain attachments are removed from a message, and nothing else is touched."""

import pytest

from lamella.archive.markdown.legacy import ExtractedBlocks, extract_blocks
from lamella.core.artifacts.model import ArtifactKind

NOTE = """<note_context>
<title>Spec &amp; plan</title>
<path>docs/spec.md</path>
<ctime>2024-01-01</ctime>
<content>
# Spec

text & more
</content>
</note_context>"""


def test_inlined_note_becomes_attachment() -> None:
    inlined = extract_blocks(f"{NOTE}\n\nSummarize this\n\nplease")
    (note,) = inlined.artifacts
    assert (note.kind, note.id, note.title) == (ArtifactKind.NOTE, "docs/spec.md", "Spec & plan")
    assert note.text == "# Spec\n\ntext & more"
    assert inlined.remaining_text == "Summarize this\n\nplease"


def test_blocks_keep_their_order() -> None:
    url = "<url_content>\n<url>https://x.org/?a=1&amp;b=2</url>\n<content>page</content>\n</url_content>"
    selected = (
        "<selected_text>\n<title>a</title>\n<path>a.md</path>\n<start_line>3</start_line>\n<end_line>5</end_line>\n"
        "<content>\nwords\n</content>\n</selected_text>"
    )
    inlined = extract_blocks(f"{NOTE}\nWhy?\n{url}\n{selected}\n")
    assert [a.kind for a in inlined.artifacts] == [ArtifactKind.NOTE, ArtifactKind.URL, ArtifactKind.SELECTED_TEXT]
    assert inlined.artifacts[1].id == "https://x.org/?a=1&b=2"
    assert inlined.artifacts[1].text == "page"
    assert inlined.artifacts[2].source.lines == (3, 5)
    assert inlined.remaining_text == "Why?"


@pytest.mark.parametrize(
    "block",
    [
        "<mystery_block>\nanything & <b>all</b>\n</mystery_block>",
        '<prior_context source="localSearch" type="note">\n[3 search results]\n</prior_context>',
        "<prior_context>\npreview\n</prior_context>",
        "<note_context>\n<path>a.md</path>\n<content>cut off",
        "<note_context>\nno content here\n</note_context>",
        "<note_context>\n<content>no path</content>\n</note_context>",
        "<dataview_block>\n<query>LIST</query>\n</dataview_block>",
    ],
)
def test_unknown_block_is_kept_verbatim(block: str) -> None:
    after = "[User query]:\nafter"
    inlined = extract_blocks(f"before\n{block}\n{after}")
    (artifact,) = inlined.artifacts
    assert artifact.kind is ArtifactKind.UNKNOWN
    assert artifact.text == block
    assert inlined.remaining_text == f"before\n{after}"


@pytest.mark.parametrize(
    ("block", "kind", "name"),
    [
        ('<prior_context source="docs/a &amp; b.md" type="note">', ArtifactKind.NOTE, "docs/a & b.md"),
        ('<prior_context source="https://x.org/" type="url">', ArtifactKind.URL, "https://x.org/"),
        ('<prior_context source="a.pdf" type="pdf">', ArtifactKind.PDF, "a.pdf"),
    ],
)
def test_shortened_block_becomes_attachment_of_its_kind(block: str, kind: ArtifactKind, name: str) -> None:
    inlined = extract_blocks(f"{block}\n# A\npreview ...\n</prior_context>\nWhy?")
    (artifact,) = inlined.artifacts
    assert (artifact.kind, artifact.id, artifact.text) == (kind, name, "# A\npreview ...")
    assert (inlined.shortened, inlined.unparsed, inlined.remaining_text) == ((artifact,), (), "Why?")


def test_embedded_pdf_and_notes_become_attachments() -> None:
    pdf = "<embedded_pdf>\n<name>docs/a.pdf</name>\n<content>\npages\n</content>\n</embedded_pdf>"
    note = "<embedded_note>\n<title>b</title>\n<path>b.md</path>\n<content>\ntext\n</content>\n</embedded_note>"
    inlined = extract_blocks(f"{pdf}\n{note}\nWhy?")
    assert [(one.kind, one.id, one.text) for one in inlined.artifacts] == [
        (ArtifactKind.PDF, "docs/a.pdf", "pages"),
        (ArtifactKind.NOTE, "b.md", "text"),
    ]


def test_block_without_a_closing_tag_ends_before_the_next_block_or_the_question() -> None:
    unclosed = "<url_content>\n<url>https://x.org/</url>\n<content>\npage\n</content>"
    inlined = extract_blocks(f"{unclosed}\n{NOTE}\nWhy?")
    assert [one.kind for one in inlined.artifacts] == [ArtifactKind.URL, ArtifactKind.NOTE]
    assert (inlined.artifacts[0].text, inlined.remaining_text) == ("page", "Why?")
    cut = extract_blocks(f"{NOTE.removesuffix('</note_context>')}[User query]:\nWhy?")
    assert ([one.id for one in cut.artifacts], cut.remaining_text) == (["docs/spec.md"], "Why?")


def test_many_unclosed_blocks_are_parsed_quickly() -> None:
    text = "<note_context>\n<path>a.md</path>\n" * 20_000
    assert len(extract_blocks(text).artifacts) == 20_000


def test_nested_block_of_same_tag_belongs_to_outer_one() -> None:
    nested = NOTE.replace("text & more", f"quotes:\n{NOTE}")
    inlined = extract_blocks(f"{nested}\nWhy?")
    assert len(inlined.artifacts) == 1
    assert inlined.remaining_text == "Why?"


def test_quoted_tag_in_block_does_not_extend_it() -> None:
    quoting = NOTE.replace("text & more", "<note_context> is a tag")
    inlined = extract_blocks(f"{quoting}\nWhy?")
    assert len(inlined.artifacts) == 1
    assert inlined.remaining_text == "Why?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\n\n text ",
        "<div>\nhtml\n</div>",
        "<note_context> in a sentence",
        "a line, then <note_context>\n<path>x</path>\n</note_context>",
        "<never_closed>\ntext",
        "```\n<note_context>\n<path>x.md</path>\n<content>x</content>\n</note_context>\n```",
        "<my_tag>one line</my_tag>",
        "[User query]: typed",
    ],
)
def test_uncertain_block_stays_typed_text(text: str) -> None:
    inlined = extract_blocks(text)
    assert inlined.remaining_text == text
    assert inlined.artifacts == ()


def test_many_unclosed_tags_are_parsed_quickly() -> None:
    text = "<never_closed>\n" * 50_000
    assert extract_blocks(text).remaining_text == text


def test_label_before_question_is_removed() -> None:
    assert extract_blocks(f"{NOTE}\n\n[User query]:\nWhy?").remaining_text == "Why?"


@pytest.mark.parametrize("is_answer", [False, True])
@pytest.mark.parametrize(
    ("block", "tag"),
    [
        ("<localSearch>\nfound\n</localSearch>", "localSearch"),
        ('<localSearch timeRange="a to b">\nfound\n</localSearch>', "localSearch"),
        ("  <localSearch>\n  found\n  </localSearch>", "localSearch"),
        ("\t<readNote>\nfound\n</readNote>", "readNote"),
        ("<localSearch>\n<localSearch>\nfound\n</localSearch>\n</localSearch>", "localSearch"),
        ("<webSearch></webSearch>", "webSearch"),
        ('<additionalMatches count="2">\nfound\n</additionalMatches>', "additionalMatches"),
        ('<variable name="x">\nfound\n</variable>', "variable"),
        ("<note_context_error>\ngone\n</note_context_error>", "note_context_error"),
        ('Tool \'readNote\' result: {"path": "a.md"}', "readNote"),
    ],
)
def test_blocks_of_other_program_are_extracted(block: str, tag: str, *, is_answer: bool) -> None:
    for text in (f"{block}\nYes.", f"{block}\n\nYes.\n"):
        found = extract_blocks(text, is_answer=is_answer)
        assert found.remaining_text == "Yes."
        assert [(one.tag, one.artifact.text) for one in found.unparsed] == [(tag, block)]


@pytest.mark.parametrize("text", ["<localSearch>\nx\n</localSearch> Yes.", "<localSearch>x</localSearch>Yes."])
def test_text_after_closing_tag_stays_message_text(text: str) -> None:
    found = extract_blocks(text, is_answer=True)
    assert found.remaining_text == "Yes."
    (block,) = found.unparsed
    assert block.artifact.text == text.removesuffix("Yes.").rstrip()


@pytest.mark.parametrize(
    "text",
    [
        "The <localSearch> tag is closed by </localSearch>, and so on.",
        "Write <localSearch>x</localSearch> to search.",
        "  <my_tag>\nx\n</my_tag>",
        "<variable> in a sentence",
        "Tool 'mine' result: {}",
        "<selected_text>x</selected_text> is how it begins",
    ],
)
def test_text_about_blocks_stays_typed_text(text: str) -> None:
    assert extract_blocks(text) == ExtractedBlocks(remaining_text=text, artifacts=())
