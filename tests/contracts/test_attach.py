"""``lamella.attach``: a public module of its own, which does no I/O."""

import json
import subprocess
import sys

import lamella
import lamella.attach

EXPORTS = [
    "ActiveNote",
    "Attachment",
    "Canvas",
    "Code",
    "Codebase",
    "Dataview",
    "Folder",
    "Image",
    "Instruction",
    "Note",
    "NotePassage",
    "Office",
    "Pdf",
    "Selection",
    "Tag",
    "Tool",
    "ToolResult",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "attachment_for_path",
    "attachment_for_url",
    "has_known_extension",
]
LOADED = "import json, sys, lamella.attach; print(json.dumps(sorted(sys.modules)))"


def test_public_names_are_pinned() -> None:
    assert lamella.attach.__all__ == EXPORTS
    assert [name for name in EXPORTS if not hasattr(lamella.attach, name)] == []


def test_lamella_exports_same_attachment_classes() -> None:
    both = set(EXPORTS) & set(lamella.__all__)
    only_there = {
        "Attachment",
        "Codebase",
        "Instruction",
        "NotePassage",
        "attachment_for_path",
        "attachment_for_url",
        "has_known_extension",
    }
    assert both == set(EXPORTS) - only_there
    assert [name for name in both if getattr(lamella, name) is not getattr(lamella.attach, name)] == []


def test_attach_imports_only_core() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in json.loads(done.stdout) if name.startswith("lamella.")}
    assert rooms <= {"attach", "core", "errors", "hints"}
