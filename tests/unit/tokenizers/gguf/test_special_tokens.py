"""Marks of a chat format inside text are broken; everything else stays as it is."""

from lamella.tokenizers.gguf import load_special_token_escaper, make_special_token_escaper


def test_special_token_is_escaped_after_first_character() -> None:
    as_text = make_special_token_escaper(["<|im_end|>", "<|im_start|>", "</s>", "x"])
    assert as_text("a <|im_end|></s> x <b>") == "a <\u200b|im_end|><\u200b/s> x <b>"
    assert as_text(as_text("<|im_start|>")) == as_text("<|im_start|>")


def test_nested_special_token_is_escaped() -> None:
    as_text = make_special_token_escaper(["[[A]", "[A]"])
    assert as_text("[[A]") == "[\u200b[\u200bA]"


def test_missing_file_escapes_nothing() -> None:
    assert load_special_token_escaper(None)("<|im_end|>") == "<|im_end|>"
