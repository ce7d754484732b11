"""Benchmarks of mxop for airspeed velocity; ``asv run --quick --python=same`` in the folder above."""
