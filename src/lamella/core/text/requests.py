"""The mood of a sentence: whether it asks for something that holds beyond one answer.

``is_lasting_request`` reads the grammar of a sentence in English, German, Indonesian or Japanese. It looks for

- a request: an imperative, an infinitive or a sentence without a verb, a duty, a wish or a trait of the user;
- and for what makes it last: a denial, a word of scope ("every", "until", "only"), a contrast ("x, not y"), or a word
  for what answers are made of ("sentences", "units"), unless it is one object of a task ("a table", "three sentences").

"Write a poem" is a task, "no poems please" and "write numbers in full" last. What it takes by mistake costs a few words
of the prompt, so it errs on that side.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from lamella.core.text.content import UNSPACED_SCRIPTS


class _Signs(NamedTuple):
    """What makes the request of a sentence last: words of scope, a contrast, words for what answers are made of."""

    scope: bool
    contrast: bool
    named: bool


class _LanguageRule(Protocol):
    """Says whether a sentence of one language asks for something that holds beyond the next answer."""

    def __call__(self, text: str, answers: re.Pattern[str], orders: frozenset[str], *, asked: bool) -> bool: ...


_UNSPACED = re.compile(rf"[{UNSPACED_SCRIPTS}]")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")
_MAX_FRAGMENT_WORDS = 14


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


# Spellings of chats, by language.
_CHAT_SPELLINGS: Mapping[str, Mapping[str, str]] = {
    "en": _pairs(
        "pls:please plz:please u:you ur:your dont:don't im:i'm cant:can't wont:won't doesnt:doesn't shouldnt:shouldn't "
        "ive:i've id:i'd thats:that's"
    ),
    "de": {"nich": "nicht", "net": "nicht", "ned": "nicht", "nix": "nichts", "ne": "eine", "n": "ein"},
    "id": _pairs(
        "tlg:tolong tlong:tolong jgn:jangan jng:jangan kalo:kalau klo:kalau kl:kalau aja:saja aj:saja ga:tidak gak:tidak "
        "nggak:tidak ngga:tidak enggak:tidak tdk:tidak tak:tidak gk:tidak yg:yang utk:untuk buat:untuk pake:pakai gw:saya "
        "gue:saya aku:saya sy:saya lg:lagi dgn:dengan skrg:sekarang bhs:bahasa"
    )
    | {"gausah": "tidak usah"},
}


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{text})(?!\w)", re.IGNORECASE)


# Words of grammar by which a sentence is known to be in a language.
_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": _words(
        "the a an is are i you to of and for it my me on with that please don't no not be when if your have i'm at or as by "
        "this from keep use always never every they we can should only until"
    ),
    "de": _words(
        "der die das und ist ich du nicht ein eine einen einem einer bitte zu mit auf für wenn im den dem mir mich dir keine "
        "kein keinen nur immer nie wir es bei sie von als auch aus oder mal ohne mehr alle jede deine mein"
    ),
    "id": _words(
        "yang dan di ke dari saya kamu anda tidak jangan ya saja kalau pakai ini itu untuk jadi tolong dong lagi semua selalu "
        "setiap dengan dalam mohon sih deh harus kita sudah cukup usah bahasa"
    ),
}


@lru_cache(maxsize=1 << 13)
def is_lasting_request(
    sentence: str, answer_words: tuple[str, ...], order_verbs: tuple[str, ...], *, asked: bool = False
) -> bool:
    """Return whether a sentence asks for something that holds for more than the next answer.

    ``answer_words`` are words for what answers are made of, ``order_verbs`` verb forms that give orders. Quotations in
    the sentence must be blank. ``asked`` says that it was the polite question "could you …?".
    """
    text = " ".join(sentence.replace("\u2019", "'").split())
    if _UNSPACED.search(text):
        return _is_lasting_request_in_japanese(text, answer_words)
    spelled = {name: _spell_out(text, spellings) for name, spellings in _CHAT_SPELLINGS.items()}
    counts = {
        name: sum(word in _FUNCTION_WORDS[name] for word in map(str.lower, _WORD.findall(one)))
        for name, one in spelled.items()
    }
    most = max(counts.values())
    answers = _word_pattern(answer_words)
    orders = _verb_set(order_verbs)
    # A sentence may mix languages.
    return any(
        _LASTING_REQUEST_CHECKS[name](spelled[name], answers, orders, asked=asked)
        for name, count in counts.items()
        if count >= min(most, 2)
    )


def _spell_out(text: str, spellings: Mapping[str, str]) -> str:
    return _WORD.sub(lambda found: spellings.get(found[0].lower(), found[0]), text)


@lru_cache(maxsize=8)
def _word_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    parts = [re.escape(word).replace(r"\*", r"\w*") for word in sorted(words, key=lambda one: (-len(one), one))]
    return _pattern("|".join(parts) or r"(?!)")


@lru_cache(maxsize=8)
def _verb_set(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word.partition(" ")[0].strip("*") for word in words)


def _has_lasting_answer_word(text: str, answers: re.Pattern[str], single: re.Pattern[str]) -> bool:
    """Return whether a text names what answers are made of, other than as the one object of a task."""
    return any(single.search(text[: found.start()]) is None for found in answers.finditer(text))


def _iter_pieces(text: str, edges: re.Pattern[str], openers: re.Pattern[str]) -> Iterator[str]:
    """Yield the clauses of a sentence without the small words that open them."""
    for piece in edges.split(text):
        bare = _without_opening(piece, openers)
        if bare:
            yield bare


def _without_opening(text: str, openers: re.Pattern[str]) -> str:
    bare = text.strip()
    found = openers.match(bare)
    return bare[found.end() :].strip() if found is not None else bare


def has_finite_verb(sentence: str) -> bool:
    """Return whether an English or German sentence has a verb with a subject, as far as small words and endings show."""
    return any(pattern.search(sentence) for pattern in (_EN_FINITE, _EN_PAST, _DE_FINITE, _DE_PAST))


# English.

_EN_EDGES = re.compile(
    r"\s*[,;:()\u2013\u2014!]+\s*|\s-+\s|\s(?:and|but|so|then|because|therefore|hence)\s|^(?:so|then)\s", re.I
)
_EN_OPENERS = re.compile(
    r"(?:(?:and|but|so|also|then|just|please|kindly|ok|okay|oh|btw|hey|hi|actually|well|ah|right|yeah|yes"
    r"|anyway|thx|thanks|maybe"
    r"|now|though|plus|again|lol|one more thing|by the way|from here on|from now on|in future|next time|for \w+"
    r"|(?:can|could|would|will) you(?: please)?)\b[ ,:]*)+",
    re.I,
)
_EN_CLOSED = _words(
    "i we you he she it they this that these those there here the a an my our your his her its their who what which when where "
    "why how if as at in on of to for from with by about after before since and or but not so yes ok is are was were be been am "
    "has have had do does did will would can could should must may might shall all some many most both each every any one two "
    "three four five six seven eight nine ten many few several another other such than then now today tomorrow yesterday very "
    "really quite just also still already even only nobody somebody everybody everyone someone people because while although "
    "maybe perhaps sometimes usually often nothing something everything let's i'm it's that's there's he's she's"
)
_EN_AFTER_VERB = re.compile(
    r"(?:me|us|it|them|the|all|any|every|each|my|your|our|in|on|to|with|as|like|only|at|out|off|up|away|short"
    r"|brief|simple|under"
    r"|things|everything|anything|both|always|no|more|less|for|from)\b",
    re.I,
)
_EN_NEGATIVE = re.compile(r"(?:don't|do not|never|stop|quit|avoid|skip|no|not|less|fewer|enough|leave out)\b", re.I)
_EN_IDIOM = re.compile(
    r"(?:no (?:idea|clue|wonder|problem|worries|way|thanks|doubt|luck|rush|news|sign|one|other|matter|answer"
    r"|reply)|not (?:sure|yet|bad"
    r"|really|much|too|a|the|that|only)|don't (?:worry|know|think|see|have|remember|understand|get it|mind)"
    r"|stop \w+ (?:design|is|was)"
    r"|never (?:mind|heard|seen|been|had|knew|thought)|less than|fewer than|enough (?:is|said|of us))\b",
    re.I,
)
_EN_SCOPE = _pattern(
    r"always|never|ever|every\w*|each|any\w*|all|whenever|wherever|whatever|whichever|until|till|unless|while"
    r"|as long as|throughout"
    r"|from \w+ on(?:wards?)?|from (?:here|now|today)\b.*|going forward|henceforth|next time|in future|the rest of"
    r"|(?:when|if|before|after) (?:i|you|we|there|something|anything|in doubt|unsure|possible|not)"
    r"|only|at most|at least|max(?:imum)?|min(?:imum)?|under \d+|no more|no longer|anymore|any more"
    r"|by default|first(?=\W*(?:$|and|then))|instead|rather"
    r"|straight away|right away|generally|consistently|both|per|next|too|again"
)
_EN_CONTRAST = re.compile(
    r",\s*(?:not|never)\s\w|\binstead of\b|\brather than\b|\blike (?:a|an|i'm|you're)\b|\bas if\b|\bas though\b", re.I
)
_EN_LASTING_VERB = re.compile(
    r"(?:keep|stay|stick|use|assume|treat|pretend|call me|address|speak|talk|pitch|default|remember|act|be"
    r"|let me (?!know|see|think)|remind me|"
    r"round|spell|sign|refer|prefer|favou?r|limit|aim|ask me|ask before|check with me|leave)\b(?! (?:a|an|one"
    r"|this|that|these|those)\b)",
    re.I,
)
_EN_MAKES_ONE = re.compile(
    r"(?:write|create|make|give|tell|show|describe|provide|implement|generate|come up with|design|draft|compose|explain|suggest"
    r"|list|name|imagine|find|recommend|develop|include|add|use|go|try|modify|rewrite|refactor|compare|switch|finish)"
    r"(?: (?:me|us|to|into|in|\w+ly))* (?:an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+|some|the|this|that|these|those"
    r"|any|at least|your|my|each|both|detail)\b",
    re.IGNORECASE,
)
# "Recommend films with subtitles": many of a kind.
_EN_BE_STATEMENT = re.compile(r"be (?:it|so|there|here|back|right|in|at|able|my|that|with)\b", re.IGNORECASE)
_EN_BARE_PLURAL = re.compile(
    r"\w+ (?:me |us |out )?(?:(?!(?:this|these|that|an?|the|my|your|his|her|its|our)\b)\w+ )?"
    r"(?!(?:this|his|its|was|has|does|always|yes|news|across|perhaps)\b)[a-z]{3,}(?<![su])s\b(?! (?:of|for me)\b)",
    re.IGNORECASE,
)
_EN_IN_GENERAL = _pattern(
    r"always|never|every\w*|each time|whenever|from \w+ on(?:wards?)?|future|until|till|unless|when i|if i"
    r"|when you|next (?:time|ones?)|before you|first|only|again"
)
_EN_ONE = re.compile(
    r"\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+|some|another|this|that|these|those|my|his"
    r"|her|their"
    r"|what|which)\s+(?:[\w'-]+\s+){0,2}$",
    re.I,
)
_EN_WISH = re.compile(
    r"\b(?:i|we)(?:'d| would)?(?: really| only| just| strongly| generally| usually| never| rather| much"
    r"| don't| do not| would)*"
    r" (?:want|need|like|love|hate|prefer|dislike|appreciate|expect|can't stand|can't have|can't eat|can't do"
    r"|find|wish)\b",
    re.I,
)
_EN_YOU_VERB = re.compile(r"\b(?:you|your (?:answers?|repl\w+|responses?))\s+(?!\w+ed\b)\w+", re.I)
_EN_YOU_DUTY = re.compile(
    r"\byou(?:'re| are)?(?: only| also| always| never)* (?:should|must|needn't|need|have to|don't (?:have"
    r"|need)|do not (?:have|need)|shouldn't"
    r"|mustn't|ought|to be|may|are to|can (?:just|always|skip|stop|use|drop|leave|call|assume|be))\b",
    re.I,
)
_EN_DUTY = re.compile(r"\b(?:should|must|needs?|have to|has to|ought|shall|goes?|go|works? best)\b", re.I)
_EN_PAST = re.compile(r"\b(?:was|were|had|did|didn't|got|went|came|\w{3,}ed)\b", re.I)
_EN_FINITE = re.compile(
    r"\b(?:is|are|was|were|am|has|have|had|do|does|did|will|would|can|could|should|must|may|might|i|we|he|she"
    r"|they|it|there|who|what"
    r"|which|that|means?|said|says|got|came|went|sells?|left|\w+n't|\w+'(?:s|re|ve|ll|d|m))\b",
    re.I,
)
_EN_PLEASE_END = re.compile(r"\bplease\W*$", re.IGNORECASE)
_EN_NEGATIVE_PHRASE = re.compile(r"(?:no|not|less|fewer|enough)\b", re.IGNORECASE)
_EN_WHOLE = re.compile(r"(?:every|each|all|any)\b", re.IGNORECASE)
_EN_NOT_THAT = re.compile(r"\w+ not (?!sure|yet|bad|really|only|a|the|that)\w+\W*$", re.IGNORECASE)
_EN_ONLY_OUR_WAY = re.compile(r"\b(?:i|we)\b[^.]*\b(?:not|never)\b", re.I)


_POLITE = re.compile(
    r"(?:(?:and|also|oh|ok|okay|please|btw|hey|und|ach|dan|oh iya|super|great|thanks?|danke|makasih)\b[ ,!]*"
    r"|[^,?]{1,25},\s*)*"
    r"(?:(?:can|could|would|will) you(?: please)?\b|would you mind\b|(?:kannst|könntest|würdest"
    r"|magst) du(?: bitte| mir)?\b"
    r"|(?:bisa|bisakah|boleh|bolehkah|maukah)(?: kamu| anda| tolong| nggak| gak)*\b)",
    re.I,
)
_JA_POLITE = re.compile(
    r"(?P<request>.*[てで])(?:くれますか|もらえますか|いただけますか|くれませんか|もらえませんか|いただけませんか"
    r"|くれる|もらえる|くれない|もらっていいですか)[?\uff1f]$"
)


def request_of_polite_question(sentence: str) -> str | None:
    """Return what a question such as "could you use tables?" asks for, or None if it asks something else."""
    text = " ".join(sentence.replace("\u2019", "'").split())
    if japanese := _JA_POLITE.match(text):
        return f"{japanese['request']}ください"
    found = _POLITE.match(text)
    if found is None:
        return None
    rest = text[found.end() :].rstrip("?\uff1f ").strip()
    lead = text[: found.end()].rpartition(",")[0]
    return f"{lead}, {rest}" if lead else rest


def _is_lasting_request_in_english(text: str, answers: re.Pattern[str], orders: frozenset[str], *, asked: bool) -> bool:
    """Return whether a sentence asks in English for something that holds beyond the next answer."""
    signs = _Signs(
        scope=_EN_SCOPE.search(text) is not None,
        contrast=_EN_CONTRAST.search(text) is not None,
        named=_has_lasting_answer_word(text, answers, _EN_ONE),
    )
    pieces = list(_iter_pieces(text, _EN_EDGES, _EN_OPENERS))
    past = _EN_PAST.search(text) is not None
    if not past and _states_english_rule(text, pieces, answers, contrast=signs.contrast):
        return True
    return any(
        _EN_IDIOM.match(piece) is None and _is_english_request(piece, text, answers, orders, signs, past=past)
        for piece in pieces
    ) or _is_english_fragment(text, orders, named=signs.named, contrast=signs.contrast)


def _states_english_rule(text: str, pieces: Sequence[str], answers: re.Pattern[str], *, contrast: bool) -> bool:
    """Return whether a sentence states a wish, a duty of "you" or how answers have to be."""
    return (
        any(_is_english_wish(piece, answers) for piece in pieces)
        or _EN_YOU_DUTY.search(text) is not None
        or any(_is_english_duty(piece, answers) for piece in (text, *pieces))
        or (_EN_WHOLE.match(text) is not None and _EN_DUTY.search(text) is not None)
        or any(_EN_NOT_THAT.search(piece) and not _EN_FINITE.search(piece) for piece in pieces)
        or (contrast and _EN_ONLY_OUR_WAY.match(text) is not None)
    )


def _is_english_request(
    piece: str, text: str, answers: re.Pattern[str], orders: frozenset[str], signs: _Signs, *, past: bool
) -> bool:
    """Return whether a clause is a plea without a verb, refuses something, or is an imperative that lasts."""
    has_verb = _EN_FINITE.search(piece) is not None
    if _EN_PLEASE_END.search(piece) and not has_verb and not _is_task_start(piece, orders):
        return True
    if _EN_NEGATIVE.match(piece) and len(piece.split()) > 1:
        is_phrase = _EN_NEGATIVE_PHRASE.match(piece) is not None
        return not (is_phrase and (has_verb or past))
    if not _is_english_imperative(piece, orders) or _is_english_task(piece, text):
        return False
    return (
        _EN_SCOPE.search(piece) is not None
        or signs.contrast
        or _has_lasting_answer_word(piece, answers, _EN_ONE)
        or _EN_LASTING_VERB.match(piece) is not None
        or _EN_BARE_PLURAL.match(piece) is not None
        or (signs.scope and not _EN_ONE.search(" ".join(piece.split()[1:3]) + " "))
    )


def _is_english_task(piece: str, text: str) -> bool:
    """Return whether a clause asks to make one thing, and does not say that this holds in general."""
    return _EN_MAKES_ONE.match(piece) is not None and _EN_IN_GENERAL.search(text) is None


def _is_english_wish(clause: str, answers: re.Pattern[str]) -> bool:
    """Return whether a clause says what the user wants, in general or of "you"."""
    found = _EN_WISH.search(clause)
    if found is None:
        return False
    wanted = clause[found.end() :]
    return (
        _EN_SCOPE.search(wanted) is not None
        or _has_lasting_answer_word(wanted, answers, _EN_ONE)
        or _EN_CONTRAST.search(wanted) is not None
        or re.match(r"\s*(?:it (?:if|when) )?you\b(?! \w+ed\b)", wanted, re.IGNORECASE) is not None
    )


def _is_english_duty(piece: str, answers: re.Pattern[str]) -> bool:
    """Return whether a clause says how answers have to be, or what "you" write."""
    return (
        _EN_DUTY.search(piece) is not None
        and _has_lasting_answer_word(piece, answers, _EN_ONE)
        and (_EN_YOU_VERB.search(piece) is not None or re.match(r"(?:i|he|she|they|it)\b", piece, re.I) is None)
    )


def _is_english_imperative(piece: str, orders: frozenset[str]) -> bool:
    words = piece.split()
    first = words[0].lower().strip(".,")
    if (first in _EN_CLOSED and first != "be") or len(words) < 2 or _EN_BE_STATEMENT.match(piece):
        return False
    if first in orders:
        # "Use of the pool is free"; "Grandma always cries".
        return re.match(
            r"\S+\s+(?:of|is|was|are|were|has|had|will|by|always|never|the? \w+ (?:is|was))\b", piece, re.I
        ) is None or (re.match(r"\S+\s+(?:always|never)\b", piece, re.I) is not None)
    if not first.isalpha() or re.search(r"(?:ed|ing|s|ly|tion|ment|ness|er|or)$", first):
        return False
    return _EN_AFTER_VERB.match(words[1]) is not None and _EN_FINITE.search(piece) is None


def _is_english_fragment(text: str, orders: frozenset[str], *, named: bool, contrast: bool) -> bool:
    own = _without_opening(text, _EN_OPENERS)
    if not own or len(own.split()) > _MAX_FRAGMENT_WORDS or _EN_FINITE.search(own) or _EN_PAST.search(own):
        return False
    polite = re.search(r"\bplease\b", text, re.I) is not None
    return (
        named
        or contrast
        or (polite and not _is_task_start(own, orders))
        or re.search(r"\b(?:per|each|every)\b", own, re.I) is not None
        or re.search(r"\b(?:only|always|never|throughout)\b(?:,? (?:please|ok|thanks))?[.!]*$", own, re.I) is not None
        or re.search(r"\b(?:at most|no more than|max(?:imum)?\b|only (?:in|with|for|from)|under \d)", own, re.I)
        is not None
    )


def _is_task_start(own: str, orders: frozenset[str]) -> bool:
    return _EN_ONE.search(" ".join(own.split()[:3]) + " ") is not None or own.split()[0].lower() in orders


# German.

_DE_EDGES = re.compile(
    r"\s*[,;:()\u2013\u2014!]+\s*|\s-+\s|\s(?:und|aber|also|deshalb|daher|sondern|denn)\s|^(?:also|deshalb)\s", re.I
)
_DE_OPENERS = re.compile(
    r"(?:(?:und|aber|auch|dann|also|bitte|ok|okay|oh|ach|hey|hi|übrigens|nur|noch|ja|danke|mal|bitte bitte"
    r"|gern|doch|einfach"
    r"|ab jetzt|ab sofort|künftig|in zukunft|nächstes mal)\b[ ,:]*)+",
    re.I,
)
_DE_SUBJECT = _words(
    "ich du er sie es wir ihr man das dies diese dieser der die den ein eine einen mein meine unser unsere sein seine wer was wie wo "
    "wann warum wenn weil dass ob als in im am an auf bei mit für von zu nach aus um hier da dort heute gestern morgen jetzt und "
    "aber oder ja nein nicht niemand jemand alle viele einige letztes letzte jeden jedes nächste seit wegen trotz bis ohne"
)
_DE_FINITE = re.compile(
    r"\b(?:ist|sind|war|waren|wird|werden|wurden?|hat|haben|hatten?|habe|hab|bin|bist|seid|soll|sollen"
    r"|sollten?|will|wollen|wollten?"
    r"|kann|können|konnten?|muss|müssen|mussten?|darf|dürfen|möchten?|bleibt|gibt|gab|fehlt|kommt|kam|steht"
    r"|stand|liegt|kostet"
    r"|braucht|brauche|geht|ging|heißt|sagt|meint|weiß|fand|lief|mag|mögen"
    r"|[a-zäöü]{3,}(?<!nich)(?<!sofor)(?<!direk)(?<!jetz)(?<!ers)(?<!selbs)(?<!fas)(?<!sons)(?<!lau)(?<!komplet)(?<!is)(?<!gu)(?<!rech)"
    r"(?<!leich)(?<!mach)(?<!tex)(?<!punk)(?<!nech)(?<!mi)(?<!seit)(?<!zulet)(?<!stat)(?<!dor)(?<!insgesam)(?<!möglichs)(?<!stets)"
    r"(?<!wor)(?<!forma)(?<!zei)(?<!durchgehen)t)\b"
)
_DE_PAST = re.compile(
    r"\b(?:war|waren|hatte|hatten|wurde|wurden|kam|ging|gab|fand|lief|stand|(?!bitte|heute|zweite|dritte|vierte|fünfte|sechste|siebte|achte|neunte|zehnte|gute|nächste|möchte|könnte"
    r"|sollte|letzte|beste|erste|kurze|leichte|rechte)[a-zäöüß]{2,}(?:te|ten))\b"
)
_DE_NEGATIVE = re.compile(
    r"(?:kein(?:e[nmrs]?)?|nie(?:mals)?|nicht|weniger|schluss mit|genug|ohne|spar(?:e)? dir|lass(?! uns)"
    r"|vermeide?|hör)\b",
    re.I,
)
_DE_IDIOM = re.compile(
    r"(?:kein(?:e)? (?:ahnung|problem|zeit|lust|wunder|sorge|mensch|empfang|ding|chance|thema|geld)"
    r"|nicht (?:so )?(?:schlimm|schlecht|wahr|mehr da|sicher)"
    r"|nie (?:gehört|gesehen|gewesen|probiert))\b",
    re.I,
)
_DE_SCOPE = _pattern(
    r"immer|stets|nie(?:mals)?|jede[nmrs]?(?: mal)?|alle[nmrs]?|jedes mal|grundsätzlich|generell|durchgehend"
    r"|durchgängig|durchweg|konsequent"
    r"|künftig|zukünftig|in zukunft|ab (?:jetzt|sofort|heute|nun|hier|der nächsten)|von (?:jetzt|nun|hier"
    r"|heute) an|nächstes mal|beim nächsten mal"
    r"|nur(?: noch)?|höchstens|maximal|mindestens|bis ich|solange|sobald|falls|wenn (?:ich|du|was|etwas|es"
    r"|möglich|nötig|wir|ein|eine)|wenn's|bevor du|bevor ich|zuerst"
    r"|gleich|direkt|statt|lieber|jeweils|pro|ausschließlich|für den rest|rest|mehr als|erst|vorher|dabei|immer nur"
)
_DE_CONTRAST = re.compile(
    r"\bstatt\b|\bsondern\b|,\s*nicht\s\w|\bund (?:nicht|kein)\b|\bals (?:wäre|ob|hätte)\b|\bwie (?:ein|eine"
    r"|für|mit)\b",
    re.I,
)
_DE_LASTING_VERB = re.compile(
    r"(?:halt(?:e)?|bleib(?:e)?|nutz(?:e)?|nimm|verwende?|benutz(?:e)?|geh davon|tu so|behandle"
    r"|nenn(?:e)? mich|sprich|red(?:e)?|duz(?:e)?|siez(?:e)?"
    r"|gendere?|denk|merk(?:e)? dir|sei|rund(?:e)?|frag(?:e)? (?:mich|nach|vorher|lieber|erst)|achte"
    r"|sag mir (?:ehrlich|immer|gleich|bescheid)"
    r"|schreib(?:e)? (?:mir )?(?:auf|in|ohne|mit|so|nur)|antworte?|erklär(?:e)? (?:mir )?alles)\b",
    re.I,
)
_DE_ONE = re.compile(
    r"\b(?:eine?[nmr]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|\d+|diese[nmrs]?|den|dem|meine?[nmr]?"
    r"|deren|seine?[nmr]?|ihre?[nmr]?|welche[rs]?)"
    r"\s+(?:[\w-]+\s+){0,2}$",
    re.I,
)
_DE_WISH = re.compile(
    r"\bich (?:\w+ ){0,2}?(?:will|möchte|hätte gern|mag|brauche|bevorzuge|hasse|vertrage|esse|trinke|wünsche"
    r"|erwarte|will nicht|lese)\b"
    r"|\b(?:will|möchte|mag|brauche|hätte) ich\b|\bmir (?:ist|wäre|sind|reicht|reichen|genügt|genügen)\b"
    r"|\b(?:reicht|genügt|reichen|genügen) mir\b|\b(?:stört|nervt|irritiert) mich\b",
    re.I,
)
_DE_DUTY = re.compile(
    r"\b(?:soll(?:st|te|ten|en)?|muss|müssen|musst|brauchst|darf|dürfen|darfst|gehört|gehören|kommen|kommt)\b", re.I
)
_DE_YOU_DUTY = re.compile(
    r"\b(?:du (?:sollst|solltest|musst|darfst|brauchst|kannst ruhig)|(?:sollst|musst|darfst|brauchst) du|du bist)\b",
    re.I,
)
_DE_INFINITIVE = re.compile(
    r"\b(?!ihnen|einen|keinen|meinen|deinen|seinen|allen|diesen|jeden|wegen|oben|unten|gegen|zwischen|neben"
    r"|morgen|sieben|zehn|gern)[a-zäöüß]{3,}(?:en|eln|ern)\b\W*(?:bitte|danke|ja|ok(?:ay)?)?\W*$"
)
_DE_PLEASE = re.compile(r"\bbitte\b", re.IGNORECASE)
_DE_WISHED = re.compile(r"\bkeine?|\bwenn du\b|\bdass du\b|\bnicht\b", re.IGNORECASE)
_DE_REFUSES = re.compile(r"\bnicht\b|\bkeine?[nmr]?\b|\bweg\b|\bnichts\b", re.IGNORECASE)
_DE_PRONOUN_FIRST = re.compile(r"(?:ich|er|es|wir)\b", re.IGNORECASE)
_DE_LIMIT = re.compile(
    r"\b(?:höchstens|maximal|mindestens|immer|stets|nie|nur (?:mit|in|auf|als|bei|für))\b", re.IGNORECASE
)
_DE_WE = re.compile(r"wir (?:duzen|siezen|schreiben|nutzen|verwenden|sagen|rechnen|bleiben|nehmen)\b", re.I)


def _is_lasting_request_in_german(text: str, answers: re.Pattern[str], orders: frozenset[str], *, asked: bool) -> bool:
    """Return whether a sentence asks in German for something that holds beyond the next answer."""
    signs = _Signs(
        scope=_DE_SCOPE.search(text) is not None,
        contrast=_DE_CONTRAST.search(text) is not None,
        named=_has_lasting_answer_word(text, answers, _DE_ONE),
    )
    past = _DE_PAST.search(text) is not None
    polite = _DE_PLEASE.search(text) is not None
    if not past and _states_german_rule(text, orders, signs, polite=polite):
        return True
    pieces = list(_iter_pieces(text, _DE_EDGES, _DE_OPENERS))
    if any(
        _DE_IDIOM.match(piece) is None and _is_german_request(piece, answers, orders, signs, past=past)
        for piece in pieces
    ):
        return True
    # "Set quotations in italics" is an infinitive in German; at the end of a polite question it may be a task.
    if any(
        (polite or signs.scope or signs.named or (piece is pieces[-1] and (signs.contrast or not asked)))
        and _is_german_infinitive(piece)
        and (not asked or signs.scope or signs.named or signs.contrast)
        for piece in pieces
    ):
        return True
    if not past and any(_is_german_plea(piece, orders) for piece in pieces[1:]):
        return True
    if _DE_FINITE.search(text) or past or len(text.split()) > _MAX_FRAGMENT_WORDS or _DE_PRONOUN_FIRST.match(text):
        return False
    return signs.named or signs.contrast or _DE_LIMIT.search(text) is not None or (polite and signs.scope)


def _states_german_rule(text: str, orders: frozenset[str], signs: _Signs, *, polite: bool) -> bool:
    """Return whether a sentence states a wish, a duty of "du", how answers have to be, or what a word means."""
    wished = _DE_WISH.search(text) is not None
    return (
        _DE_WE.match(_without_opening(text, _DE_OPENERS)) is not None
        or (wished and (any(signs) or polite or _DE_WISHED.search(text) is not None))
        or _DE_YOU_DUTY.search(text) is not None
        or (signs.named and _DE_DUTY.search(text) is not None and _DE_PRONOUN_FIRST.match(text) is None)
        or (re.match(r"wenn ich\b", text, re.IGNORECASE) is not None and _is_german_condition(text, orders))
    )


def _is_german_request(
    piece: str, answers: re.Pattern[str], orders: frozenset[str], signs: _Signs, *, past: bool
) -> bool:
    """Return whether a clause refuses something or is an imperative that lasts."""
    if _DE_NEGATIVE.match(piece) and len(piece.split()) > 1 and _DE_FINITE.search(piece) is None and not past:
        return True
    return _is_german_imperative(piece, orders) and (
        signs.scope
        or signs.contrast
        or _DE_LASTING_VERB.match(piece) is not None
        or _has_lasting_answer_word(piece, answers, _DE_ONE)
        or _DE_REFUSES.search(piece) is not None
    )


def _is_german_plea(piece: str, orders: frozenset[str]) -> bool:
    """Return whether a clause says "please" and has no verb: "instructions mirrored, please"."""
    return (
        re.search(r"\bbitte\b", piece, re.IGNORECASE) is not None
        and _DE_FINITE.search(piece) is None
        and piece.split()[0].lower() not in orders
    )


def _is_german_infinitive(piece: str) -> bool:
    return _DE_INFINITIVE.search(piece) is not None and _DE_FINITE.search(piece) is None and len(piece.split()) > 1


def _is_german_condition(text: str, orders: frozenset[str]) -> bool:
    rest = text.partition(",")[2].strip()
    first = rest.split()[0].lower() if rest.split() else ""
    return first in orders or re.match(r"(?:dann )?(?:meine|will|möchte|brauche|bitte)\b", rest, re.I) is not None


def _is_german_imperative(piece: str, orders: frozenset[str]) -> bool:
    words = piece.split()
    first = words[0].lower().strip(".,")
    if len(words) < 2 or first in _DE_SUBJECT:
        return False
    second = words[1].lower()
    if second in ("ich", "du", "er", "es", "wir", "ihr", "man"):
        return False
    if first in orders:
        return True
    # A verb comes first, and no other finite verb follows; nouns at the start come before their verb.
    looks = re.search(r"(?:e|[^aeiou\Wsnt]|[lr]n|ss|ß)$", first) is not None and not first.endswith(
        ("ung", "heit", "keit", "er", "el")
    )
    follows = re.match(
        r"(?:mir|mich|uns|dir|dich|den|die|das|dem|alle\w*|keine\w*|auf|in|im|bei|mit|ohne|mal|bitte|immer"
        r"|nie|nur|lieber|so|es|sie|erst|vorher|nicht|jede\w*|beim|für|zu|am|stets|davon|nach|vor|aus|um|bis|an|durch|über|unter)$",
        second,
    )
    return looks and follows is not None and _DE_FINITE.search(" ".join(words[1:])) is None


# Indonesian.

_ID_EDGES = re.compile(
    r"\s*[,;:()\u2013\u2014!]+\s*|\s-+\s|\s(?:dan|tapi|tetapi|jadi|lalu|karena|soalnya|makanya)\s|^(?:jadi)\s", re.I
)
_ID_OPENERS = re.compile(
    r"(?:(?:dan|tapi|jadi|lalu|juga|oh iya|oh|ok|oke|eh|btw|makasih|terima kasih|ya|hai|halo|kak|min|nah|terus|coba"
    r"|tolong|mohon|harap|lain kali|lain waktu|mulai sekarang|pokoknya|please)\b[ ,:]*)+",
    re.I,
)
_ID_PLEA = _pattern(r"tolong|mohon|harap|please|dong|ya")
_ID_NEGATIVE = _pattern(r"jangan|(?:tidak|nggak) (?:usah|perlu)|hindari|tanpa|dilarang|tak usah")
_ID_SUBJECT_BEFORE = re.compile(
    r"(?:^|\s)(?:dia|mereka|ia|beliau|kami|orang|anak|adik|kakak|ibu|ayah|bapak|saya|dokter)\s+(?:\w+\s+){0,2}$", re.I
)
_ID_IDIOM = re.compile(r"jangan-jangan|jangan (?:khawatir|sedih|takut|sampai|lupa makan)", re.I)
_ID_SCOPE = _pattern(
    r"selalu|setiap|tiap|semua|seluruh|segala|apa ?pun|kapan ?pun|siapa ?pun|mulai (?:sekarang|detik|hari"
    r"|saat)\b.*|ke depan(?:nya)?|kedepannya|seterusnya"
    r"|lain (?:kali|waktu)|berikutnya|selanjutnya|cukup|hanya|cuma|maksimal|minimal|maks|paling (?:banyak"
    r"|lama|panjang)|selama|sampai|sebelum|kalau|jika|bila|setelah"
    r"|dulu|langsung|konsisten|saja|lagi|biarkan|terus|satu per satu|per|pokoknya|lebih dulu|duluan"
)
_ID_CONTRAST = re.compile(r"\bbukan\b|\bdaripada\b|\bketimbang\b|\bseperti\b|\bkayak\b|\bseolah", re.I)
_ID_ONE = re.compile(
    r"\b(?:satu|dua|tiga|empat|lima|enam|tujuh|delapan|sembilan|sepuluh|sebuah|seekor|se\w+|\d+|sebutkan"
    r"|buatkan|bikinin|bikin|buat|carikan|cari|tuliskan|hitung)\s+(?:[\w-]+\s+){0,1}$",
    re.I,
)
_ID_WISH = _pattern(
    r"(?:saya|kami) (?:\w+ )?(?:mau|ingin|pengen|pengin|maunya|lebih suka|lebih senang|suka|tidak suka"
    r"|tidak mau|tidak bisa makan|tidak makan|alergi|vegetarian|diabetes|buta warna|butuh|pengennya|perlu)"
    r"|maunya|pengennya|inginnya|sebaiknya|enaknya"
)
_ID_TRAIT = re.compile(r"\bsaya\b.*\b(?:jadi|makanya|karena itu|sehingga)\b", re.I)
_ID_DUTY = _pattern(r"harus|wajib|mesti|perlu|sebaiknya|hendaknya|boleh")
_ID_PASSIVE = re.compile(
    r"\b(?:di(?:tulis|sebut|beri|kasih|buat|jawab|pakai|urut|jelas|terjemah|bulat|singkat|sampai|tambah"
    r"|lampir|cantum|mulai|akhir|format|hitung|baca"
    r"|ganti|ubah|bahas|rangkum|ringkas|tandai|panggil|rapi|sesuai|satu|serta|sarankan|kirim|taruh|letak"
    r"|simpan)\w*)\b",
    re.I,
)
_ID_PAST = _pattern(r"kemarin|tadi|sudah|telah|dulu(?:nya)? (?:saya|dia|kami)|barusan")
_ID_LASTING_VERB = re.compile(
    r"(?:pakai\w*|gunakan\w*|panggil|sebut saya|anggap\w*|hindari|utamakan|biasakan|pastikan|ingat\w*"
    r"|konsisten|jawab\w*|balas\w*|bahasa|ngomong|bicara\w*|koreksi|tanya\w*|kasih tahu|bilang)\b",
    re.I,
)


_ID_DOUBLED = re.compile(r"(\w{3,})2\b")
_ID_PERSON_FIRST = re.compile(r"(?:saya|dia|kami|kita|mereka|ia|beliau|adik|kakak|ibu|ayah|bapak)\b", re.IGNORECASE)
_ID_CONDITION = re.compile(r"(?:kalau|jika|bila|sebelum|selama|setelah|setiap|tiap)\b", re.IGNORECASE)
_ID_IMPERATIVE = re.compile(r"[a-z]{3,}(?:kan|lah|in)")
_ID_WHOLE = re.compile(r"(?:setiap|tiap|semua)\b", re.IGNORECASE)
_ID_OF_YOU = re.compile(r"\bkamu\b|dipanggil", re.IGNORECASE)
_ID_ALWAYS = re.compile(r"\bselalu\b", re.IGNORECASE)
_ID_OBJECT_FIRST = re.compile(r"\w{3,}nya \w{3,}kan\b", re.IGNORECASE)
_ID_LIMIT = re.compile(r"\b(?:maksimal|maks|paling (?:banyak|lama|panjang)|cukup|hanya)\b", re.IGNORECASE)


def _is_lasting_request_in_indonesian(
    text: str, answers: re.Pattern[str], orders: frozenset[str], *, asked: bool
) -> bool:
    """Return whether a sentence asks in Indonesian for something that holds beyond the next answer."""
    text = _ID_DOUBLED.sub(r"\1", text)
    if _ID_PAST.search(text) or _ID_IDIOM.search(text):
        return False
    signs = _Signs(
        scope=_ID_SCOPE.search(text) is not None,
        contrast=_ID_CONTRAST.search(text) is not None,
        named=_has_lasting_answer_word(text, answers, _ID_ONE),
    )
    plea = _ID_PLEA.search(text) is not None
    refused = _ID_NEGATIVE.search(text)
    if refused is not None and _ID_SUBJECT_BEFORE.search(text[: refused.start()]) is None:
        return True
    if _states_indonesian_rule(text, signs, plea=plea):
        return True
    if any(
        _is_indonesian_request(piece, answers, orders, signs) for piece in _iter_pieces(text, _ID_EDGES, _ID_OPENERS)
    ):
        return True
    if _ID_PERSON_FIRST.match(text) or len(text.split()) > _MAX_FRAGMENT_WORDS:
        return False
    return (
        _ID_LIMIT.search(text) is not None
        or _ID_OBJECT_FIRST.match(text) is not None
        or (plea and _ID_ALWAYS.search(text) is not None)
        or (signs.named and (plea or signs.contrast or signs.scope))
    )


def _states_indonesian_rule(text: str, signs: _Signs, *, plea: bool) -> bool:
    """Return whether a sentence states a wish, a trait, a duty or, in the passive voice, how answers have to be."""
    wished = _ID_WISH.search(text) is not None
    trait = _ID_TRAIT.search(text) is not None
    duty = _ID_DUTY.search(text) is not None
    passive = _ID_PASSIVE.search(text) is not None and _ID_PERSON_FIRST.match(text) is None
    return (
        (
            wished
            and (
                signs.named or signs.contrast or (signs.scope and plea) or trait or _ID_OF_YOU.search(text) is not None
            )
        )
        or (signs.named and (trait or duty))
        or (duty and _ID_WHOLE.match(text) is not None)
        or (passive and (signs.named or plea or signs.scope))
    )


def _is_indonesian_request(piece: str, answers: re.Pattern[str], orders: frozenset[str], signs: _Signs) -> bool:
    """Return whether a clause is an imperative that lasts; a condition is none."""
    if _ID_CONDITION.match(piece):
        return False
    lasting = _ID_LASTING_VERB.match(piece) is not None
    first = piece.split()[0].lower().strip(".,")
    if not (lasting or first in orders or _ID_IMPERATIVE.fullmatch(first)):
        return False
    return lasting or signs.scope or signs.contrast or _has_lasting_answer_word(piece, answers, _ID_ONE)


# Japanese.

_JA_REQUEST = re.compile(
    r"(?:て|で)(?:ください|下さい|くださいね|ほしい(?:です)?|欲しい(?:です)?|ね|よ|や|くれ|くれると(?:助かる"
    r"|助かります|嬉しい|うれしい|ありがたい)(?:です)?|もらえると\w*|もらいたい(?:です)?|いただけると\w*"
    r"|いただきたい(?:です)?|頂戴|ちょうだい|おいて(?:ください|ね)?|いこう|いきましょう)?(?:ね|よ)?$"
    r"|(?:お願い|おねがい|頼む|頼みます|よろしく)(?:します|いたします|ね|です)?$|こと(?:。)?$"
    r"|ように(?:して)?(?:ください|ね|ほしい)?$|(?:禁止|厳禁|不要|無用|なし|抜き|NG)(?:です|で)?(?:ね|よ)?$"
    r"|(?:いらない|要らない|いりません|いい|良い|よい|結構|大丈夫|十分|充分)(?:です)?(?:ね|よ|から)?$"
    r"|ましょう$|[おこそとのほもよろごぞどぼぽ]う$|なさい$|[すくむるぐつぬぶう]な(?:よ)?$"
    r"|(?:だけ|のみ|以内|まで|中心|優先|基本|表記|形式|口調|語|調|順|式)(?:で|に)?(?:ね|よ)?$|が(?:好き|好み"
    r"|いい|助かる|助かります|嬉しい|ありがたい)(?:です)?$|(?:でも|く)(?:て)?いいよ$"
)
_JA_NEGATIVE = re.compile(
    r"ないで|なくて(?:も)?(?:いい|良い|よい|大丈夫|結構)|ずに|やめて|止めて|なし|抜き|禁止|不要|いらない"
    r"|要らない|避けて|控えて|省いて|省略|抜いて|使うな|二度と|[るくすむうつぶぐ]な(?:よ)?[。!\uff01]?$"
)
_JA_SCOPE = re.compile(
    r"毎回|常に|いつも|必ず|今後|これから|以後|以降|この先|ずっと|次回|次から|今日から|今から|たびに|度に"
    r"|全部|すべて|全て|どんな|なるべく|できるだけ|絶対|基本|だけ|のみ|まず|最初に|最後に|先に|すぐ|遠慮なく"
    r"|正直|勝手に|間"
    r"|(?:とき|時|場合|際)(?:は|に|には)|(?:たら|れば|なら)|まで|以内|以上|ごと|一切|統一|ても"
)
_JA_TOPIC = re.compile(r"(?:は|には|では|のは|とは|のことは|も)(?!い)")
_JA_MANNER = re.compile(
    r"[くに]で?(?:答え|教え|説明|書|話|返|し|まと)|で(?:お願い|頼|教え|答え|説明|話|書|統一|表記|返|して)|弁"
    r"|語で|調で|口調|めに|らしく|っぽく|ように|風に"
)
_JA_ONE = re.compile(
    r"(?:この|その|あの|次の|上の|下の|以下|これを|それを|一つ|二つ|三つ|[一二三四五六七八九十\d]+(?:つ|個|件"
    r"|軒|冊|本|枚|泊|人|日間|種類))"
)
_JA_STATEMENT = re.compile(
    r"(?:た|ました|でした|ている|ています|てる|てた|そうだ|らしい|だって|んだ|のだ|ます|です|だ|ない)(?:よ|ね"
    r"|けど|が)?$"
)
_JA_END_MARKS = re.compile(r"[\s。.!\uff01\u301c\uff5e~♪笑w\uff57」)\uff09]+$")
_JA_PAST = re.compile(
    r"(?:でした|(?<!ま)(?<!あな)(?<!ふ)(?<!う)た|とのこと|そうです|らしい)(?:よ|ね|けど|んだ|んだけど|のだ"
    r"|です|から)?$"
)


def ends_in_japanese_past(sentence: str) -> bool:
    """Return whether a Japanese sentence tells what was or what somebody said, whatever orders it contains."""
    bare = _JA_END_MARKS.sub("", sentence)
    return _UNSPACED.search(bare) is not None and _JA_PAST.search(bare) is not None


def _is_lasting_request_in_japanese(text: str, answer_words: tuple[str, ...]) -> bool:
    """Return whether a sentence asks in Japanese for something that holds beyond the next answer."""
    bare = _JA_END_MARKS.sub("", text)
    clauses = [one for one in re.split(r"[、,。]", bare) if one]
    if not clauses:
        return False
    if _JA_PAST.search(bare):
        return False
    asks = _JA_REQUEST.search(bare) is not None or any(
        _JA_REQUEST.search(one) and _JA_NEGATIVE.search(one) for one in clauses
    )
    # The request may come before what it is about: "no polite forms, from now on".
    if not asks and len(clauses) > 1 and _JA_SCOPE.search(clauses[-1]):
        asks = _JA_REQUEST.search(clauses[-2]) is not None
    if not asks and re.search(r"[でくに]$", bare) and _JA_TOPIC.search(bare):
        asks = True
    if not asks:
        return False
    named = any(word in bare for word in answer_words if _UNSPACED.search(word))
    scope, refused = _JA_SCOPE.search(bare) is not None, _JA_NEGATIVE.search(bare) is not None
    if scope or refused:
        return True
    if _JA_ONE.search(bare):
        return False
    lasting = _JA_TOPIC.search(bare) is not None or _JA_MANNER.search(bare) is not None
    has_object = re.search(r"を", bare) is not None
    if has_object and not lasting:
        return False
    return lasting or (named and not has_object)


_LASTING_REQUEST_CHECKS: Mapping[str, _LanguageRule] = {
    "en": _is_lasting_request_in_english,
    "de": _is_lasting_request_in_german,
    "id": _is_lasting_request_in_indonesian,
}
