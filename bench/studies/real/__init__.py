"""Real data beside published numbers: a section for each set of `bench.real_data`.

A section measures records and turns them into tables, sentences and verdicts. To add one: a file
with a `SECTION`, and a line in `sections`.
"""
