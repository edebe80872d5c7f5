"""Everything that Lamella itself writes about workflows and in documents, by language.

``get_phrases`` returns the phrases of a language; languages without phrases of their own get the English ones.
"""

from collections.abc import Mapping

from msgspec import Struct

# Names of languages in English and in the language itself, for instructions to models.
LANGUAGE_NAMES: Mapping[str, str] = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "jv": "Javanese",
    "ko": "Korean",
    "ms": "Malay",
    "nl": "Dutch",
    "pt": "Portuguese",
    "ru": "Russian",
    "su": "Sundanese",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def language_name(language: str) -> str:
    """Return the English name of a language, or its code if it is not listed."""
    return LANGUAGE_NAMES.get(language, language)


class WorkflowPhrases(Struct, frozen=True, kw_only=True):
    """The phrases of one language. Braces name what is filled in."""

    # The part of the system prompt.
    workflow_heading: str
    all_approved: str
    stage_position: str
    phase: str
    required_fields: str
    search: str
    no_search: str
    write_in: str
    digest_heading: str
    digest_notice: str
    completed_heading: str
    current_heading: str
    attempt: str
    still_missing: str
    fields_heading: str
    references_heading: str
    exhibits_heading: str
    cite_notice: str
    changes_requested: str
    decision_proposed: str
    person_approves: str
    tools_notice: str
    json_notice: str
    sources_shown: str
    more_sources: str
    nothing_written: str
    no_decision: str
    statuses: Mapping[str, str]
    # The document.
    abstract: str
    keywords: str
    references: str
    figure: str
    table: str
    section: str
    not_approved: str
    # What is missing in a document.
    problem_stage: str
    problem_empty: str
    problem_citation: str
    problem_uncited: str
    problem_details: str
    problem_cross_reference: str
    problem_unmentioned: str
    problem_unplaced: str
    problem_image: str
    problem_title: str
    problem_references: str
    details: Mapping[str, str]
    # Errors of actions, each with what to do next.
    error_missing: str
    hint_missing: str
    error_submitted: str
    hint_submitted: str
    error_not_submitted: str
    hint_not_submitted: str
    error_all_approved: str
    hint_all_approved: str
    error_stage_unknown: str
    error_stage_ahead: str
    hint_go_back: str
    hint_first_stage: str
    error_no_writes: str
    hint_no_writes: str


