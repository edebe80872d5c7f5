"""Summaries whose statements are checked, with batteries of false and honest ones."""
