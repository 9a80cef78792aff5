"""Contamination and near-duplicates: MinHash candidates, exact verification."""
