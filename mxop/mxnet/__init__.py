"""MXNet's Python around operators: what training needs, by MXNet's names; ``mx.optimizer`` lies here."""
