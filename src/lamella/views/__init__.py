"""Views: values become the JSON bodies and the sums that every face shows.

Enters: frozen values of the core, or of the engine by their shape. Leaves: dicts, lists, texts and numbers that JSON
can say, in the names that the docs promise; and sums over many turns or calls.
May not enter: I/O, printing, clocks, settings, colours, the width of a terminal; the engine, which stands beside it.
"""
