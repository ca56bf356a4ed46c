"""Lets `python -m labkit` stand for the labkit command."""

from labkit.cli import app

app(prog_name="labkit")
