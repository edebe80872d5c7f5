"""Scripted: a provider that says what a script has, without a key and without a network.

Enters: lines, or a file of them. Leaves: deltas, and the requests it was asked.
May not enter: anything that needs a model.
"""
