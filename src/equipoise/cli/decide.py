"""``equipoise decide``: from confidences to decisions with a guarantee."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from equipoise.cli.inputs import OPTION_OF, column_options, one_or_several
from equipoise.cli.options import FRACTION, PERCENT, json_option, quiet_option
from equipoise.cli.output import check_output, print_json
from equipoise.core.escaping import listed, visible

if TYPE_CHECKING:
    from equipoise.core.predictions import Predictions
    from equipoise.core.reading import Columns
    from equipoise.decisions import CostRule, PredictionSets

__all__ = ["command"]

#: Classes or groups that are named where they have too few rows.
_SHOWN = 5
_THRESHOLDS = ("--max-error", "--min-coverage")
#: Goals that look at an option; with another goal it would have no effect.
_GOES_WITH = {
    "level": _THRESHOLDS,
    "score": _THRESHOLDS,
    "shared": _THRESHOLDS,
    "by": (*_THRESHOLDS, "--sets"),
    "method": ("--sets",),
    "conditional": ("--sets",),
    "holdout": ("--sets",),
    "seed": ("--sets",),
}

_EXAMPLES = """\b
Examples:
  equipoise decide labelled.csv --max-error 5% --confidence 95% -o decision.json
  equipoise decide labelled.csv --max-error 5% --by site -o decision.json
  equipoise decide labelled.csv --min-coverage 80%
  equipoise decide labelled.csv --cost wrong=10 --cost abstain=1 -o decision.json
  equipoise decide labelled.npz --sets 90% --method aps -o sets.json
"""


class _Cost(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "NAME=COST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name and the cost: ``wrong=10``, ``abstain=1`` or ``right=0``."""
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition("=")
        try:
            cost = float(number)
        except ValueError:
            cost = float("nan")
        if name.strip() not in ("wrong", "abstain", "right") or not math.isfinite(cost):
            self.fail(f"{value!r} must be wrong=NUMBER, abstain=NUMBER or right=NUMBER.", param, ctx)
        return name.strip(), cost


@click.command("decide", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--max-error", type=PERCENT, help="Accept predictions so that at most this share of them is wrong."
)
@click.option(
    "--min-coverage",
    type=PERCENT,
    help="Accept at least this share; the least error that can be promised is found.",
)
@click.option(
    "--cost",
    "costs",
    type=_Cost(),
    multiple=True,
    help="Choose the action of least expected cost: --cost wrong=10 --cost abstain=1, and right=0 by default.",
)
@click.option(
    "--cost-matrix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Costs of every action (column) for every true class (line), .csv or .json.",
)
@click.option(
    "--sets", "set_coverage", type=PERCENT, help="Fit sets of classes that contain the true one this often."
)
@click.option(
    "--method",
    type=click.Choice(["lac", "aps", "raps"]),
    default="lac",
    show_default=True,
    help="Sets: smallest on average, adaptive, or adaptive without long tails.",
)
@click.option(
    "--conditional",
    type=click.Choice(["class", "group"]),
    help="Sets: hold the coverage within every class, or within every group of --by.",
)
@click.option(
    "--holdout",
    type=FRACTION,
    help="Sets: fit on the other rows, and judge coverage and sizes on this share.",
)
@click.option(
    "--confidence",
    "level",
    type=PERCENT,
    default="95%",
    show_default=True,
    help="Probability with which the promise must hold.",
)
@click.option(
    "--score",
    default="confidence",
    show_default=True,
    metavar="NAME",
    help="What orders the predictions: confidence, margin, entropy, or a numeric column.",
)
@click.option("--by", metavar="NAME", help="Column of groups; the promise then holds in every group (Holm).")
@click.option("--shared", is_flag=True, help="With --by: one threshold that holds in every group.")
@click.option(
    "--calibrator",
    "calibrator_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A calibrator, fitted on other rows by `equipoise calibrate`, that is applied first and saved along.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed of --holdout and of randomized sets.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Where the decision goes, .json.")
