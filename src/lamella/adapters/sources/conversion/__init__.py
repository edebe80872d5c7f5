"""Conversion: bytes of a PDF, an office file or a page become text, each in a process of its own that has its limits.

Enters: bytes, what they are taken for, and how much time and memory that may take. Leaves: title and text, or why not.
May not enter: files by name, the network, a cache; whatever a converter does happens in the child.
"""
