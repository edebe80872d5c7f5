"""The JSON bodies that the command line, the server and Python share, each defined once.

A body is a ``msgspec.Struct`` whose name ends in ``Json``, and a ``*_to_json`` function builds it. ``--json`` prints it,
the server returns it, and the OpenAPI document and docs/reference/json-output.md are generated from it. ``body`` has the
base classes and errors; the other modules have one subject each. ``formatting`` has amounts of money.

The package does no I/O and no printing, and uses no clock, settings, colours or terminal width. It imports the values
that it describes only for their types.
"""
