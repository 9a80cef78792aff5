"""Prefect flows: nightly, assess, train, audit; and their deployments."""
