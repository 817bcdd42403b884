"""Find uses of words by their meaning."""

from elmokit.search.neighbours import Use, nearest_uses

__all__ = ["Use", "nearest_uses"]
