"""Tasks from the history of projects: the code before a change, judged by the tests after it."""
