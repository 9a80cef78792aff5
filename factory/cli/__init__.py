"""The `factory` command: thin Typer commands that parse, build a configuration and call one function."""
