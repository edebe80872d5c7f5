"""Stores: where conversations last. One adapter per database, all under one conformance suite.

Enters: events to append. Leaves: events in order, exactly as acknowledged. May not enter: prompt decisions.
"""
