"""Pages and figures from the records of the registry."""
