"""Thoughtline keeps a model's reasoning alive from turn to turn."""

__version__ = "0.1.0"
