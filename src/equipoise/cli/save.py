"""``equipoise save``: a run of `train` or `compare` as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.options import json_option, quiet_option, run_selection_options
from equipoise.cli.output import check_output, print_json

if TYPE_CHECKING:
    from equipoise.integrations.run_model import RunModel

__all__ = ["command", "describe_run", "model_of_run", "usage_of_runs"]


def model_of_run(
    folder: Path,
    *,
    calibrator: str | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
) -> RunModel:
    """Return the model of the selected run, checked against the predictions that the run stored."""
    from equipoise.integrations.run_model import find_run, load_run

    return load_run(find_run(folder, method=method, seed=seed), calibrator=calibrator, root=root, code=code)


def describe_run(model: RunModel) -> dict[str, object]:
    """Return the contents of a model."""
    return {
        "run": model.label,
        "calibrator": model.calibrator_name,
        "class_names": list(model.class_names),
        "inputs": model.raw_inputs.describe(model.input_shape),
    }


def usage_of_runs(folder: Path, *, method: str | None = None, seed: int | None = None) -> str:
    """Return the commands that save or export the model of a run."""
    from shlex import quote

    chosen = "" if method is None else f" --method {quote(method)} --seed {seed}"
    selection = f"{quote(str(folder))}{chosen}"
    return (
        f"To use a model:  equipoise save {selection} -o model.safetensors\n"
        f"            or:  equipoise export {selection} -o model.onnx"
    )


@click.command("save", epilog="Example:  equipoise save runs --method focal --seed 0 -o model.safetensors")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the model goes.")
@run_selection_options
@json_option
@quiet_option
def command(
    run: Path,
    output: Path,
    calibrator: str | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Save the model of RUN, made by `train` or `compare`, as one file: network, calibrator, scaling of inputs.

    The file takes inputs as the data's files hold them: images as uint8 from 0 to 255, features in their own units.
    Resizing of images and the vocabulary of texts are not included. Its probabilities are compared with those
    that the run stored. `equipoise.load_model` reads it, and `equipoise export` makes an ONNX graph of it.
    """
    check_output(output, (".safetensors",))
    from equipoise.integrations.run_model import save_run

    model = model_of_run(run, calibrator=calibrator, method=method, seed=seed, root=root, code=code)
    difference = save_run(model, output)
    facts = describe_run(model)
    if as_json:
        print_json({"output": str(output), **facts, "largest_difference": difference})
    elif not quiet:
        own = "" if model.architecture is not None else ", network=YOUR_NETWORK"
        click.echo(
            f"Wrote {output}: {facts['run']}, through {facts['calibrator']}; its probabilities differ from the run's "
            f"by {difference:.1e} at most.\nInputs: {facts['inputs']}.\n"
            f'Use it:  equipoise.load_model("{output}"{own}).predict(inputs)'
        )
