"""Tools: what models may call, and how calls are run.

Enters: a call with validated arguments. Leaves: its output as an artifact. May not enter: prompt decisions.
"""
