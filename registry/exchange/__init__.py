"""Formats of others: in and out."""
