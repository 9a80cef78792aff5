"""Sections of the report's page, each a function of the figures."""
