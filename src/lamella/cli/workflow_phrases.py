"""What commands print about workflows, in the language of the workflow."""

from collections.abc import Mapping

from msgspec import Struct


class CommandPhrases(Struct, frozen=True, kw_only=True):
    """The phrases of one language. Braces name what is filled in."""

    statuses: Mapping[str, str]
    done: str
    attempt: str
    one_message: str
    message_count: str
    all_approved: str
    missing: str
    pending: str
    complete: str
    proposed: str
    changes_requested: str
    talk: str
    no_data: str
    saved: str
    nothing_missing: str
    missing_in_document: str
    no_writes: str
    by_model: str
    by_user: str
    undone: str
    no_references: str
    approve_or_revise: str


_ENGLISH = CommandPhrases(
    statuses={"drafting": "drafting", "pending": "pending", "approved": "approved", "revision": "revision"},
    done="done",
    attempt="attempt {number}",
    one_message="1 message",
    message_count="{count} messages",
    all_approved="All stages are approved. Export the work: {command}",
    missing="Missing in {stage}: {fields}.",
    pending="{stage} is pending approval. Approve it: {command}",
    complete="{stage} is complete. Submit it for approval: {command}",
    proposed="Proposed decision: {decision}",
    changes_requested="Requested changes: {note}",
    talk="Talk with a model about it: {command}",
    no_data="No data yet.",
    saved="Saved: {path}",
    nothing_missing="Nothing is missing.",
    missing_in_document="missing: {message}",
    no_writes="Nothing was written in this stage yet.",
    by_model="written by the model",
    by_user="written by you",
    undone="Undone:",
    no_references="No references yet.",
    approve_or_revise="Ask for changes instead: {command}",
)

_INDONESIAN = CommandPhrases(
    statuses={"drafting": "disusun", "pending": "menunggu", "approved": "disetujui", "revision": "direvisi"},
    done="selesai",
    attempt="percobaan {number}",
    one_message="1 pesan",
    message_count="{count} pesan",
    all_approved="Semua tahap sudah disetujui. Ekspor karya: {command}",
    missing="Belum ada di {stage}: {fields}.",
    pending="{stage} menunggu persetujuan. Setujui: {command}",
    complete="{stage} sudah lengkap. Ajukan untuk disetujui: {command}",
    proposed="Usulan keputusan: {decision}",
    changes_requested="Perubahan yang diminta: {note}",
    talk="Bicarakan dengan model: {command}",
    no_data="Belum ada data.",
    saved="Tersimpan: {path}",
    nothing_missing="Tidak ada yang kurang.",
    missing_in_document="kurang: {message}",
    no_writes="Belum ada yang ditulis di tahap ini.",
    by_model="ditulis oleh model",
    by_user="ditulis oleh Anda",
    undone="Dibatalkan:",
    no_references="Belum ada referensi.",
    approve_or_revise="Atau minta perubahan: {command}",
)


def get_command_phrases(language: str) -> CommandPhrases:
    """Return the phrases of a language, or the English ones."""
    return _INDONESIAN if language.partition("-")[0] == "id" else _ENGLISH
