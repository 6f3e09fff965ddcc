"""Benchmarks: `make bench` runs them all and prints one table; each file has `rows() -> [(what,
measured, floor)]`."""
