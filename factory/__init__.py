"""envfactory: makes, checks, stores and uses training environments for language-model agents."""

__version__ = "0.1.0"
