"""Irregular forms: what no rule of endings leads back to the word that it is a form of."""

from functools import cache

# Each word and its forms; a form may be one of several words. Regular ones are left to the stemmer.
# fmt: off
_ENGLISH = (
    # Verbs
    "arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became"
    "|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred"
    "|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came"
    "|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven"
    "|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|fly flew flown"
    "|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten"
    "|give gave given|go went gone goes|grind ground|grow grew grown|hang hung|hear heard|hide hid hidden"
    "|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|leave left"
    "|lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|mistake mistook mistaken"
    "|overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said"
    "|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown"
    "|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|sow sown"
    "|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spring sprang sprung|stand stood"
    "|steal stole stolen|stick stuck|sting stung|strike struck stricken|strive strove striven|swear swore sworn"
    "|sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told"
    "|think thought|throw threw thrown|tread trod trodden|understand understood|undo undid undone|wake woke woken"
    "|wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|wring wrung"
    "|write wrote written|rewrite rewrote rewritten|rebuild rebuilt|resend resent|foresee foresaw foreseen"
    # More than one
    "|calf calves|child children|die dice|elf elves|foot feet|goose geese|half halves|hoof hooves|knife knives"
    "|leaf leaves|life lives|loaf loaves|louse lice|man men|mouse mice|ox oxen|person people|scarf scarves"
    "|self selves|shelf shelves|thief thieves|tooth teeth|wife wives|wolf wolves|woman women"
    "|alumnus alumni|analysis analyses|appendix appendices|axis axes|bacterium bacteria|basis bases|cactus cacti"
    "|crisis crises|criterion criteria|curriculum curricula|datum data|diagnosis diagnoses|erratum errata|focus foci"
    "|fungus fungi|hypothesis hypotheses|index indices|larva larvae|matrix matrices|medium media|nucleus nuclei"
    "|phenomenon phenomena|radius radii|stimulus stimuli|synthesis syntheses|thesis theses|vertex vertices"
    # More, and most
    "|bad worse worst|big bigger biggest|fat fatter fattest|far further furthest farther farthest|fit fitter fittest"
    "|good better best|hot hotter hottest|red redder reddest|sad sadder saddest|thin thinner thinnest"
    "|wet wetter wettest"
)
# Words of one syllable, before which Indonesian puts more than the stemmer takes away: mengecat, pengecatan, dicek.
_SHORT = frozenset(
    ["bom", "bor", "cap", "cas", "cat", "cek", "cor", "lap", "las", "lem", "pak", "pel", "pos", "rem", "sah", "tes"]
)
# fmt: on
_BEFORE_SHORT = ("menge", "penge", "di")
_BEHIND = ("", "kan", "i", "an", "nya", "annya", "kannya")
_CAUSED = ("diper", "memper")
# What is left when a beginning is taken away that the stemmer takes for a longer one: memasak, menyanyi, bertemu.
_LESS = (("mem", "m"), ("pem", "m"), ("meny", "ny"), ("peny", "ny"), ("ber", ""), ("ter", ""))
_LEAST = 4
_VOWELS = frozenset("aeiou")


def list_words(form: str) -> tuple[str, ...]:
    """The words of English that something is an irregular form of; none for nearly all."""
    return _words().get(form, ())


@cache
def _words() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for listed in _ENGLISH.split("|"):
        word, *forms = listed.split()
        for form in forms:
            found[form] = (*found.get(form, ()), word)
    return found


def list_roots(form: str, stem: str) -> list[str]:
    """What an Indonesian word may be a form of beyond its ``stem``, where that is not all that a beginning hides."""
    roots = [
        root
        for before in _BEFORE_SHORT
        if form.startswith(before)
        for root in _SHORT
        if form.startswith(root, len(before)) and form[len(before) + len(root) :] in _BEHIND
    ]
    if form.startswith(_CAUSED) and stem.startswith("per") and len(stem) - 3 >= _LEAST:
        roots.append(stem[3:])
    for before, kept in _LESS:
        rest = form[len(before) :]
        if form.startswith(before) and len(rest) >= _LEAST and (not kept or rest[0] in _VOWELS):
            roots.append(kept + rest)
    return roots
