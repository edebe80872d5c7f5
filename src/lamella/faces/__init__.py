"""Faces: the doors people come in by: a command line; later a server. Programs come in by the public modules.

Enters: what people type and call. Leaves: what they see. May not enter: decisions; a face parses, calls, prints.
"""
