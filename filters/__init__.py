"""Judge candidates: validity, loopholes, solvability, variance, contamination, splits."""
