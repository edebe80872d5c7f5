"""Directives of the user, look-alikes, and texts that the user only passes on, in four languages."""
