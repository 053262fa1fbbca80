"""Benchmarks of the program itself: `python -m bench` measures, `bench.peers` compares."""
