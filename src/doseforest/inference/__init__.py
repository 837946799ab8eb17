"""How far answers can be trusted: intervals, tests, shapes, sensitivity."""
