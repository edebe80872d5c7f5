"""Word lists per language: acknowledgements, first-person words, and the cues of directives, pasted text and summaries.

The lists are values. ``lamella.settings.word_lists`` reads those that come with Lamella, and those of the user, from
data files. All languages are used together: a conversation may mix them.
"""

from collections.abc import Iterable

from msgspec import Struct, structs

from lamella.core.values import replace


class WordLists(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrases in lower case. In a phrase ``*`` continues a word and ``...`` means a few words in between.

    Attributes:
        acknowledgements: Whole messages that only acknowledge, such as "ok".
        acknowledgement_openings: Words with which a message acknowledges before it continues.
        first_person: Words with which people speak of themselves.
        directive_cues: Phrases that make a sentence a directive wherever they are in it.
        directive_openings: Phrases that do so at the start of a clause.
        directive_endings: Order forms at the end of a sentence; with a frequency word they make a directive.
        frequency_words: Words such as "every time" that make a directive of a sentence with an order.
        order_subjects: Subjects that make a sentence with a frequency word an order, such as "you should".
        answer_words: Words for what answers are made of, such as "sentences" and "units".
        withdrawals: Phrases that take back an earlier directive wherever they are.
        change_words: Words that take back a directive if the sentence shares a topic with it.
        reports: Phrases with a cue that say what happened, and direct nothing.
        speech_reports: Phrases that report what somebody said; the sentence directs nothing.
        report_subjects: Words before a frequency word that make the sentence a report.
        paste_introductions: Phrases after which the rest of a message is somebody else's text.
        text_carriers: Words for what carries somebody else's text, such as "letter" and "sign".
        other_persons: Words for somebody else, with which a sentence about them begins.
        lead_words: Words before a colon that say that what follows is a text, or ask to work on it.
        reporting_verbs: Verbs that say that somebody said something.
        mail_headers: Names of header lines of mails.
        greetings: First words of a letter.
        closings: Last words of a letter.
        document_words: First words of a line that belong to a document, such as "chapter".
        reader_words: Words that address the reader of a summary.
        order_openings: Verb forms that give an order at the start of a clause.
        common_words: Words too frequent to be the topic of a sentence.
        negations: Words that deny.
        soft_negations: Words that may deny or limit, so that a sentence with one is not compared for denial.
        report_verbs: Words that say who said, asked or wanted something.
        duty_words: Words that say that something has to be done.
        order_verbs: Words that begin an order and hardly ever a statement.
        order_endings: Word endings that end an order, in languages that put the verb last.
        user_nouns: Words for the user in a summary.
        assistant_nouns: Words for the assistant in a summary.
        audience_words: Words for the reader of a summary or for later answers.
        prose_words: Words that begin with a capital letter, or are in katakana, and are no names.
        plain_words: Nouns and other words that may begin with a capital letter and are no names. Unlike ``prose_words``
            they carry meaning.
        surnames: Names in scripts without capital letters.
    """

    acknowledgements: tuple[str, ...] = ()
    acknowledgement_openings: tuple[str, ...] = ()
    first_person: tuple[str, ...] = ()
    directive_cues: tuple[str, ...] = ()
    directive_openings: tuple[str, ...] = ()
    directive_endings: tuple[str, ...] = ()
    frequency_words: tuple[str, ...] = ()
    order_subjects: tuple[str, ...] = ()
    answer_words: tuple[str, ...] = ()
    withdrawals: tuple[str, ...] = ()
    change_words: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    speech_reports: tuple[str, ...] = ()
    report_subjects: tuple[str, ...] = ()
    paste_introductions: tuple[str, ...] = ()
    text_carriers: tuple[str, ...] = ()
    other_persons: tuple[str, ...] = ()
    lead_words: tuple[str, ...] = ()
    reporting_verbs: tuple[str, ...] = ()
    mail_headers: tuple[str, ...] = ()
    greetings: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()
    document_words: tuple[str, ...] = ()
    reader_words: tuple[str, ...] = ()
    order_openings: tuple[str, ...] = ()
    common_words: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    soft_negations: tuple[str, ...] = ()
    report_verbs: tuple[str, ...] = ()
    duty_words: tuple[str, ...] = ()
    order_verbs: tuple[str, ...] = ()
    order_endings: tuple[str, ...] = ()
    user_nouns: tuple[str, ...] = ()
    assistant_nouns: tuple[str, ...] = ()
    audience_words: tuple[str, ...] = ()
    prose_words: tuple[str, ...] = ()
    plain_words: tuple[str, ...] = ()
    surnames: tuple[str, ...] = ()


NO_WORDS = WordLists()


def merge_word_lists(lists: Iterable[WordLists]) -> WordLists:
    """Return the phrases of several lists, each once."""
    merged = NO_WORDS
    for one in lists:
        merged = replace(
            merged,
            **{
                name: tuple(dict.fromkeys((*getattr(merged, name), *getattr(one, name))))
                for name in WordLists.__struct_fields__
            },
        )
    return merged


def normalize_word_lists(lists: WordLists) -> WordLists:
    """Return the lists with every phrase in lower case and with single spaces."""
    values = structs.asdict(lists)
    return WordLists(**{name: tuple(" ".join(phrase.lower().split()) for phrase in values[name]) for name in values})
