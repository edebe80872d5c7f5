"""Views of the server: events of a stream, tokens, settings, and the bodies that only HTTP has.

Enters: values of the engine and of holdings, by their shape. Leaves: what JSON can say.
May not enter: HTTP, clocks, tokens themselves.
"""
