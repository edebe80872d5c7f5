"""Mutation: small faults put into the core one at a time, to see which of them no test notices.

Enters: the rooms of the core and the tests that drive them. Leaves: per room what was noticed and by which tests.
May not enter: writing below src; every fault is put into a copy that is thrown away.
"""
