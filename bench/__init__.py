"""Measures: ratios taken side by side in one run, because machines are noisy. Uses only the public API."""
