"""``equipoise save``: a run of `train` or `compare` as one file that can be put to use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.cli.shared import check_output, json_option, print_json, quiet_option

if TYPE_CHECKING:
    from equipoise.integrations.run_model import RunModel

__all__ = ["command", "describe_run", "model_of_run", "run_options", "use_of_runs"]

F = TypeVar("F", bound=Callable[..., Any])


def run_options(function: F) -> F:
    """Add the options that choose a run of a folder of several, and its calibrator."""
    described: Any = function
    for option in reversed(
        (
            click.option(
                "--calibrator",
                metavar="NAME",
                help="A calibrator of the run, identity for none, or a file of one; by default the only one.",
            ),
            click.option("--method", metavar="NAME", help="The method, in a folder of several runs."),
            click.option("--seed", type=int, help="The seed, in a folder of several runs."),
            click.option("--data", "root", type=click.Path(), help="Data folder; else EQUIPOISE_DATA."),
            click.option(
                "--code",
                type=click.Path(),
                help="The folder of the spec, if it named code; else the current one.",
            ),
        )
    ):
        described = option(described)
    result: F = described
    return result


def model_of_run(
    folder: Path,
    *,
    calibrator: str | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
) -> RunModel:
    """Return the model of the one run that is meant, compared with what the run stored."""
    from equipoise.integrations.run_model import find_run, load_run

    return load_run(find_run(folder, method=method, seed=seed), calibrator=calibrator, root=root, code=code)


def describe_run(model: RunModel) -> dict[str, object]:
    """Return what a model holds, for people and machines."""
    return {
        "run": model.label,
        "calibrator": model.calibrator_name,
        "class_names": list(model.class_names),
        "inputs": model.raw_inputs.describe(model.input_shape),
    }


def use_of_runs(folder: Path, *, method: str | None = None, seed: int | None = None) -> str:
    """Return the commands that put a run to use, as a user would type them."""
    from shlex import quote

    chosen = "" if method is None else f" --method {quote(method)} --seed {seed}"
    place = f"{quote(str(folder))}{chosen}"
    return (
        f"To use a model:  equipoise save {place} -o model.safetensors\n"
        f"            or:  equipoise export {place} -o model.onnx"
    )


@click.command("save", epilog="Example:  equipoise save runs --method focal --seed 0 -o model.safetensors")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the model goes.")
@run_options
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
    Resizing of images, and the words behind token numbers, are not in it. Its probabilities are compared with those
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
