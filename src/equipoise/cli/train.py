"""``equipoise train``: one run from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from equipoise.cli.options import TrainingRequest, training_options
from equipoise.cli.output import print_json, print_table
from equipoise.cli.save import usage_of_runs
from equipoise.experiments import HISTORIES

__all__ = ["command"]

#: The number of metrics that are printed for a finished run.
_MOST_SHOWN = 6


@click.command("train", epilog="Example:  equipoise train run.toml --set recipe.epochs=5")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--calibrator", "calibrators", multiple=True, default=("temperature",), show_default=True)
@click.option(
    "--history",
    type=click.Choice(HISTORIES),
    default="tune",
    show_default=True,
    help="test: score it after every epoch too, for curves; nothing is chosen by it.",
)
@training_options
def command(
    spec: Path,
    calibrators: tuple[str, ...],
    history: str,
    request: TrainingRequest,
) -> None:
    """Train, predict and score one run, or continue where it stopped.

    With method = "auto", SPEC is answered as by `equipoise auto`, in a folder of its name in the folder of runs.
    """
    if _searches(spec, request.overrides):
        from equipoise.cli.auto import print_answer
        from equipoise.experiments.specs.toml import parse_override
        from equipoise.integrations.auto import auto

        found = auto(
            spec,
            folder=request.out / spec.stem,
            overrides=[parse_override(one) for one in request.overrides],
            execution=request.execution,
            quiet=request.quiet or request.as_json,
        )
        print_answer(found, as_json=request.as_json, quiet=request.quiet)
        return
    from equipoise.experiments import RunFolder, prepare, read_spec, run
    from equipoise.experiments.specs.calibrators import parse_calibrator
    from equipoise.metrics.facts import columns
    from equipoise.training.processes import is_first_process

    run_spec = read_spec(spec, overrides=request.overrides)
    chosen = [
        parse_calibrator(name, where="--calibrator") for name in dict.fromkeys(("identity", *calibrators))
    ]
    request.announce_code([run_spec], {"calibrator": [one for one in chosen if one.is_code]}, str(spec))
    scoring = replace(request.scoring, calibrators=chosen, history=history)
    [run_spec] = prepare([run_spec], where=str(spec), execution=request.execution, scoring=scoring)
    is_finished = RunFolder(request.out / run_spec.identity).is_finished()
    if is_finished and not request.execution.quiet and is_first_process():
        click.echo(f"already finished: {run_spec.label}", err=True)
    folder = run(run_spec, request.out, scoring=scoring, execution=request.execution)
    if not is_first_process():
        return
    if request.as_json:
        print_json(
            {"name": run_spec.name, "run": folder.name, "path": str(folder.path), "scores": folder.rows()}
        )
        return
    shown = columns()[:_MOST_SHOWN]
    rows = [row for row in folder.rows() if row["split"] == "test" and row["metric"] in shown]
    print_table(("calibrator", "metric", "value", "interval"), [_cells(row) for row in rows])
    if not request.quiet:
        named = f"{run_spec.name}: {folder.path}" if run_spec.name else str(folder.path)
        click.echo(f"\n{named}\n{usage_of_runs(folder.path)}")


def _searches(spec: Path, overrides: tuple[str, ...]) -> bool:
    """Whether the method of a spec is "auto"."""
    from equipoise.experiments.specs.parsing import set_key
    from equipoise.experiments.specs.toml import parse_override, read_toml

    table = read_toml(spec)
    for text in overrides:
        set_key(table, *parse_override(text))
    method = table.get("method")
    return (method.get("name") if isinstance(method, Mapping) else method) == "auto"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a score as it is shown, by its name and in its unit."""
    from equipoise.metrics.facts import metric_facts

    facts = metric_facts(row["metric"])
    ends = ", ".join(facts.number(row[end]) for end in ("low", "high"))
    return row["calibrator"], facts.title, facts.text(row["value"]), f"[{ends}]"
