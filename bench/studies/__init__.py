"""Studies behind `doseforest bench`: simulations with a known truth and real data, as reports.

A study makes tasks, each one fit on one drawn data set; workers run those that are not stored yet;
the study turns the records into tables, verdicts and pictures. To add one: a file with `tasks` and
`report`, a line in `registry`.
"""
