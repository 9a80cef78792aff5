"""Bugs in real Python projects, found by their own tests."""
