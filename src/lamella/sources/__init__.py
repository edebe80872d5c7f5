"""Sources: readers that turn files, web pages and videos into artifacts.

- ``open_sources``: opens all readers for a vault, or without one.
- ``vault``, ``inventory``, ``path_resolver``, ``mentions``: the files of a vault, and the names that users write.
- ``markdown``, ``obsidian``, ``dataview``: notes, embeds, canvases and queries.
- ``images``, ``web``, ``youtube``, ``readers``: other media.
- ``converters``, ``conversion_process``, ``conversion_worker``, ``converted_files``: conversion to text, and its cache.
- ``workflow_files``: workflows that users define.

Vaults are only read: the package writes nothing but its own cache. A path never leaves the vault, neither by ``..``
nor through a symbolic link.
"""
