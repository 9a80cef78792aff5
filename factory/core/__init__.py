"""The contracts that every room shares: pure data, no I/O, no heavy import."""
