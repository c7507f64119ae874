"""The obvious implementations, one for each fast one: what tests and benchmarks compare with."""
