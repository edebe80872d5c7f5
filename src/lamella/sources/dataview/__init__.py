"""Answer Dataview queries over the notes of a vault with text.

``parser`` and ``queries`` parse a query, ``expressions`` and ``values`` evaluate it, ``notes`` has the fields of
notes, ``results`` renders rows as Markdown, and ``blocks`` puts answers below the queries of a note.

A query that cannot be answered stays text, with the reason. The package does not read the system clock (the caller
passes the day), writes nothing, and never runs programs inside notes (DataviewJS).
"""
