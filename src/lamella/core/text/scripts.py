"""Scripts written without spaces: in them a word has no edges, so that each character counts as one."""

# Thai and Lao, Burmese, Khmer, kana, Han and its extensions, half-width kana; the inside of a character class.
WIDE = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)

# Before and after whatever must not be part of a longer word; a neighbour of a wide script is no part of it.
WORD_STARTS = rf"(?<![^\W{WIDE}])"
WORD_ENDS = rf"(?![^\W{WIDE}])"
