"""Repository tasks from the rows of others' data sets, and rows from tasks."""
