"""How far answers can be trusted: intervals of averages, shifts, tests, shapes, sensitivity."""
