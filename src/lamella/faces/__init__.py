"""Faces: the doors people come in by: a library, a command line; later a server.

Enters: what people type and call. Leaves: what they see. May not enter: decisions; a face parses, calls, prints.
"""