@partial(column_options, names={**OPTION_OF, "confidence": "--confidence-column"})
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    max_error: float | None,
    min_coverage: float | None,
    costs: tuple[tuple[str, float], ...],
    cost_matrix: Path | None,
    set_coverage: float | None,
    method: Literal["lac", "aps", "raps"],
    conditional: Literal["class", "group"] | None,
    holdout: float | None,
    level: float,
    score: str,
    by: str | None,
    shared: bool,
    calibrator_path: Path | None,
    seed: int,
    output: Path | None,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> int:
    """Certify a threshold, fit prediction sets or choose the cheapest action on FILE, and save the decision.

    FILE has labelled predictions that nothing was fitted on. With --max-error, the most lenient threshold is found
    whose accepted predictions are wrong at most so often, with the given confidence over the draw of the labelled rows.
    `equipoise apply DECISION FILE` decides new rows, and `equipoise audit FILE --decision DECISION` tests the promise
    on new labels.

    Exit codes: 0 a decision was found, 1 nothing can be certified, 2 the files or options are wrong.
    """
    goals = {
        "--max-error": max_error is not None,
        "--min-coverage": min_coverage is not None,
        "--cost": bool(costs) or cost_matrix is not None,
        "--sets": set_coverage is not None,
    }
    if sum(goals.values()) != 1:
        raise click.UsageError(f"The decision must have exactly one goal: give one of {', '.join(goals)}.")
    _check_options(next(name for name, is_given in goals.items() if is_given))
    if set_coverage is not None and by is not None and conditional != "group":
        raise click.UsageError("--by with --sets needs --conditional group, coverage within every group.")
    if costs and cost_matrix is not None:
        raise click.UsageError("--cost and --cost-matrix exclude each other; use one of them.")
    if output is not None:
        check_output(output, (".json",))
    rows = _read(files, columns, score, by)
    calibrator = None
    if calibrator_path is not None:
        from equipoise.calibrators import load
        from equipoise.decisions.promise import unchecked_calibrator_notes

        calibrator = load(calibrator_path)
        for note in unchecked_calibrator_notes(calibrator, rows):
            click.echo(f"Warning: {note}", err=True)
    if set_coverage is not None:
        sets = {
            "method": method,
            "coverage": set_coverage,
            "conditional": conditional,
            "by": by,
            "seed": seed,
        }
        return _fit_sets(rows, sets, holdout, calibrator, output, as_json=as_json, quiet=quiet)
    if goals["--cost"]:
        rule = _cost_rule(costs, cost_matrix, rows, calibrator)
        return _choose_actions(rows, rule, output, as_json=as_json, quiet=quiet)
    from equipoise.decisions import certify_threshold

    found = certify_threshold(
        rows,
        max_error=max_error,
        min_coverage=min_coverage,
        confidence=level,
        score=score,
        by=by,
        shared=shared,
        calibrator=calibrator,
    )
    one = found.certificate
    usable = one.certified or any(group.certified for group in one.groups.values())
    if as_json:
        print_json(one.as_dict())
    else:
        click.echo(one.describe(score))
    if usable:
        _save(found, output, quiet=quiet or as_json)
    return 0 if usable else 1


