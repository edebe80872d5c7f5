"""``lamella plugins``: list what other packages bring."""

from lamella.cli.access import JsonOption
from lamella.cli.output import escape_to_short_line, print_json, print_text
from lamella.plugins import list_plugins
from lamella.schemas.catalog import PluginJson, PluginListJson

_NO_PLUGINS_MESSAGE = "No plugins installed. To write one, see docs/how-to/write-a-plugin.md."


def plugins(*, as_json: JsonOption = False) -> None:
    """List plugins of installed packages, and those that are skipped.

    lamella plugins
    """
    found = list_plugins()
    if as_json:
        rows = [
            PluginJson(group=one.group.value, name=one.name, package=one.package, problem=one.problem or None)
            for one in found
        ]
        print_json(PluginListJson(plugins=rows))
        return
    for one in found:
        line = f"{one.group.value}  {one.name}  from {one.package}"
        print_text(escape_to_short_line(f"{line}  skipped: it {one.problem}" if one.problem else line))
    if not found:
        print_text(_NO_PLUGINS_MESSAGE)