_ENGLISH = WorkflowPhrases(
    workflow_heading="# Workflow: {title}",
    all_approved="All {count} stages are approved. Help with what is asked about the work.",
    stage_position="Stage {number} of {count}{phase}: {label}.",
    phase=", phase {phase}",
    required_fields="It has to have: {fields}.",
    search="Look things up where that helps.",
    no_search="Work with what is known; nothing is searched for.",
    write_in="Write the work in {language}, whatever language is spoken about it.",
    digest_heading="## Digest",
    digest_notice=(
        "What was decided in the stages that are done. Keep to it, and say so where something contradicts it:"
    ),
    completed_heading="## Data of the stages that are done",
    current_heading="## This stage so far: {status}{attempt}.{missing}",
    attempt=", attempt {number}",
    still_missing=" Still missing: {fields}.",
    fields_heading="Fields of this stage:",
    references_heading="## References",
    exhibits_heading="## Figures and tables",
    cite_notice="Cite them in the text by key: [@key, p. 3] or @key. Cite nothing that is not listed here.",
    changes_requested="The user asks for changes: {note}",
    decision_proposed="Proposed decision: {decision}",
    person_approves="Only the user approves a stage.",
    tools_notice=(
        "Write the fields with write_stage while you work on them, add sources with add_references before you cite "
        "them, and propose the decision with propose_decision. When everything is there, call submit_stage."
    ),
    json_notice=(
        "To write down what belongs to the work, end your answer with one block that begins with ```stage and contains "
        'JSON: {{"fields": {{"name": "text"}}, "references": [{{"id": "doe2020", "title": "…", "author": ["Doe, Jane"], '
        '"year": 2020}}], "decision": "…", "submit": true}}. Leave out what does not change.'
    ),
    sources_shown="{name} ({shown} of {count}):",
    more_sources="  and {count} more",
    nothing_written="(nothing was written down for this stage)",
    no_decision="approved; nothing was written down for it",
    statuses={"drafting": "drafting", "pending": "pending", "approved": "approved", "revision": "revision"},
    abstract="Abstract",
    keywords="Keywords",
    references="References",
    figure="Figure",
    table="Table",
    section="Section",
    not_approved="Not approved yet: {stages}.",
    problem_stage="The stage {label} is not approved yet.",
    problem_empty="The section {label} has no text.",
    problem_citation="{key} is cited in {label}, but there is no reference with this key.",
    problem_uncited="The reference {key} is never cited: {reference}",
    problem_details="The reference {key} has no {details}.",
    problem_cross_reference="{label} refers to {key}, which does not exist.",
    problem_unmentioned="The text never refers to {key}.",
    problem_unplaced="{key} belongs to the stage {label}, which is not a section of the document.",
    problem_image="{label} shows the image {key}, which was not added to the work.",
    problem_title="The document has no title yet.",
    problem_references="The text cites nothing, so all references are listed.",
    details={"author": "author", "year": "year", "title": "title"},
    error_missing="The stage {stage} has {filled} of {count} fields that it has to have; missing: {fields}.",
    hint_missing="Write down {field} for this stage, then submit it again.",
    error_submitted="The stage {stage} is submitted already.",
    hint_submitted="Approve it, or write down more first.",
    error_not_submitted="The stage {stage} is not submitted: its status is {status}.",
    hint_not_submitted="Submit it first; that checks what it has to have.",
    error_all_approved="All {count} stages of {workflow} are approved.",
    hint_all_approved="Export the work, or go back to a stage that is to be done again.",
    error_stage_unknown="The stage {stage!r} of {workflow} is not known.",
    error_stage_ahead="The stage {stage!r} of {workflow} is not done yet.",
    hint_go_back="Go back to one of: {stages}.",
    hint_first_stage="This is the first stage: go on with it.",
    error_no_writes="Nothing was written since this stage began.",
    hint_no_writes="Go back to an earlier stage to change what it has.",
)

