"""Mutation tests: put small faults into Lamella one at a time and see which of them no test notices.

Each fault is put into a copy of ``src`` that is deleted afterwards, so nothing here writes below ``src``.
"""
