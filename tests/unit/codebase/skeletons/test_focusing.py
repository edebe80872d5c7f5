"""Shortening a long skeleton to the parts that match a question."""

from lamella.codebase.skeletons import focus_skeleton

SKELETON = "\n".join(
    f"class Bed{number}:\n    def sow_{number}(self): …\n    def water_{number}(self): …" for number in range(50)
)


def test_short_skeleton_is_unchanged() -> None:
    assert focus_skeleton("def a(): …", "anything", max_chars=100) == "def a(): …"


def test_lines_matching_question_keep_enclosing_lines() -> None:
    short = focus_skeleton(SKELETON.replace("water_40", "harvesting"), "Who harvests?", max_chars=120)
    assert "…\nclass Bed40:\n…\n    def harvesting(self): …\n…" in short
    assert len(short) < 200


def test_leftover_space_goes_to_top_level_lines() -> None:
    short = focus_skeleton(SKELETON, "nothing of that", max_chars=100)
    assert short.startswith("class Bed0:\n…\nclass Bed1:\n…")
    assert len(short) < 200
