"""Which pictures a note embeds."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.artifacts.embeds import embedded_images, replace_pasted_images


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("![[plan.png]]", ("plan.png",)),
        ("![[plan.png|300]] ![[plan.png#edge]]", ("plan.png",)),
        ("![alt](img/a.jpg)", ("img/a.jpg",)),
        ("![alt](<my image.png>)", ("my image.png",)),
        ('![alt](a.png "title")', ("a.png",)),
        ("![alt](a(1).png)", ("a(1).png",)),
        ("![](https://e.org/chart)", ("https://e.org/chart",)),
        ("![](data:image/png;base64,AAAA)", ("data:image/png;base64,AAAA",)),
        ("![[b.webp]]\n![[a.GIF]]", ("b.webp", "a.GIF")),
        ("![[paper.pdf]] ![[Other note]]", ()),
        ("[[plan.png]] and ![broken](", ()),
        ("```\n![[plan.png]]\n```", ()),
        ("no picture!", ()),
        ("![](http://e.org/chart)", ("http://e.org/chart",)),
        ("![](ftp://e.org/chart)", ()),
        ("![](data:text/plain,a)", ()),
        ("![[a.png?raw=1]] ![](b.png?x#y)", ("a.png?raw=1", "b.png?x#y")),
        ("![[ a.png ]]", ("a.png",)),
        ("![](a.png)\n```\n![](b.png)\n```\n![](c.png)", ("a.png", "c.png")),
        ("![[a.png]] ![](a.png)", ("a.png",)),
    ],
)
def test_embedded_images_are_found_in_order_each_once(text: str, images: tuple[str, ...]) -> None:
    assert embedded_images(text) == images


@pytest.mark.parametrize("ending", ["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif", "heic", "tif", "tiff"])
def test_image_embeds_are_detected_by_extension(ending: str) -> None:
    assert embedded_images(f"![[a.{ending}]]") == (f"a.{ending}",)
    assert embedded_images(f"![](a.{ending.upper()})") == (f"a.{ending.upper()}",)
    assert embedded_images(f"![[a{ending}]]") == ()


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("![a](my image.png)", ("my image.png",)),
        ('![a](my image.png "A title")', ("my image.png",)),
        ("![a](a b (1).png 'A title')", ("a b (1).png",)),
        ("![a](a.png (A title))", ("a.png",)),
        ('![a](<b (2) c.png> "t")', ("b (2) c.png",)),
        ('![a](a.png "not) the end")', ("a.png",)),
        ("![a](deep((er)(st)).png)", ("deep((er)(st)).png",)),
        (r"![a](a\(b.png)", ("a(b.png",)),
        ("![a](my%20image.png)", ("my%20image.png",)),
        ("![a](https://e.org/a?x=1&amp;y=2)", ("https://e.org/a?x=1&y=2",)),
        ("![a]\n(x.png)", ("x.png",)),
        ("![a](\n x.png\n)", ("x.png",)),
        ("![a [link](u) b](x.png)", ("x.png",)),
        ("[![a](x.png)](https://e.org)", ("x.png",)),
        ("![![[x.png]]", ("x.png",)),
        ("| ![[x.png\\|30]] |", ("x.png",)),
        ("> ![[x.png|30x40]]\n> ![](y.png)", ("x.png", "y.png")),
    ],
)
def test_embed_target_may_have_title_spaces_and_parentheses(text: str, images: tuple[str, ...]) -> None:
    assert embedded_images(text) == images


@pytest.mark.parametrize(
    "text",
    [
        "![a][pic]\n\n[pic]: <my pic.png> 'title'",
        "![pic][]\n\n[Pic]: <my pic.png>",
        "[pic]:\n  <my pic.png>\n\n![pic]",
        "![a][the  pic]\n\n[The pic]: <my pic.png>\n[the pic]: other.png",
    ],
)
def test_image_reference_link_is_detected(text: str) -> None:
    assert embedded_images(text) == ("my pic.png",)


@pytest.mark.parametrize(
    "text",
    [
        "`![[x.png]]`",
        "`` ` ![](x.png) ` ``",
        "~~~\n![](x.png)\n~~~",
        "Text\n\n    ![](x.png)\n    ![[x.png]]",
        "%%![[x.png]]%%",
        "%%\n\n![[x.png]]\n\n%%",
        "<!-- ![](x.png) -->",
        "$![](x.png)$",
        "$$\n![](x.png)\n$$",
        r"\![](x.png)",
        r"!\[](x.png)",
        "![a](x.png",
        "![[x.png]",
        "![[x\n.png]]",
        "![a\n\nb](x.png)",
        "![a][gone]",
        "![a] (x.png)",
        "![](script.js) ![[paper.pdf]]",
    ],
)
def test_code_comments_formulas_and_unclosed_embeds_are_ignored(text: str) -> None:
    assert embedded_images(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Costs $5 ![](x.png) and $6",
        "50 %% ![](x.png)",
        "<!-- ![](x.png)",
        "A ` ![](x.png)\n\nB ` C",
        "- item\n\n    ![](x.png)",
        "1. item\n\n\t![[x.png]]",
        "text\n    ![](x.png)",
    ],
)
def test_text_resembling_code_or_comment_hides_no_embed(text: str) -> None:
    assert embedded_images(text) == ("x.png",)


@steady
@given(st.text(alphabet="![]()<>`%$\\\n \"'a-:|#.", max_size=60))
def test_embed_is_found_after_any_text_that_opens_nothing(before: str) -> None:
    found = embedded_images(f"{before}\n\n![[x.png]]")
    opens = re.search(r"%%|<!--|\$\$|```|^ {0,3}\[|^\s*[-]|\\$", before, re.MULTILINE)
    assert found[-1:] == ("x.png",) or opens


# A piece and how often; each opens something that nothing closes.
HOSTILE = [
    *("![", "![[", "![](", "![](a ", "![a][", "``` ` ", "%%", "<!--", "$a ", '![a]("', "[", "![](((", "![]((a)"),
    *("]", "![](<", "![](\\", "[a]: ", "![a](b 'c", "![[a|", "`![](", "![](a\n", "![]\n(", "\n", "![x](()()", "$$"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_parsed_in_linear_time(piece: str) -> None:
    def take(letters: int) -> float:
        text = "![" + piece * (letters // len(piece))
        begun = time.process_time()
        embedded_images(text)
        return time.process_time() - begun

    # Eight times as much takes as long as eight times over; what is quadratic would take eight times that. A sum, since
    # some clocks of a process tick no finer than what a short text takes.
    short = min(sum(take(4_000) for _ in range(8)) for _ in range(2))
    assert min(take(32_000) for _ in range(3)) < 4 * short + 0.02


def test_long_data_url_is_one_embed_and_is_replaced() -> None:
    uri = f"data:image/png;base64,{'iVBORw0KGgo' * 100_000}"
    assert embedded_images(f"before ![pasted]({uri}) after") == (uri,)
    assert replace_pasted_images(f"![pasted]({uri})") == "![pasted](image/png of 1,100,000 characters, left out)"
