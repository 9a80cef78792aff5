"""The versioned store: tables, content-addressed blobs, queries, migrations, exchange."""
