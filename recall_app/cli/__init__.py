"""The command line: parse, call, print. Each command is a function that typer reads; ``main`` is the way in."""
