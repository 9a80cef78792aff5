"""Make candidates: repository, terminal and database tasks."""
