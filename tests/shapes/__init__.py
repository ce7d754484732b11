"""Calls of random shapes beside NumPy in float64: a counted generator for each family of operators that cuts its work by size.

``python -m shapes FAMILY --seed SEED --cases CASES`` (from the folder of the tests) runs one; `test_random_shapes.py` runs all.
A case follows from its family, seed and number alone: ``--only NUMBER`` runs that case again.
"""
