"""The treatment: functions of the dose, grids of doses, and the doses that data speak about."""