_INDONESIAN = WorkflowPhrases(
    workflow_heading="# Alur kerja: {title}",
    all_approved="Semua {count} tahap sudah disetujui. Bantu pertanyaan tentang karya ini.",
    stage_position="Tahap {number} dari {count}{phase}: {label}.",
    phase=", fase {phase}",
    required_fields="Wajib ada: {fields}.",
    search="Cari informasi bila itu membantu.",
    no_search="Gunakan yang sudah diketahui; tidak ada pencarian di tahap ini.",
    write_in="Tulis karya ini dalam bahasa {language}, apa pun bahasa percakapannya.",
    digest_heading="## Keputusan",
    digest_notice=(
        "Yang sudah diputuskan pada tahap-tahap yang selesai. Pegang keputusan ini, dan katakan bila ada yang "
        "bertentangan dengannya:"
    ),
    completed_heading="## Data tahap yang sudah selesai",
    current_heading="## Tahap ini sejauh ini: {status}{attempt}.{missing}",
    attempt=", percobaan ke-{number}",
    still_missing=" Belum ada: {fields}.",
    fields_heading="Isian tahap ini:",
    references_heading="## Referensi",
    exhibits_heading="## Gambar dan tabel",
    cite_notice="Kutip dalam teks dengan kuncinya: [@kunci, hlm. 3] atau @kunci. Jangan mengutip yang tidak ada di sini.",
    changes_requested="Pengguna meminta perubahan: {note}",
    decision_proposed="Usulan keputusan: {decision}",
    person_approves="Hanya pengguna yang menyetujui suatu tahap.",
    tools_notice=(
        "Tulis isian dengan write_stage selama mengerjakannya, tambahkan sumber dengan add_references sebelum "
        "mengutipnya, dan usulkan keputusan dengan propose_decision. Setelah semuanya lengkap, panggil submit_stage."
    ),
    json_notice=(
        "Untuk mencatat isi karya, akhiri jawaban dengan satu blok yang diawali ```stage dan berisi JSON: "
        '{{"fields": {{"nama": "teks"}}, "references": [{{"id": "sari2021", "title": "…", "author": ["Sari, Rina"], '
        '"year": 2021}}], "decision": "…", "submit": true}}. Tinggalkan yang tidak berubah.'
    ),
    sources_shown="{name} ({shown} dari {count}):",
    more_sources="  dan {count} lagi",
    nothing_written="(tidak ada yang dicatat untuk tahap ini)",
    no_decision="disetujui; tidak ada yang dicatat untuknya",
    statuses={
        "drafting": "disusun",
        "pending": "menunggu",
        "approved": "disetujui",
        "revision": "direvisi",
    },
    abstract="Abstrak",
    keywords="Kata kunci",
    references="Daftar Pustaka",
    figure="Gambar",
    table="Tabel",
    section="Bagian",
    not_approved="Belum disetujui: {stages}.",
    problem_stage="Tahap {label} belum disetujui.",
    problem_empty="Bagian {label} tidak berisi teks.",
    problem_citation="{key} dikutip di {label}, tetapi tidak ada referensi dengan kunci itu.",
    problem_uncited="Referensi {key} tidak pernah dikutip: {reference}",
    problem_details="Referensi {key} tidak memiliki {details}.",
    problem_cross_reference="{label} merujuk ke {key}, yang tidak ada.",
    problem_unmentioned="Teks tidak pernah merujuk ke {key}.",
    problem_unplaced="{key} milik tahap {label}, yang bukan bagian dari dokumen.",
    problem_image="{label} menampilkan gambar {key}, yang belum ditambahkan ke karya.",
    problem_title="Dokumen belum memiliki judul.",
    problem_references="Teks tidak mengutip apa pun, jadi semua referensi dicantumkan.",
    details={"author": "penulis", "year": "tahun", "title": "judul"},
    error_missing="Tahap {stage} baru memiliki {filled} dari {count} isian wajib; belum ada: {fields}.",
    hint_missing="Catat {field} untuk tahap ini, lalu ajukan lagi.",
    error_submitted="Tahap {stage} sudah diajukan.",
    hint_submitted="Setujui tahap ini, atau catat hal lain dulu.",
    error_not_submitted="Tahap {stage} belum diajukan: statusnya {status}.",
    hint_not_submitted="Ajukan dulu; dengan itu isian wajibnya diperiksa.",
    error_all_approved="Semua {count} tahap {workflow} sudah disetujui.",
    hint_all_approved="Ekspor karyanya, atau kembali ke tahap yang perlu diulang.",
    error_stage_unknown="Tahap {stage!r} tidak ada dalam {workflow}.",
    error_stage_ahead="Tahap {stage!r} dari {workflow} belum selesai.",
    hint_go_back="Kembali ke salah satu dari: {stages}.",
    hint_first_stage="Ini tahap pertama: lanjutkan saja.",
    error_no_writes="Belum ada yang ditulis sejak tahap ini dimulai.",
    hint_no_writes="Kembali ke tahap sebelumnya untuk mengubah isinya.",
)

_PHRASES: Mapping[str, WorkflowPhrases] = {"en": _ENGLISH, "id": _INDONESIAN}
# Names of languages as a sentence in that language has them.
_NAMES_IN_INDONESIAN = {"id": "Indonesia", "en": "Inggris"}


def get_phrases(language: str) -> WorkflowPhrases:
    """Return the phrases of a language, or the English ones."""
    return _PHRASES.get(language.partition("-")[0].casefold(), _ENGLISH)


def write_in_language(language: str) -> str:
    """Return the instruction to write in a language, in that language where there are phrases of it."""
    name = _NAMES_IN_INDONESIAN.get(language) if get_phrases(language) is _INDONESIAN else None
    return get_phrases(language).write_in.format(language=name or language_name(language))
