"""Obsidian: its conventions for a folder of notes, beyond what a single note says.

Enters: texts of notes and canvases, rules on what to leave out, and what finds and reads a note by its name. Leaves:
notes with what they embed, canvases as text, whether a path is left out. May not enter: writing, artifacts.
"""
