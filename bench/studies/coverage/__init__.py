"""Whether intervals cover: of units, averages, changes of doses, and the test of shapes."""
