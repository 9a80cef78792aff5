"""Tasks over seeded SQLite databases."""
