"""The document that the stages of a workflow produce: its sections in order, figures, tables and references.

``build_document`` collects the text of the approved stages without working fields, and everything that is missing in it.
``render_document`` returns it as Markdown in the syntax of Pandoc, with citations as keys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from lamella.core.log.events.compaction import (
    Exhibit,
    FieldPlacement,
    SectionKind,
    StageFieldSpec,
    StageFieldType,
    StageSpec,
    WorkflowSpec,
)
from lamella.core.text.content import is_closing_fence, iter_lines_with_code_flag, opening_fence
from lamella.core.values import replace
from lamella.core.workflow.phrases import WorkflowPhrases, get_phrases
from lamella.core.workflow.references import (
    CslItem,
    find_citations,
    find_cross_references,
    format_reference,
    index_references,
    list_missing_details,
)
from lamella.core.workflow.session import (
    SOURCE_FIELDS,
    StageApproval,
    WorkflowSession,
    collect_references,
    format_field_value,
    is_filled_in,
)

# The prefix of the anchors of sections, and the fields that are about a stage and not part of its text.
SECTION_PREFIX = "sec:"
_WORKING_FIELDS = frozenset({"summary", "ringkasan", "ringkasanDetail"})
# Entries of a list are items up to this length; longer ones are paragraphs.
_MAX_ITEM_CHARS = 400
_IMAGE_TARGET = re.compile(r"!\[[^\]]*\]\(\s*<?([^)\s>]+)")
_ANCHOR = re.compile(r"\{[^{}]*#((?:fig|tbl|sec):[\w-]+)[^{}]*\}")
_HEADING = re.compile(r" {0,3}(#{1,6})(\s+\S.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})\s*")
_MAX_HEADING_LEVEL = 6


class DocumentSection(Struct, frozen=True, kw_only=True):
    """A section of a document: its heading and its text as Markdown, with figures and tables at the end of it.

    Attributes:
        id: The anchor that cross references use: ``sec:`` and the id of the stage.
        exhibits: Keys of the figures and tables that the text does not place itself.
    """

    id: str
    kind: SectionKind
    heading: str
    text: str
    exhibits: tuple[str, ...] = ()


class DocumentProblem(Struct, frozen=True, kw_only=True):
    """Something that a document lacks: a code for programs, and a sentence for people."""

    code: str
    message: str


class WorkflowDocument(Struct, frozen=True, kw_only=True):
    """The document of a workflow.

    Attributes:
        sections: The sections in order; the one for references has no text of its own.
        references: The references as CSL-JSON items, whether cited or not.
        cites: Whether the text cites anything. Otherwise all references are listed.
        exhibits: The figures and tables of the document.
        images: The images of the figures by hash.
        problems: Everything that is missing.
    """

    title: str
    language: str
    authors: tuple[str, ...] = ()
    institution: str = ""
    keywords: tuple[str, ...] = ()
    sections: tuple[DocumentSection, ...] = ()
    references: tuple[CslItem, ...] = ()
    cites: bool = False
    exhibits: tuple[Exhibit, ...] = ()
    images: Mapping[str, bytes] = {}
    problems: tuple[DocumentProblem, ...] = ()


def with_sections_of(workflow: WorkflowSpec, current: WorkflowSpec) -> WorkflowSpec:
    """Return a workflow with the sections and fields of its current file, if it was started before there were any."""
    if any(stage.section is not None or stage.fields for stage in workflow.stages):
        return workflow
    known = {stage.id: stage for stage in current.stages}
    if any(stage.id not in known for stage in workflow.stages):
        return workflow
    stages = tuple(
        replace(
            stage, section=known[stage.id].section, headings=known[stage.id].headings, fields=known[stage.id].fields
        )
        for stage in workflow.stages
    )
    return replace(workflow, stages=stages)


def build_document(session: WorkflowSession, *, title: str = "") -> WorkflowDocument:
    """Return the document of the approved stages, with everything that is missing in it."""
    workflow, phrases = session.workflow, get_phrases(session.workflow.language)
    approved = {one.stage: one for one in session.approved_attempts}
    done = [stage for stage in workflow.stages if stage.id in approved]
    sections = _order_sections(
        [section for stage in done for section in _build_sections(session, stage, approved[stage.id])]
    )
    references = tuple(collect_references(session).values())
    if references and not any(one.kind is SectionKind.REFERENCES for one in sections):
        sections = _insert_references(sections, phrases.references)
    sections, exhibits, unplaced = _place_exhibits(session, sections)
    placed_title = format_field_value(title) or _find_title(session, done)
    text = "\n\n".join(section.text for section in sections)
    document = WorkflowDocument(
        title=placed_title or workflow.title or workflow.name,
        language=workflow.language,
        authors=tuple(_find_names(session, done)),
        institution=", ".join(_find_values(session, done, FieldPlacement.INSTITUTION)),
        keywords=tuple(_find_keywords(session, done)),
        sections=tuple(sections),
        references=references,
        cites=bool(find_citations(text)),
        exhibits=exhibits,
    )
    problems = [
        *_find_stage_problems(session, document, has_title=bool(placed_title)),
        *_find_reference_problems(document, phrases),
        *_find_exhibit_problems(session, document, unplaced, phrases),
    ]
    return replace(document, problems=tuple(problems))


# Sections.


def _build_sections(session: WorkflowSession, stage: StageSpec, attempt: StageApproval) -> Iterator[DocumentSection]:
    kind = stage.section or SectionKind.CHAPTER
    if kind is SectionKind.NONE:
        return
    text = "" if kind is SectionKind.REFERENCES else _render_stage(session, stage)
    if not text and kind is SectionKind.CHAPTER and not stage.fields:
        text = attempt.decision
    if not text and kind is SectionKind.APPENDIX:
        return
    yield DocumentSection(
        id=f"{SECTION_PREFIX}{stage.id}", kind=kind, heading=session.workflow.heading(stage), text=text
    )


def _order_sections(sections: Sequence[DocumentSection]) -> list[DocumentSection]:
    """Return the sections with abstracts first and appendices last."""
    order = {SectionKind.ABSTRACT: 0, SectionKind.CHAPTER: 1, SectionKind.REFERENCES: 2, SectionKind.APPENDIX: 3}
    return sorted(sections, key=lambda section: order[section.kind])


def _insert_references(sections: list[DocumentSection], heading: str) -> list[DocumentSection]:
    made = DocumentSection(id=f"{SECTION_PREFIX}references", kind=SectionKind.REFERENCES, heading=heading, text="")
    return _order_sections([*sections, made])


def _iter_text_fields(session: WorkflowSession, stage: StageSpec) -> Iterator[tuple[StageFieldSpec, object]]:
    """Yield the fields of a stage that are part of the text: described ones in their order, then all others."""
    values = session.data.get(stage.id, {})
    described = [one.name for one in stage.fields]
    for name in dict.fromkeys((*described, *values)):
        field = stage.field(name) or StageFieldSpec(name=name)
        is_working = name in SOURCE_FIELDS or (stage.fields and name not in described and name in _WORKING_FIELDS)
        is_text = field.document is FieldPlacement.TEXT and field.type is not StageFieldType.REFERENCES
        if is_text and not is_working and is_filled_in(values.get(name)):
            yield field, values[name]


def _render_stage(session: WorkflowSession, stage: StageSpec) -> str:
    fields = list(_iter_text_fields(session, stage))
    parts: list[str] = []
    for field, value in fields:
        if len(fields) > 1 and field.heading:
            parts.append(f"## {session.workflow.field_label(stage, field.name)}")
        parts.append(_render_value(value, field, level=2 if len(fields) > 1 and field.heading else 1))
    return "\n\n".join(part for part in parts if part)


def _render_value(value: object, field: StageFieldSpec, *, level: int) -> str:
    if isinstance(value, str):
        return _tidy_markdown(value, level=level)
    if isinstance(value, Mapping):
        return "\n".join(f"- {name}: {format_field_value(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, Sequence):
        entries = [one.strip() if isinstance(one, str) else format_field_value(one) for one in value if one is not None]
        if any("\n" in entry or len(entry) > _MAX_ITEM_CHARS for entry in entries):
            return "\n\n".join(_tidy_markdown(entry, level=level) for entry in entries)
        is_numbered = field.type is StageFieldType.LIST
        return "\n".join(f"{f'{at}.' if is_numbered else '-'} {one}" for at, one in enumerate(entries, start=1))
    return format_field_value(value)


def _tidy_markdown(text: str, *, level: int) -> str:
    """Return a text whose headings are below ``level``, and that leaves no code block open."""
    lines: list[str] = []
    fence = ""
    for line in text.strip().split("\n"):
        if fence:
            fence = "" if is_closing_fence(line, fence) else fence
            lines.append(line)
            continue
        fence = opening_fence(line) or ""
        underline, heading = _UNDERLINE.fullmatch(line), _HEADING.fullmatch(line)
        if underline and lines and _is_heading_text(lines):
            lines[-1] = _format_heading(1 if underline[1][0] == "=" else 2, f" {lines[-1].strip()}", level)
        elif heading:
            lines.append(_format_heading(len(heading[1]), heading[2], level))
        else:
            lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)


def _is_heading_text(lines: Sequence[str]) -> bool:
    """Return whether the last line is a paragraph of one line, which an underline makes a heading."""
    return bool(lines[-1].strip()) and "|" not in lines[-1] and (len(lines) < 2 or not lines[-2].strip())


def _format_heading(own_level: int, words: str, level: int) -> str:
    return "#" * min(own_level + level, _MAX_HEADING_LEVEL) + words


# Title, authors and keywords.


def _find_values(session: WorkflowSession, stages: Sequence[StageSpec], placement: FieldPlacement) -> Iterator[str]:
    for stage in stages:
        for field in stage.fields:
            if field.document is placement and is_filled_in(session.data.get(stage.id, {}).get(field.name)):
                yield format_field_value(session.data[stage.id][field.name])


def _find_title(session: WorkflowSession, stages: Sequence[StageSpec]) -> str:
    """Return the title of the work, once the stage that provides it is approved."""
    stage, _, field = session.workflow.title_from.partition(".")
    approved = any(one.id == stage for one in stages)
    given = format_field_value(session.data.get(stage, {}).get(field, "")) if approved else ""
    return given or next(_find_values(session, stages, FieldPlacement.TITLE), "")


def _find_names(session: WorkflowSession, stages: Sequence[StageSpec]) -> Iterator[str]:
    for text in _find_values(session, stages, FieldPlacement.AUTHORS):
        yield from (name.strip() for name in text.split(";") if name.strip())


def _find_keywords(session: WorkflowSession, stages: Sequence[StageSpec]) -> Iterator[str]:
    for text in _find_values(session, stages, FieldPlacement.KEYWORDS):
        yield from (word.strip() for word in re.split(r"[;,]", text) if word.strip())


# Figures and tables.


def _place_exhibits(
    session: WorkflowSession, sections: Sequence[DocumentSection]
) -> tuple[list[DocumentSection], tuple[Exhibit, ...], list[str]]:
    """Return the sections with the exhibits that their text does not place, all exhibits, and the keys of those left out.

    An exhibit goes to the end of the first section that refers to it, else of the section of its own stage.
    """
    shown = {target for section in sections for target in _IMAGE_TARGET.findall(section.text)}
    trailing: dict[str, list[str]] = {}
    unplaced: list[str] = []
    for key, (stage, _) in session.exhibits.items():
        if key in shown:
            continue
        mentions = (section.id for section in sections if key in find_cross_references(section.text))
        own = (
            section.id
            for section in sections
            if section.id == f"{SECTION_PREFIX}{stage}" and section.kind is not SectionKind.REFERENCES
        )
        place = next(mentions, None) or next(own, None)
        if place is None:
            unplaced.append(key)
        else:
            trailing.setdefault(place, []).append(key)
    placed = [replace(section, exhibits=tuple(trailing.get(section.id, ()))) for section in sections]
    exhibits = tuple(one.exhibit for key, one in session.exhibits.items() if key not in unplaced)
    return placed, exhibits, unplaced


# What is missing.


def _find_stage_problems(
    session: WorkflowSession, document: WorkflowDocument, *, has_title: bool
) -> Iterator[DocumentProblem]:
    workflow, phrases = session.workflow, get_phrases(session.workflow.language)
    done = {one.stage for one in session.approved_attempts}
    for stage in workflow.stages:
        if stage.id not in done:
            yield DocumentProblem(
                code="stage_not_approved", message=phrases.problem_stage.format(label=workflow.label(stage))
            )
    for section in document.sections:
        if not section.text and section.kind in (SectionKind.CHAPTER, SectionKind.ABSTRACT):
            yield DocumentProblem(code="section_empty", message=phrases.problem_empty.format(label=section.heading))
    expects_title = workflow.title_from or any(
        field.document is FieldPlacement.TITLE for stage in workflow.stages for field in stage.fields
    )
    if expects_title and not has_title:
        yield DocumentProblem(code="title_missing", message=phrases.problem_title)


def _find_reference_problems(document: WorkflowDocument, phrases: WorkflowPhrases) -> Iterator[DocumentProblem]:
    items = {str(item["id"]): item for item in document.references}
    by_any_key = index_references(document.references)
    cited: set[str] = set()
    for section in document.sections:
        for key in find_citations(_section_text(section, document)):
            if key in by_any_key:
                cited.add(str(by_any_key[key]["id"]))
            else:
                message = phrases.problem_citation.format(key=key, label=section.heading)
                yield DocumentProblem(code="citation_unknown", message=message)
    if items and not document.cites:
        yield DocumentProblem(code="nothing_cited", message=phrases.problem_references)
    for key, item in items.items():
        if document.cites and key not in cited:
            message = phrases.problem_uncited.format(key=key, reference=format_reference(item))
            yield DocumentProblem(code="reference_uncited", message=message)
            continue
        missing = list_missing_details(item)
        if missing:
            details = ", ".join(phrases.details[name] for name in missing)
            message = phrases.problem_details.format(key=key, details=details)
            yield DocumentProblem(code="reference_incomplete", message=message)


def _section_text(section: DocumentSection, document: WorkflowDocument) -> str:
    """Return the text of a section with the captions and cells of its exhibits, which may cite, too."""
    exhibits = {one.key: one for one in document.exhibits}
    texts = [section.text]
    for key in (*section.exhibits, *_IMAGE_TARGET.findall(section.text)):
        if key in exhibits:
            texts += [exhibits[key].caption, *(cell for row in exhibits[key].rows for cell in row)]
    return "\n\n".join(texts)


def _find_exhibit_problems(
    session: WorkflowSession, document: WorkflowDocument, unplaced: Sequence[str], phrases: WorkflowPhrases
) -> Iterator[DocumentProblem]:
    known = {one.key for one in document.exhibits} | {section.id for section in document.sections}
    known |= {anchor for section in document.sections for anchor in _ANCHOR.findall(section.text)}
    referred: set[str] = set()
    for section in document.sections:
        for key in find_cross_references(_section_text(section, document)):
            referred.add(key)
            if key not in known:
                message = phrases.problem_cross_reference.format(key=key, label=section.heading)
                yield DocumentProblem(code="cross_reference_unknown", message=message)
        for target in _IMAGE_TARGET.findall(section.text):
            if target not in known:
                message = phrases.problem_image.format(key=target, label=section.heading)
                yield DocumentProblem(code="image_missing", message=message)
    for exhibit in document.exhibits:
        if exhibit.key not in referred:
            message = phrases.problem_unmentioned.format(key=exhibit.key)
            yield DocumentProblem(code="exhibit_unmentioned", message=message)
    labels = {stage.id: session.workflow.label(stage) for stage in session.workflow.stages}
    for key in unplaced:
        message = phrases.problem_unplaced.format(key=key, label=labels.get(session.exhibits[key].stage, "-"))
        yield DocumentProblem(code="exhibit_unplaced", message=message)


# Markdown.


def render_document(document: WorkflowDocument, *, with_references: bool = True) -> str:
    """Return the document as Markdown with its title, for people to read without a converter.

    Citations are keys. Figures are named by their captions, and references are listed in a plain form.
    """
    phrases = get_phrases(document.language)
    parts = [f"# {document.title}"]
    parts += ["; ".join(document.authors)] if document.authors else []
    parts += [document.institution] if document.institution else []
    for section in document.sections:
        parts.append(f"## {section.heading}")
        parts.append(_demote(_with_exhibits(section, document, phrases)))
        if section.kind is SectionKind.ABSTRACT and document.keywords:
            parts.append(f"**{phrases.keywords}**: {', '.join(document.keywords)}")
        if section.kind is SectionKind.REFERENCES and with_references:
            lines = sorted(
                ((str(item["id"]), format_reference(item)) for item in list_shown_references(document)),
                key=lambda one: one[1].casefold(),
            )
            numbered = enumerate(lines, start=1)
            parts.append(
                "\n".join(
                    f"- [@{key}] {line}" if document.cites else f"{number}. {line}" for number, (key, line) in numbered
                )
            )
    return "\n\n".join(part for part in parts if part) + "\n"


def list_shown_references(document: WorkflowDocument) -> list[CslItem]:
    """Return the references that the bibliography lists: the cited ones, or all if the text cites nothing."""
    if not document.cites:
        return list(document.references)
    cited = {key for section in document.sections for key in find_citations(_section_text(section, document))}
    by_any_key = index_references(document.references)
    shown = {str(by_any_key[key]["id"]) for key in cited if key in by_any_key}
    return [item for item in document.references if item["id"] in shown]


def _demote(text: str) -> str:
    return "\n".join(
        f"#{line}" if not is_code and _HEADING.fullmatch(line) and not line.lstrip().startswith("######") else line
        for line, is_code in iter_lines_with_code_flag(text)
    )


def _with_exhibits(section: DocumentSection, document: WorkflowDocument, phrases: WorkflowPhrases) -> str:
    exhibits = {one.key: one for one in document.exhibits}
    parts = [section.text]
    for key in section.exhibits:
        parts.append(_render_exhibit(exhibits[key], phrases))
    text = "\n\n".join(part for part in parts if part)
    return re.sub(
        r"(?m)^!\[[^\]]*\]\(\s*<?((?:fig|tbl):[\w-]+)>?\s*\)\s*$",
        lambda found: _render_exhibit(exhibits[found[1]], phrases) if found[1] in exhibits else found[0],
        text,
    )


def _render_exhibit(exhibit: Exhibit, phrases: WorkflowPhrases) -> str:
    if not exhibit.columns:
        return f"*{phrases.figure} {exhibit.key}: {exhibit.caption}*"
    lines = [exhibit.columns, tuple("---" for _ in exhibit.columns), *exhibit.rows]
    table = "\n".join(
        f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )
    return f"*{phrases.table} {exhibit.key}: {exhibit.caption}*\n\n{table}"
