"""Policies on disk: where they come from, and how a version is named, saved and loaded."""
