"""The clipboard of whoever sits at the terminal.

Terminals take a text for it by an escape code (OSC 52), wherever this runs. None gives a picture back: that takes a
program of the desktop, and works where this runs on it.
"""

import os
import shutil
import subprocess
import sys
from base64 import b64encode

from lamella.faces.cli.terminal.telling import can_redraw

# More than this some terminals cut off or leave out: xterm takes 100,000 bytes with the code around it.
LONGEST = 74_994
# Those that are known to show nothing and take nothing.
_DEAF_KINDS = ("linux", "vt100", "vt220")
_DEAF_PROGRAMS = ("Apple_Terminal",)
# Programs that write the picture on the clipboard to their output, as PNG, and the variable without which they cannot.
_GIVERS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_PATIENCE = 10


def takes_clipboard() -> bool:
    """Whether the terminal may take a clipboard from programs; most do, and none says so."""
    if not can_redraw(sys.stdout):
        return False
    return os.environ.get("TERM", "") not in _DEAF_KINDS and os.environ.get("TERM_PROGRAM", "") not in _DEAF_PROGRAMS


def send_clipboard(text: str) -> None:
    """Have the terminal put a text on the clipboard. It is encoded: nothing of it can act on the terminal."""
    code = b64encode(text.encode(errors="replace")).decode()
    sys.stdout.write(f"\x1b]52;c;{code}\x07")
    sys.stdout.flush()


def list_givers() -> list[str]:
    """The programs that a picture may be had from, by name."""
    return [words[0] for _, words in _GIVERS]


def read_picture() -> bytes | None:
    """The picture on the clipboard, as PNG; none where there is none, or no program that gives it."""
    for variable, words in _GIVERS:
        if (not variable or os.environ.get(variable)) and shutil.which(words[0]) is not None:
            try:
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=True
                )
            except (OSError, subprocess.SubprocessError):
                continue
            if done.stdout:
                return done.stdout
    return None
