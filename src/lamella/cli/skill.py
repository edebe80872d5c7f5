"""``lamella skill``: instructions for coding agents on how to ask Lamella."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from lamella.cli.output import escape_to_short_line, print_text
from lamella.errors import UsageError
from lamella.files import replace_file, write_new_file

_DEFAULT_FOLDER = "~/.claude/skills"
_SKILL_NAME, _FILE_NAME = "lamella", "SKILL.md"

skill_app = typer.Typer(name="skill", help="Install instructions for coding agents.")


@skill_app.command()
def install(
    *,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of your agent's skills.", show_default=_DEFAULT_FOLDER),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that was changed.")] = False,
) -> None:
    """Write a skill that teaches a coding agent when and how to ask Lamella.

    Claude Code reads ~/.claude/skills, and .claude/skills in a project. Codex reads ~/.codex/skills.

    lamella skill install --to .claude/skills
    """
    file = (to or Path(_DEFAULT_FOLDER)).expanduser() / _SKILL_NAME / _FILE_NAME
    text = read_skill().encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        write_new_file(file, text)
    elif file.read_bytes() != text:
        if not force:
            raise UsageError(f"{file} exists with another content.", hint="Keep it, or replace it with --force.")
        replace_file(file, text)
    print_text(f"Installed: {escape_to_short_line(str(file))}")


def read_skill() -> str:
    """Return the text of the skill."""
    return files("lamella.integrations").joinpath(_FILE_NAME).read_text(encoding="utf-8")
