"""The clipboard of the user's terminal.

Terminals accept text for the clipboard by an escape code (OSC 52), also over a remote connection. No terminal returns
an image. Reading one needs a desktop program, so it works only on the machine that shows the desktop.
"""

import os
import shutil
import subprocess
import sys
from base64 import b64encode

from lamella.cli.output import can_redraw

# Some terminals truncate or ignore longer texts: xterm accepts 100,000 bytes including the escape code.
MAX_CLIPBOARD_BYTES = 74_994
# Terminals that are known to ignore the escape code.
_UNSUPPORTED_TERMINALS = ("linux", "vt100", "vt220")
_UNSUPPORTED_PROGRAMS = ("Apple_Terminal",)
# Programs that write the clipboard's image to stdout as PNG, each with the environment variable that it needs.
_IMAGE_READERS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_TIMEOUT_SECONDS = 10


def terminal_accepts_clipboard() -> bool:
    """Return whether the terminal may accept clipboard text; most do, and none can be asked."""
    if not can_redraw(sys.stdout):
        return False
    return (
        os.environ.get("TERM", "") not in _UNSUPPORTED_TERMINALS
        and os.environ.get("TERM_PROGRAM", "") not in _UNSUPPORTED_PROGRAMS
    )


def copy_to_clipboard(text: str) -> None:
    """Ask the terminal to copy a text; Base64 encoding keeps the text from acting on the terminal."""
    code = b64encode(text.encode(errors="replace")).decode()
    sys.stdout.write(f"\x1b]52;c;{code}\x07")
    sys.stdout.flush()


def list_clipboard_programs() -> list[str]:
    """Return the names of the programs that can read an image from the clipboard."""
    return [words[0] for _, words in _IMAGE_READERS]


def read_clipboard_image() -> bytes | None:
    """Return the clipboard's image as PNG; None if there is no image or no program to read it."""
    for variable, words in _IMAGE_READERS:
        if (not variable or os.environ.get(variable)) and shutil.which(words[0]) is not None:
            try:
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, check=True
                )
            except (OSError, subprocess.SubprocessError):
                continue
            if done.stdout:
                return done.stdout
    return None
