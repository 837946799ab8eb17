"""What is run beside the tests: golden answers of the algorithm."""
