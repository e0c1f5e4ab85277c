"""``equipoise export``: a saved model and its calibrator as one ONNX graph."""

from __future__ import annotations

from math import prod
from pathlib import Path

import click

from equipoise.cli.shared import check_output, json_option, print_json, quiet_option

__all__ = ["command"]

#: Values of the batch that the graph is compared on; large inputs get fewer rows.
_EXAMPLE_VALUES = 1 << 22


@click.command("export", epilog="Example:  equipoise export model.safetensors -o model.onnx")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the graph goes.")
@click.option(
    "--calibrator", type=click.Path(path_type=Path), help="A map to use instead of the model's own."
)
@click.option("--shape", help="Shape of one input, such as 3,32,32, if the model's file does not say.")
@json_option
@quiet_option
def command(
    model: Path, output: Path, calibrator: Path | None, shape: str | None, as_json: bool, quiet: bool
) -> None:
    """Export MODEL, written by `save_model` with its architecture, to ONNX: inputs in, calibrated `probs` out.

    The graph is compared with the original before it is given its name; if they differ, no file is left.
    """
    check_output(output, (".onnx",))
    import torch

    from equipoise.calibrators import load
    from equipoise.core.errors import DataError
    from equipoise.integrations.bounded_network import check_input_shape
    from equipoise.integrations.onnx import export_onnx  # these packages are heavy, and extras
    from equipoise.integrations.saved_model import load_model

    loaded = load_model(model)
    sizes = loaded.input_shape if shape is None else _shape(shape)
    if sizes is None:
        raise click.BadParameter(
            "the file does not say. Pass for example --shape 3,32,32.", param_hint="'--shape'"
        )
    used = loaded.calibrator if calibrator is None else load(calibrator)
    n_classes = check_input_shape(loaded.network, sizes, where=str(model))[0]
    if used.n_classes not in (None, n_classes):
        raise DataError(
            f"{calibrator}: is for {used.n_classes} classes, and the network has {n_classes}. "
            "Pass a calibrator fitted on this network's predictions."
        )
    rows = max(2, min(16, _EXAMPLE_VALUES // prod(sizes)))
    example = torch.randn(rows, *sizes, generator=torch.Generator().manual_seed(0))
    found = export_onnx(output, loaded.network, used, example, class_names=loaded.class_names)
    if as_json:
        print_json({"output": str(output), "calibrator": used.kind, "largest_difference": found})
    elif not quiet:
        click.echo(f"Wrote {output}, through {used.kind}; its probabilities differ by {found:.1e} at most.")


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(
            f"expected positive numbers separated by commas, got {text!r}.", param_hint="'--shape'"
        )
    return tuple(int(part) for part in parts)
