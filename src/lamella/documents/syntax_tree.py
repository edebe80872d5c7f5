"""Put figures, tables, numbers and cross references into the syntax tree that Pandoc read.

Pandoc itself numbers no figures and knows no references to them. ``complete_tree`` numbers figures, tables and sections in
the order in which they appear, and turns ``@fig:sleep`` into a link with the text "Figure 1".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lamella.core.log.events.compaction import Exhibit
from lamella.core.workflow.phrases import WorkflowPhrases

# A node of the tree is what JSON has: an object with its kind in "t" and its content in "c".
Node = dict[str, Any]
_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|sec):.+")
REFERENCES_CLASS, UNNUMBERED_CLASS = "lamella-references", "unnumbered"


class TreeOptions(Struct, frozen=True, kw_only=True):
    """What a tree is completed with.

    Attributes:
        exhibits: The figures and tables by key.
        image_names: The names of the image files by the keys of their figures.
        numbers_captions: Whether captions begin with "Figure 1"; LaTeX numbers them itself.
        numbers_headings: Whether headings begin with their number, for formats that do not number them.
        links: Whether cross references are links.
    """

    phrases: WorkflowPhrases
    exhibits: Mapping[str, Exhibit]
    image_names: Mapping[str, str]
    numbers_captions: bool = True
    numbers_headings: bool = False
    links: bool = True


def complete_tree(tree: Node, options: TreeOptions) -> Node:
    """Return the tree with figures and tables in place, everything numbered, and cross references resolved.

    The result contains no images but those of the work, no links but those to the web, mail or itself, and no attributes
    but sizes: the text may come from a model, and Pandoc would read files and write code into the document otherwise.
    """
    blocks = tree["blocks"]
    assert isinstance(blocks, list), "a document has blocks"
    labels: dict[str, str] = {}
    completed = list(_Completion(options, labels).complete_blocks(blocks))
    resolved = _resolve(completed, labels, links=options.links)
    return {**tree, "blocks": _restrict(resolved, frozenset(options.image_names.values()))}


class _Completion:
    """Goes through the blocks once, in order, and counts."""

    def __init__(self, options: TreeOptions, labels: dict[str, str]) -> None:
        self._options = options
        self._labels = labels
        self._counts = {"figure": 0, "table": 0}
        self._headings: list[int] = []

    def complete_blocks(self, blocks: list[Node]) -> Iterator[Node]:
        for block in blocks:
            yield from self._complete_block(block)

    def _complete_block(self, block: Node) -> Iterator[Node]:
        content: Any = block.get("c")
        match block["t"]:
            case "Header":
                yield from self._complete_heading(block)
            case "Figure":
                yield self._complete_figure(block)
            case "Table":
                yield self._complete_table(block)
            case "Para" | "Plain":
                yield from self._complete_paragraph(block, content)
            case "BlockQuote" | "Div":
                inner = content if block["t"] == "BlockQuote" else content[1]
                done = list(self.complete_blocks(inner))
                yield {**block, "c": done if block["t"] == "BlockQuote" else [content[0], done]}
            case "BulletList":
                yield {**block, "c": [list(self.complete_blocks(item)) for item in content]}
            case "OrderedList":
                yield {**block, "c": [content[0], [list(self.complete_blocks(item)) for item in content[1]]]}
            case _:
                yield block

    def _complete_heading(self, block: Node) -> Iterator[Node]:
        level, (anchor, classes, pairs), words = block["c"]
        number = ""
        if UNNUMBERED_CLASS not in classes:
            self._headings = [*self._headings[:level], *([0] * (level - len(self._headings)))]
            self._headings[level - 1] += 1
            number = ".".join(map(str, self._headings))
        if anchor:
            title = f'"{_plain_text(words)}"'
            self._labels[anchor] = f"{self._options.phrases.section} {number}" if number else title
        kept = [one for one in classes if one != REFERENCES_CLASS]
        if number and self._options.numbers_headings:
            words = [_text(number), {"t": "Space"}, *words]
        yield {"t": "Header", "c": [level, [anchor, kept, pairs], words]}
        if REFERENCES_CLASS in classes:
            yield {"t": "Div", "c": [["refs", [], []], []]}

    def _complete_paragraph(self, block: Node, inlines: list[Node]) -> Iterator[Node]:
        """Yield a paragraph without its figures, then the figures."""
        images = [one for one in inlines if one["t"] == "Image"]
        kinds = [one["t"] for one in inlines if one["t"] not in ("Space", "SoftBreak")]
        if kinds != ["Image"] or _target(images[0]) not in self._options.exhibits:
            left = [self._describe_image(one) if one["t"] == "Image" else one for one in inlines]
            yield {**block, "c": left}
        for image in images:
            exhibit = self._options.exhibits.get(_target(image))
            if exhibit is not None:
                yield self._make_exhibit(exhibit)

    def _describe_image(self, image: Node) -> Node:
        """Return a cross reference for an image of the work, and a text for any other."""
        target = _target(image)
        if target in self._options.exhibits:
            return make_citation(target, f"@{target}")
        words = _plain_text(image["c"][1]) or target
        return _text(f"[{words}]")

    def _complete_figure(self, block: Node) -> Node:
        (anchor, classes, pairs), caption, blocks = block["c"]
        images = [
            one for inner in blocks if inner["t"] in ("Plain", "Para") for one in inner["c"] if one["t"] == "Image"
        ]
        target = _target(images[0]) if images else ""
        exhibit = self._options.exhibits.get(target)
        if exhibit is not None:
            return self._make_exhibit(exhibit)
        shown = [{"t": "Plain", "c": [self._describe_image(one) for one in images]}]
        words = [*self._number("figure", anchor), *_caption_words(caption)]
        return {"t": "Figure", "c": [[anchor, classes, pairs], [None, [{"t": "Plain", "c": words}]], shown]}

    def _complete_table(self, block: Node) -> Node:
        attributes, caption, *rest = block["c"]
        words = _caption_words(caption)
        if not words and not attributes[0]:
            return block
        numbered = [*self._number("table", attributes[0]), *words]
        return {"t": "Table", "c": [attributes, [None, [{"t": "Plain", "c": numbered}]], *rest]}

    def _make_exhibit(self, exhibit: Exhibit) -> Node:
        """Return a figure or a table of the work as a block."""
        if exhibit.columns:
            return _make_table(exhibit, [*self._number("table", exhibit.key), *_words(exhibit.caption)])
        words = [*self._number("figure", exhibit.key), *_words(exhibit.caption)]
        target = [self._options.image_names.get(exhibit.key, ""), ""]
        image = {"t": "Image", "c": [["", [], [["width", "80%"]]], _words(exhibit.caption), target]}
        caption = [None, [{"t": "Plain", "c": words}]]
        return {"t": "Figure", "c": [[exhibit.key, [], []], caption, [{"t": "Plain", "c": [image]}]]}

    def _number(self, kind: str, anchor: str) -> list[Node]:
        """Count a figure or a table and return the beginning of its caption."""
        self._counts[kind] += 1
        name = self._options.phrases.figure if kind == "figure" else self._options.phrases.table
        label = f"{name} {self._counts[kind]}"
        if anchor:
            self._labels[anchor] = label
        if not self._options.numbers_captions:
            return []
        return [{"t": "Strong", "c": _words(f"{label}.")}, {"t": "Space"}]


# What a text may not contain.

_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:|#)[^\x00-\x20]+", re.IGNORECASE)
_SIZE = re.compile(r"\d{1,5}(?:\.\d{1,5})?(?:%|cm|mm|in|px|pt|em)?")


def _restrict(value: object, image_names: frozenset[str]) -> object:
    """Return a part of the tree without other images, links, attributes and raw code, at any depth."""
    if isinstance(value, list):
        if _is_attributes(value):
            anchor, classes, pairs = value
            kept = [[name, size] for name, size in pairs if name in ("width", "height") and _SIZE.fullmatch(size)]
            return [anchor, classes, kept]
        return [_restrict(one, image_names) for one in value]
    if not isinstance(value, dict):
        return value
    content: Any = value.get("c")
    match value.get("t"):
        case "Image" if _target(value) not in image_names:
            return _text(f"[{_plain_text(content[1]) or _target(value)}]")
        case "Link" if not _ALLOWED_LINK.fullmatch(_target(value)):
            return {"t": "Span", "c": [["", [], []], _restrict(content[1], image_names)]}
        case "RawInline":
            return {"t": "Code", "c": [["", [], []], content[1]]}
        case "RawBlock":
            return {"t": "CodeBlock", "c": [["", [], []], content[1]]}
    return {name: _restrict(one, image_names) for name, one in value.items()}


def _is_attributes(value: list[Any]) -> bool:
    """Return whether a list is the attributes of an element: its id, its classes, and pairs of names and values."""
    if len(value) != 3 or not isinstance(value[0], str) or not all(isinstance(one, list) for one in value[1:]):
        return False
    return all(isinstance(one, str) for one in value[1]) and all(isinstance(one, list) for one in value[2])


# Cross references.


def _resolve(value: object, labels: Mapping[str, str], *, links: bool) -> object:
    """Return a part of the tree in which references to figures, tables and sections are links."""
    if isinstance(value, list):
        return [_resolve(one, labels, links=links) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("t") == "Cite":
        citations = value["c"][0]
        if all(_CROSS_REFERENCE.fullmatch(one["citationId"]) for one in citations):
            return {"t": "Span", "c": [["", [], []], list(_iter_links(citations, labels, links=links))]}
    return {name: _resolve(one, labels, links=links) for name, one in value.items()}


def _iter_links(citations: list[Node], labels: Mapping[str, str], *, links: bool) -> Iterator[Node]:
    for at, one in enumerate(citations):
        key = str(one["citationId"])
        if at:
            yield from ({"t": "Str", "c": ","}, {"t": "Space"})
        prefix, suffix = one["citationPrefix"], one["citationSuffix"]
        yield from [*prefix, {"t": "Space"}] if prefix else []
        label = labels.get(key)
        if label is None or not links:
            yield _text(f"{key}?" if label is None else label)
        else:
            yield {"t": "Link", "c": [["", [], []], _bound(label), [f"#{key}", ""]]}
        yield from suffix


def make_citation(key: str, text: str) -> Node:
    """Return a citation that names the author in the text."""
    citation = {
        "citationId": key,
        "citationPrefix": [],
        "citationSuffix": [],
        "citationMode": {"t": "AuthorInText"},
        "citationNoteNum": 0,
        "citationHash": 0,
    }
    return {"t": "Cite", "c": [[citation], [_text(text)]]}


# Parts of the tree.


def _text(text: str) -> Node:
    return {"t": "Str", "c": text}


def _words(text: str) -> list[Node]:
    """Return a text as words with spaces between them."""
    parts: list[Node] = []
    for word in text.split():
        parts += [{"t": "Space"}, _text(word)] if parts else [_text(word)]
    return parts


def _bound(label: str) -> list[Node]:
    """Return a label as words that no line break divides."""
    return [_text(label.replace(" ", "\u00a0"))]


def shift_headings(blocks: object) -> list[Node]:
    """Return blocks whose headings are one level lower."""
    assert isinstance(blocks, list), "a document has blocks"
    return [{"t": "Header", "c": [one["c"][0] + 1, *one["c"][1:]]} if one["t"] == "Header" else one for one in blocks]


def text_to_inlines(text: str) -> Node:
    """Return a text as a value of the metadata."""
    return {"t": "MetaInlines", "c": _words(text)}


def _target(image: Node) -> str:
    return str(image["c"][2][0])


def _caption_words(caption: object) -> list[Node]:
    blocks = caption[1] if isinstance(caption, list) else []
    return [one for block in blocks if block["t"] in ("Plain", "Para") for one in block["c"]]


def _plain_text(value: object) -> str:
    """Return the words of a part of the tree."""
    if isinstance(value, list):
        return "".join(map(_plain_text, value))
    if isinstance(value, dict):
        kind, content = value.get("t"), value.get("c")
        if kind == "Str":
            return str(content)
        return " " if kind in ("Space", "SoftBreak") else _plain_text(content)
    return ""


_NUMERIC = re.compile(r"[-+\u2212]?[\d.,]+\s*%?")


def _make_table(exhibit: Exhibit, caption: list[Node]) -> Node:
    """Return a table; columns that contain only numbers are aligned to the right."""
    columns = list(zip(*exhibit.rows, strict=True))
    aligned = [
        "AlignRight" if all(_NUMERIC.fullmatch(cell.strip()) or not cell.strip() for cell in cells) else "AlignLeft"
        for cells in columns
    ]
    widths = [[{"t": name}, {"t": "ColWidthDefault"}] for name in aligned]
    head = [["", [], []], [_make_row(exhibit.columns)]]
    body = [["", [], []], 0, [], [_make_row(row) for row in exhibit.rows]]
    return {
        "t": "Table",
        "c": [[exhibit.key, [], []], [None, [{"t": "Plain", "c": caption}]], widths, head, [body], [["", [], []], []]],
    }


def _make_row(cells: tuple[str, ...]) -> list[object]:
    return [
        ["", [], []],
        [[["", [], []], {"t": "AlignDefault"}, 1, 1, [{"t": "Plain", "c": _words(cell)}]] for cell in cells],
    ]
