"""``equipoise export``: a run, or a saved model, and its calibrator as one ONNX graph."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.options import json_option, quiet_option, run_selection_options
from equipoise.cli.output import check_output, print_json
from equipoise.cli.save import describe_rule, describe_run, model_of_run, read_rule

if TYPE_CHECKING:
    from equipoise.decisions import AcceptRule

__all__ = ["command"]

#: Values of the batch that the graph is compared on; large inputs get fewer rows.
_EXAMPLE_VALUES = 1 << 22


_EXAMPLES = """\b
Examples:
  equipoise export runs --method focal --seed 0 -o model.onnx
  equipoise export model.safetensors -o model.onnx
  equipoise export runs --method focal --seed 0 --decision decision.json -o model.onnx
"""


@click.command("export", epilog=_EXAMPLES)
@click.argument("model", metavar="RUN|MODEL", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the graph goes.")
@click.option("--shape", help="Shape of one input, such as 3,32,32, if the saved model does not contain it.")
@run_selection_options
@json_option
@quiet_option
def command(
    model: Path,
    output: Path,
    shape: str | None,
    calibrator: str | None,
    decision_path: Path | None,
    method: str | None,
    seed: int | None,
    root: str | None,
    code: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Export a RUN of `train` or `compare`, or a MODEL of `save`, to ONNX: inputs in, calibrated `probs` out.

    The graph is compared with the original before it is saved; if they differ, no file is written. The inputs are
    those of the data's files: images as uint8 from 0 to 255, features in their own units. A model that `save_model`
    wrote without a scaling of inputs takes the inputs of its network. With --decision, or a model that was saved with
    one, the graph has a second output `accept`.
    """
    check_output(output, (".onnx",))
    if model.is_dir():
        if shape is not None:
            raise click.UsageError("--shape needs a saved model; a run contains the shape of its inputs.")
        from equipoise.integrations.run_model import export_run

        found = model_of_run(
            model,
            calibrator=calibrator,
            decision_path=decision_path,
            method=method,
            seed=seed,
            root=root,
            code=code,
        )
        facts, rule = describe_run(found), found.rule
        difference = export_run(found, output)
    else:
        for option, value in (("--method", method), ("--seed", seed), ("--data", root), ("--code", code)):
            if value is not None:
                raise click.UsageError(f"{option} needs a folder of runs, and {model} is not a folder.")
        rule = None if decision_path is None else read_rule(decision_path)
        difference, facts, rule = _export_saved(model, output, calibrator, rule, shape)
    if as_json:
        print_json({"output": str(output), **facts, "largest_difference": difference})
    elif not quiet:
        inputs = f"\nInputs: {facts['inputs']}." if facts.get("inputs") else ""
        click.echo(
            f"Wrote {output}, through {facts['calibrator']}; its probabilities differ by {difference:.1e} at most."
            f"{inputs}{describe_rule(rule)}"
        )


def _export_saved(
    model: Path, output: Path, calibrator: str | None, rule: AcceptRule | None, shape: str | None
) -> tuple[float, dict[str, object], AcceptRule | None]:
    """Export a file that `equipoise save` or `save_model` wrote."""
    from equipoise.calibrators import Identity, load
    from equipoise.core.errors import DataError, require

    torch = require("torch", extra="onnx", purpose="export a network")
    from equipoise.integrations.bounded_network import check_input_shape
    from equipoise.integrations.calibrated import calibrator_of_rule
    from equipoise.integrations.onnx import export_onnx  # these packages are heavy, and extras
    from equipoise.integrations.raw_inputs import ScaledNetwork
    from equipoise.integrations.saved_model import load_model

    loaded = load_model(model)
    sizes = loaded.input_shape if shape is None else _shape(shape)
    if sizes is None:
        raise click.BadParameter(
            "the file does not contain the shape. Pass for example --shape 3,32,32.", param_hint="'--shape'"
        )
    rule = loaded.rule if rule is None else rule
    used = loaded.calibrator if calibrator is None else load(calibrator)
    if rule is not None:
        used = calibrator_of_rule(rule, used, where=str(model)) or Identity()
    n_classes = check_input_shape(loaded.network, sizes, where=str(model))[0]
    if used.n_classes not in (None, n_classes):
        raise DataError(
            f"{calibrator}: is for {used.n_classes} classes, and the network has {n_classes}. "
            "Pass a calibrator fitted on this network's predictions."
        )
    rows = max(2, min(16, _EXAMPLE_VALUES // prod(sizes)))
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(rows, *sizes, generator=generator)
    network, facts = loaded.network, dict[str, object](calibrator=used.kind)
    facts["threshold"] = None if rule is None else rule.certificate.threshold
    notes: dict[str, str] = {}
    if loaded.raw_inputs is not None:
        network = ScaledNetwork(loaded.raw_inputs, network)
        notes = {"inputs": loaded.raw_inputs.describe(sizes)}
        facts["inputs"] = notes["inputs"]
        if loaded.raw_inputs.kind == "image":
            example = torch.randint(0, 256, example.shape, generator=generator).to(torch.uint8)
    found = export_onnx(
        output, network, used, example, class_names=loaded.class_names, notes=notes, rule=rule
    )
    return found, facts, rule


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(
            f"expected positive numbers separated by commas, got {text!r}.", param_hint="'--shape'"
        )
    return tuple(int(part) for part in parts)
