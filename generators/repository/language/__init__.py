"""Bugs and issue texts written by a language model, held to the same gates as what is made without one."""
