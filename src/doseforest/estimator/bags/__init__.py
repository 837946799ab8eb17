"""The forest of intervals: many small bags beside the forest that answers."""
