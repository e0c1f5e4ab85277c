"""``equipoise demo``: the main job on embedded data."""

from __future__ import annotations

from importlib.resources import as_file, files

import click

from equipoise import read_predictions, score
from equipoise.cli.shared import json_option, print_json

__all__ = ["command"]


@click.command("demo", epilog="Example:  equipoise demo")
@json_option
def command(as_json: bool) -> None:
    """Score the embedded predictions of a small network on handwritten digits."""
    with as_file(files("equipoise").joinpath("data", "embedded", "digits.npz")) as path:
        card = score(read_predictions(path))
    if as_json:
        print_json(card.to_dict())
    else:
        click.echo("A small network on scikit-learn's noisy digits, trained too long:\n")
        click.echo(str(card))
