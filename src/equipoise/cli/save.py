"""``equipoise save``: a run of `train` or `compare` as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.options import json_option, quiet_option, run_selection_options
from equipoise.cli.output import check_output, print_json

if TYPE_CHECKING:
    from equipoise.decisions import AcceptRule
    from equipoise.integrations.run_model import RunModel

__all__ = ["command", "describe_rule", "describe_run", "model_of_run", "read_rule", "usage_of_runs"]


def model_of_run(
    folder: Path,
    *,
    calibrator: str | None,
    decision_path: Path | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
) -> RunModel:
    """Return the model of the selected run, checked against the predictions that the run stored."""
    from equipoise.integrations.run_model import find_run, load_run

    run = find_run(folder, method=method, seed=seed)
    rule = None if decision_path is None else read_rule(decision_path)
    return load_run(run, calibrator=calibrator, rule=rule, root=root, code=code)


def read_rule(path: Path) -> AcceptRule:
    """Return a saved threshold."""
    from equipoise.decisions import AcceptRule, load_decision

    rule = load_decision(path)
    if not isinstance(rule, AcceptRule):
        raise click.UsageError(
            f"--decision needs a certified threshold, and {path} has {type(rule).__name__}. Use --max-error or "
            "--min-coverage of `equipoise decide`."
        )
    return rule


def describe_rule(rule: AcceptRule | None) -> str:
    """Return a line with the promise that a model was saved with."""
    return "" if rule is None else f"\n{rule.certificate.describe(rule.score or 'score')}"


def describe_run(model: RunModel) -> dict[str, object]:
    """Return the contents of a model."""
    return {
        "run": model.label,
        "calibrator": model.calibrator_name,
        "class_names": list(model.class_names),
        "inputs": model.raw_inputs.describe(model.input_shape),
        "threshold": None if model.rule is None else model.rule.certificate.threshold,
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
    decision_path: Path | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Save the model of RUN, made by `train` or `compare`, as one file: network, calibrator, scaling of inputs.

    The file takes inputs as the data's files hold them: images as uint8 from 0 to 255, features in their own units.
    Resizing of images and the vocabulary of texts are not included. With --decision, the loaded model has a method
    `accept`. Its probabilities are compared with those
    that the run stored. `equipoise.load_model` reads it, and `equipoise export` makes an ONNX graph of it.
    """
    check_output(output, (".safetensors",))
    from equipoise.integrations.run_model import save_run

    model = model_of_run(
        run,
        calibrator=calibrator,
        decision_path=decision_path,
        method=method,
        seed=seed,
        root=root,
        code=code,
    )
    difference = save_run(model, output)
    facts = describe_run(model)
    if as_json:
        print_json({"output": str(output), **facts, "largest_difference": difference})
    elif not quiet:
        own = "" if model.architecture is not None else ", network=YOUR_NETWORK"
        click.echo(
            f"Wrote {output}: {facts['run']}, through {facts['calibrator']}; its probabilities differ from the run's "
            f"by {difference:.1e} at most.\nInputs: {facts['inputs']}.\n"
            f'Use it:  equipoise.load_model("{output}"{own}).{"predict" if model.rule is None else "accept"}(inputs)'
            f"{describe_rule(model.rule)}"
        )
