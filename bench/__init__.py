"""Evidence, outside the wheel: designs, real data, studies, speed, and what they gave."""
