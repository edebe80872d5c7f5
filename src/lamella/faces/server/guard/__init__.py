"""The guard: what stands before every request, and looks at its outside alone.

Enters: who calls, by which name, from which page, how much and how fast. Leaves: the request with its caller, or a
refusal in the one shape. May not enter: what a request asks for; conversations.
"""
