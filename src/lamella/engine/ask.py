"""What a face asks: the one value in which every turn reaches the engine."""

from lamella.core.prompt.asked import Asked as Ask

__all__ = ["Ask"]