def _check_options(goal: str) -> None:
    """Raise if an option was given that has no effect on this goal."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and goal not in _GOES_WITH.get(name, (goal,)):
            raise click.UsageError(
                f"{parameter.opts[0]} has no effect with {goal}; it goes with {' and '.join(_GOES_WITH[name])}. Leave "
                "it out."
            )


def _read(files: tuple[str, ...], columns: Columns, score: str, by: str | None) -> Predictions:
    from equipoise.core.reading import read_predictions
    from equipoise.decisions.scores import SCORES

    groups = [name for name in (by, None if score in SCORES else score) if name is not None]
    if groups:
        columns["groups"] = list(dict.fromkeys(groups))
    return read_predictions(one_or_several(files), **columns)


def _save(decision: Any, output: Path | None, *, quiet: bool) -> None:
    if output is None:
        return
    decision.save(output)
    if not quiet:
        click.echo(f"Saved {output}. Use it:  equipoise apply {output} FILE -o decided.csv")


def _cost_rule(
    costs: tuple[tuple[str, float], ...], matrix: Path | None, rows: Predictions, calibrator: Any
) -> CostRule:
    from dataclasses import replace

    from equipoise.decisions import CostRule, read_costs

    if matrix is not None:
        return replace(read_costs(matrix, class_names=rows.class_names), calibrator=calibrator)
    given = dict(costs)
    if len(given) < len(costs):
        raise click.UsageError("--cost must be given once for each of wrong, abstain and right.")
    missing = [name for name in ("wrong", "abstain") if name not in given]
    if missing:
        raise click.UsageError(f"--cost {missing[0]}=NUMBER is missing.")
    return CostRule(
        wrong=given["wrong"], abstain=given["abstain"], right=given.get("right", 0.0), calibrator=calibrator
    )


def _choose_actions(
    rows: Predictions, rule: CostRule, output: Path | None, *, as_json: bool, quiet: bool
) -> int:
    summary = rule(rows).summary()
    if as_json:
        print_json(summary.as_dict())
    else:
        click.echo(summary.describe())
    _save(rule, output, quiet=quiet or as_json)
    return 0


def _fit_sets(
    rows: Predictions,
    settings: dict[str, Any],
    holdout: float | None,
    calibrator: Any,
    output: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    from equipoise.core.predictions.combine import divide
    from equipoise.decisions import PredictionSets

    if settings["conditional"] != "group":
        settings = settings | {"by": None}
    judged = None
    if holdout is not None:
        ((rows, judged),) = divide([rows], 1 - holdout, seed=settings["seed"])
    sets = PredictionSets(**settings).fit(rows, calibrator=calibrator)
    low, high = sets.expected_coverage()
    content: dict[str, Any] = {"settings": settings, "limits": sets.limits, "counts": sets.counts}
    content |= {"n": len(rows), "expected_low": low, "expected_high": high}
    usable = len(sets.full_keys) < len(sets.limits)
    lines = _describe_sets(sets, rows)
    if judged is not None and usable:
        report = sets(judged).report()
        content["report"] = report.as_dict()
        lines.append(f"On held-out rows: {report.describe()}")
        if calibrator is not None:
            raw = PredictionSets(**settings).fit(rows)(judged).report()
            content["report_without_calibrator"] = raw.as_dict()
            lines.append(f"Without the calibrator: {raw.describe()}")
    if as_json:
        print_json(content)
    else:
        click.echo("\n".join(lines))
    if usable:
        _save(sets, output, quiet=quiet or as_json)
    return 0 if usable else 1


def _describe_sets(sets: PredictionSets, rows: Predictions) -> list[str]:
    """Return what fitted sets promise, and which classes or groups have too few rows."""
    full, by_class = sets.full_keys, sets.conditional == "class"
    needed = f"since {100 * sets.coverage:.4g}% needs at least {sets.fewest_rows:,} calibration rows"
    if sets.conditional is not None:
        needed += " of the class" if by_class else " of the group"
    most = "at most " if sets.conditional else ""
    if len(full) == len(sets.limits):
        return [
            f"Every set contains all classes, {needed}, got {most}{max(sets.counts.values()):,}. Label more rows."
        ]
    low, high = sets.expected_coverage()
    where = f" within every {'class' if by_class else visible(sets.by)}" if sets.conditional else ""
    lines = [
        f"Sets by {sets.method}, fitted on {len(rows):,} rows: the true class is in its set with probability at least "
        f"{100 * sets.coverage:.4g}%{where}.",
        f"Given these rows, the coverage{' of all rows' if where else ''} is between {100 * low:.1f}% and "
        f"{100 * high:.1f}% (95% interval).",
    ]
    if full:
        names = rows.class_names if by_class else None
        shown = [key if names is None else names[int(key)] for key in full]
        count = f"{len(full):,} of {len(sets.limits):,}"
        what = (
            f"Every set contains {count} classes"
            if by_class
            else f"Sets of {count} groups contain all classes"
        )
        lines.append(f"{what}, {needed}: {listed(shown, _SHOWN)}.")
    return lines
