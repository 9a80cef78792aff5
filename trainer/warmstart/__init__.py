"""Warm start: supervised learning on oracle demonstrations until the policy sometimes solves a task."""
