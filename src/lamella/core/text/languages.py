"""Languages of Latin letters, told apart by the small words that nearly every text of one has."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

# A word that two of them share tells nothing, and is left out of both.
# fmt: off
_SMALL_WORDS = {
    "English": "the of and to is for that with are this be was were it from by at not but they he she which has have"
    " had will would can been their its you your what when there who how into than then these those",
    "Indonesian": "yang dan dengan untuk ini itu dari pada adalah tidak akan dalam ke oleh sudah telah juga atau karena"
    " ada dapat bisa saat serta lebih sebagai agar kepada antara setelah sebelum tetapi para harus belum secara bahwa"
    " di saya kami kita kamu anda mereka orang hari",
    "German": "der das und ist nicht ein eine einen einem einer mit von zu auf für den dem des sich auch als nach bei"
    " wird wurde werden oder aus sind hat haben durch über unter bleibt im vom zum zur wie"
    " die am ihre sie nur noch kein keine dass wir",
    "Dutch": "het een en van niet dat zijn met voor op te aan er maar om ook werd wordt naar bij heeft hebben deze"
    " worden uit nog wel geen door over zich",
    "French": "le la les des et est un une dans pour que qui sur pas avec ce cette au aux du par plus sont été il elle"
    " nous vous ses leur ont mais ou où",
    "Spanish": "el los las y es una en por con para que no se su al del lo como más pero sus ha fue son este esta"
    " está también desde hasta",
    "Portuguese": "o os as e é um uma em por com para que não se seu sua ao do da dos das no na mais mas foi são este"
    " esta está também pelo pela até",
    "Italian": "il lo gli e è un una in per con che non si su al del della dei delle nel nella più ma ha sono stato"
    " questo questa anche come alla",
    "Turkish": "ve bir bu için ile da de çok daha olarak olan gibi kadar sonra ama değil var ise her en ne mi",
}
# fmt: on
_WORD = re.compile(r"[^\W\d_]+")
# Fewer of them than this tell nothing; a text that is in a language has at least this share of them.
_LEAST, _SHARE = 3, 0.1


def find_foreign(text: str, among: Iterable[str]) -> str | None:
    """The language that a text is in and none of some others is; none where that cannot be told."""
    words = _list_words(text)
    best = _count(words).most_common(2)
    if not best or best[0][1] < max(_LEAST, _SHARE * len(words)) or (len(best) > 1 and best[0][1] < 2 * best[1][1]):
        return None
    every = [_count(_list_words(one)) for one in among]
    # Of a text with as many words of two languages, either may be its own.
    theirs = {language for told in every for language, n in told.items() if n == max(told.values())}
    is_told = any(n >= _LEAST for told in every for n in told.values())
    return best[0][0] if is_told and best[0][0] not in theirs else None


def _list_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _count(words: Iterable[str]) -> Counter[str]:
    languages = _words()
    return Counter(languages[word] for word in words if word in languages)


@cache
def _words() -> dict[str, str]:
    every = Counter(word for words in _SMALL_WORDS.values() for word in words.split())
    return {word: language for language, words in _SMALL_WORDS.items() for word in words.split() if every[word] == 1}
