"""The README tells of every command and option that it should, and of none that isn't there."""

import re

import typer

from recall_app.cli.entry import commands
from tests.integration.command_line import ROOT, Recall

README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.findall(r"```\n(.*?)```|`([^`\n]+)`", README, re.DOTALL)
SNIPPETS = [line for block, span in CODE for line in (block or span).splitlines()]


def command_names(app: typer.Typer) -> set[str]:
    return {str(command.name) for command in app.registered_commands}


def test_every_command_is_in_the_readme() -> None:
    told = {snippet.split()[1] for snippet in SNIPPETS if snippet.startswith("recall ")}
    assert told == command_names(commands)


def test_every_option_that_the_readme_names_is_there(recall: Recall) -> None:
    checked = 0
    for snippet in SNIPPETS:
        if not snippet.startswith("recall "):
            continue
        known = recall(snippet.split()[1], "--help").out
        for option in re.findall(r"--[a-z-]+", snippet):
            assert f"{option} " in known, snippet
            checked += 1
    assert checked > 0


def test_every_command_takes_a_data_folder_and_json(recall: Recall) -> None:
    for name in command_names(commands):
        known = recall(name, "--help").out
        assert "--data-dir " in known, name
        assert "--json " in known, name


def test_the_developers_commands_are_what_dev_py_has() -> None:
    usage = (ROOT / "packaging" / "dev.py").read_text(encoding="utf-8")
    told = {line.split("dev.py ")[1].split()[0] for line in SNIPPETS if "packaging/dev.py " in line}
    assert told == {"run", "test"}
    assert all(f"packaging/dev.py {name} " in usage for name in told)
