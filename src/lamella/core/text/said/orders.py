"""Orders: what in a text tells whoever reads it what to do, by a closed list.

English and Indonesian; what sets earlier instructions aside, and "you must", in other languages as well.
"""

import re
from functools import cache

# An order begins a line, a sentence or a clause of its own; told of somebody, it stands behind who it was.
_LEADS = (
    r"(?:(?:as\s+a\s+|friendly\s+)?reminder|remember|important|note|nb|n\.b\.|attention|warning|urgent|caution|please|now|next"
    r"|then|also|first|finally|instead|going\s+forward|in\s+future|penting|catatan|ingat|perhatian|tolong|harap|mohon"
    r"|selanjutnya|lalu|sekarang)"
)
_BEGINS = (
    r"(?:^|[.!?;\u2026|]\s++|[\u2013\u2014]\s*+|,\s++(?:and|but|so|dan|jadi)\s++|<!--\s*+|\]\s++)"
    r"[ \t>#]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t*_]*+)?+(?:\[[ xX]?\][ \t*_]*+)?+"
    rf"(?:{_LEADS}[*_]*+[,:!.\u2013\u2014-]*+\s*+[*_]*+\s*+){{0,3}}"
)
_EARLIER = r"(?:earlier|previous|prior|above|preceding|former|system|your|sebelumnya|di atas)"
_GIVEN = r"(?:instructions?|rules?|prompts?|messages?|guidelines?|orders?|context|instruksi|aturan|perintah|pesan)"
_DUTY = (
    r"(?:must|should|shall|will|may|need\s+to|have\s+to|ought\s+to|are\s+(?:now|allowed|required|free|told|to\b|no\s+longer)"
    r"|(?:can|may)\s+(?:now|ignore|disregard|forget)|have\s+no\s+(?:restrictions?|limits?|rules?)"
    r"|harus|wajib|sekarang|boleh|diminta|diwajibkan|perlu)"
)
_DEEDS = (
    r"(?:answer|reply|respond|say|tell|reveal|mention|disclose|share|obey|follow|trust|use|call|run|delete|send|ask|include"
    r"|jawab|katakan|gunakan|kirim|hapus|sebut|beri\s*tahu|balas|ikuti|turuti|percaya|ungkap)"
)
_WHO = r"(?:assistant|model|reader|ai|chatbot|bot|asisten)"
# To set aside, and what was given, in German, Dutch, French, Spanish, Portuguese and Italian.
_ASIDE = (
    r"(?:ignorier\w*|missacht\w*|vergiss|vergesst|vergessen\s+sie|negeer|vergeet|ignorez|ignore[rs]?|oublie[zr]?|ignora[dr]?"
    r"|olvid[ae]\w*|esque[cç]a\w*|desconsider\w*|ignori|dimentic\w*)"
)
_BEFORE = (
    r"(?:anweisung\w*|anleitung\w*|instructies?|instructions?|consignes?|instruccion\w*|instru[cç][oõ]es|istruzion\w*"
    r"|regeln?|regels|r[eè]gles?|reglas?|regras?|regole)"
)
# The same in Russian, Turkish, Arabic, Chinese and Japanese, whose words stand in their own order.
_ELSEWHERE = (
    r"(?:игнорируй\w*|проигнорируй\w*|забудь\w*)[^.\n]{0,40}(?:инструкци|указани|правил)\w*"
    r"|\b(?:talimat|kural|yönerge)\w*[^.\n]{0,30}\b(?:yok\s+say|unut|görmezden|dikkate\s+alma)\w*"
    r"|(?:تجاهل|انس)[^.\n]{0,40}(?:التعليمات|تعليمات|الأوامر|القواعد)"
    r"|(?:忽略|无视|無視|忽視|忘记|忘記)[^。\n]{0,20}(?:指示|指令|说明|說明|规则|規則|提示)"
    r"|(?:指示|命令|ルール|規則)[^。\n]{0,20}(?:無視|忘れ)"
)
# Deeds that German tells somebody to do: its bullets tell of things, and begin with a noun.
_GERMAN_DEEDS = (
    "antworte|antworten\\s+sie|befolge|beginne|gib|ignoriere|l[oö]sche|missachte|nenne|nutze|sage?|schicke|schreibe|sende"
    "|tu|verrate|vergiss|verwende|vertraue"
)
_ORDERS = (
    rf"\b(?:ignore|disregard|forget|override|bypass|discard)\s+(?:all\s+|any\s+|every\s+)?(?:of\s+)?(?:the\s+|your\s+|those\s+)?"
    rf"(?:{_EARLIER}\s+)+{_GIVEN}",
    rf"\b(?:ignore|disregard|forget|override|bypass|discard|drop|abandon)\s+(?:all\s+|any\s+)?(?:the\s+|your\s+|those\s+)?{_GIVEN}"
    r"\s+(?:above|before|so\s+far|until\s+now|given\s+(?:above|before|earlier))\b",
    rf"\b(?:drop|abandon|set\s+aside|throw\s+out)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:{_EARLIER}\s+)+{_GIVEN}",
    _ELSEWHERE,
    rf"{_BEGINS}(?:bitte\s+)?(?:{_GERMAN_DEEDS})\b",
    # Whoever is asked politely is asked; of what was told, nobody is.
    rf"{_BEGINS}(?:please|kindly|bitte|por\s+favor|per\s+favore|s['\u2019]il\s+(?:vous|te)\s+pla[iî]t|tolong|harap|mohon(?!\s+maaf))"
    r",?\s+\w",
    rf"{_BEGINS}let(?:['\u2019]s|\s+us)\s",
    rf"\b(?:abaikan|lupakan|hiraukan)\s+(?:semua\s+|seluruh\s+)?{_GIVEN}",
    rf"{_BEGINS}{_ASIDE}\b[^.\n]{{0,40}}\b{_BEFORE}\b",
    rf"\b(?:{_EARLIER})\s+{_GIVEN}\s+(?:(?:is|are|were)\s+(?:now\s+)?(?:void|invalid|cancell?ed|revoked|lifted|obsolete|off)|(?:do|does)"
    r"\s+not\s+(?:apply|count|hold)|don['\u2019]t\s+(?:apply|count|hold)|no\s+longer\s+(?:apply|count|hold)|no\s+longer\s+applies)",
    rf"{_BEGINS}(?:(?:dear\s+)?{_WHO}\s*[,:]\s*)?(?:ignore|disregard|forget|override|bypass|abaikan|lupakan|hiraukan)\b",
    rf"{_BEGINS}(?:you|kamu|anda)\s+{_DUTY}\b",
    rf"{_BEGINS}(?:du\s+(?:musst|sollst)|sie\s+m[uü]ssen|je\s+moet|u\s+moet|tu\s+dois|vous\s+devez|debes|debe\s+usted|tienes\s+que"
    r"|voc[eê]\s+deve|devi|deve)\b",
    r"\b(?:imperative|essential|crucial|vital|required|important|mandatory|necessary)\s+(?:that|for)\s+you\b",
    rf"{_BEGINS}your\s+(?:new\s+|only\s+|next\s+|real\s+)?(?:task|job|role|goal|mission|duty|persona)\s+(?:is\s+(?:now|to)|will\s+be|now)\b",
    r"\bit\s+is\s+(?:now\s+)?your\s+(?:task|job|role|duty)\b|\btugas(?:mu|\s+anda|\s+kamu)\s+(?:adalah|sekarang)\b",
    rf"{_BEGINS}(?:from\s+(?:now|here|this\s+point)\s+on(?:wards?)?|henceforth|mulai\s+sekarang|mulai\s+dari\s+sekarang)\b",
    # What never happened is told, not ordered.
    rf"{_BEGINS}(?:always|never)\s+(?!(?:the|an?|in|on|so|\w+(?:ed|en|n|t|s))\b)[a-z]{{2,}}\b",
    rf"{_BEGINS}(?:trust\s|stop\s+\w+ing\b)|\bnote\s+to\s+(?:the\s+)?{_WHO}\b",
    rf"{_BEGINS}(?:always|never|do\s+not|don['\u2019]t|only|selalu|jangan(?:\s+pernah)?)\s+{_DEEDS}\w*\b",
    rf"{_BEGINS}going\s+forward,?\s+{_DEEDS}\b|{_BEGINS}(?:make\s+sure\s+(?:to|that\s+you|you)|be\s+sure\s+to|ensure\s+(?:that\s+)?you)\b",
    rf"{_BEGINS}(?:harap|mohon|tolong)\s+{_DEEDS}\w*\b|{_BEGINS}(?:kirimkan|hapuslah|jawablah|katakanlah|gunakanlah|ikutilah|turuti)\b",
    rf"{_BEGINS}(?:reveal|pretend|act\s+as|obey|execute|(?:respond|answer|reply)\s+only|send\s+the|delete\s+(?:all|every|the))\b",
    rf"{_BEGINS}(?:send|delete|remove|erase|wipe|drop|run|call|pay|transfer|e?mail|forward)\s[^.\n]{{1,60}}\b(?:now|immediately|at\s+once|right\s+away)\b",
    rf"{_BEGINS}(?:treat|consider|regard)\s+[^.\n]{{1,60}}\b(?:as\s+(?:an?\s+|the\s+)?(?:admin\w*|user|owner|system|trusted)|void|invalid)\b",
    rf"{_BEGINS}(?:system|developer)[*_]*\s*:|^[ \t]*assistant\s*:|^[ \t]*#+\s*(?:system|instructions?)\b",
    r"^[ \t]*[-*+•][ \t]+assistant\s*:\s*you\b",
    r"\b(?:new|updated)\s+(?:system\s+)?(?:instructions?|prompt)\s*:",
    r"<\|?(?:im_start|system|/?instructions?)\b|\[/?INST\]|<!--",
    # What must be done to a model that somebody trains is no order.
    rf"\b(?:the|next)\s+(?:next\s+)?{_WHO}\s+(?:must|should|shall|has\s+to|needs\s+to|is\s+to|is\s+(?:now\s+)?(?:required|allowed|free)"
    r"|harus|wajib)\b(?!\s+be\s+\w+(?:ed|t|n)\b)|\basisten\s+(?:harus|wajib)\b",
)
# Letters apart are read as the word that they make.
_APART = re.compile(r"(?<!\w)(?:[^\W\d_] ){3,}[^\W\d_](?!\w)")
_SENTENCE = re.compile(r"[^.!?\n]*")


def find_order(text: str) -> str | None:
    """What of a text orders its reader about, to the end of its sentence and on one line; none where it does not."""
    joined = _APART.sub(lambda apart: apart[0].replace(" ", ""), text)
    found = _order_pattern().search(joined)
    if found is None:
        return None
    sentence = _SENTENCE.match(joined, found.end())
    told = joined[found.start() : found.end() if sentence is None else sentence.end()]
    return " ".join(told.split()).lstrip(".!?;:,>|-\u2013\u2014\u2026 ")


@cache
def _order_pattern() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(_ORDERS)})", re.IGNORECASE | re.MULTILINE)
