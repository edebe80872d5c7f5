"""Which pictures a note embeds."""

import pytest

from lamella.core.artifacts.embeds import embedded_images


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
def test_embedded_pictures_are_found_in_order_each_once(text: str, images: tuple[str, ...]) -> None:
    assert embedded_images(text) == images


@pytest.mark.parametrize("ending", ["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif", "heic", "tif", "tiff"])
def test_every_kind_of_picture_is_known_by_its_ending(ending: str) -> None:
    assert embedded_images(f"![[a.{ending}]]") == (f"a.{ending}",)
    assert embedded_images(f"![](a.{ending.upper()})") == (f"a.{ending.upper()}",)
    assert embedded_images(f"![[a{ending}]]") == ()
