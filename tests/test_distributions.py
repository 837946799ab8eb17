"""What is released: the library, not its evidence."""

from tools.check_dist import evidence_in


def test_a_file_of_the_bench_is_not_released_and_others_are():
    names = ["doseforest/engine/bins.py", "doseforest-0.1.0/bench/command.py", "bench/a.json"]
    assert evidence_in(names) == names[1:]
    assert evidence_in(["doseforest/benches.py"]) == []
