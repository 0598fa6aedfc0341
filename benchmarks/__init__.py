"""Benchmarks: one module per package, each with `run`. `make bench` prints all of them."""
