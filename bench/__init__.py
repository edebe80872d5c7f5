"""Measures: ratios taken side by side in one run, because machines are noisy.

Uses only the public API, and the token counter where counting is what something else is measured beside.
"""
