"""Figures of finished runs, by kind: each reads run folders and calls one function of ``plots``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, final

from equipoise import plots
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.plots.style import add_caption, panels, share_legend, wrapped

if TYPE_CHECKING:
    from equipoise.evaluate import Score
    from equipoise.experiments.results.groups import RunGroup
    from equipoise.experiments.runs.folder import RunFolder
    from equipoise.experiments.runs.scores import RunScores
    from equipoise.experiments.specs.run import MethodSpec
    from equipoise.metrics.curve import ReliabilityCurve

__all__ = ["NEEDS_NO_RUNS", "PLOTS", "PlotOptions", "plot_runs"]


@final
@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What a figure shows; each kind heeds what it needs.

    Attributes:
        metric: A key of the scorecard.
        calibrator: After which map; None is without, or all where the kind shows variants.
        column: A column of the training history, or what an adaptive loss learned.
        smooth: Epochs of a moving average.
        ema: Decay of an exponential moving average; 0 is none.
        parameter: A hyperparameter of methods.
        family: A corruption.
        gamma: Of the theory's curves.
        rivals: Probabilities of the rival in the theory's curves, beside focal loss.
        n_bins: Bins of reliability diagrams and histograms; None leaves those that the runs were scored with.
    """

    metric: str = "ece"
    calibrator: str | None = None
    column: str | None = None
    smooth: int = 1
    ema: float = 0.0
    parameter: str | None = None
    family: str | None = None
    gamma: float = 1.0
    rivals: tuple[float, ...] = (0.3,)
    n_bins: int | None = None


def _scored(group: RunGroup, options: PlotOptions) -> dict[str, list[RunScores]]:
    """Return what all seeds of each method scored after the calibrator of the figure."""
    name = options.calibrator or "identity"
    found = {label: list(group.seeds(label, name).values()) for label in group.methods}
    return {label: scores for label, scores in found.items() if scores}


def _title(label: str, n_seeds: int) -> str:
    """Return the title of a panel that shows the mean of a method's seeds."""
    return f"{label}\nmean of {n_seeds} seeds" if n_seeds > 1 else label


def _curves(group: RunGroup, options: PlotOptions) -> dict[str, tuple[ReliabilityCurve, Score | None]]:
    """Return the mean curve of each method's seeds by its title, with the mean ECE where there are several."""
    from equipoise.experiments.results.means import score_over_seeds
    from equipoise.metrics.curve import mean_curve

    return {
        _title(label, len(scores)): (
            mean_curve([one.test.curve for one in scores]),
            score_over_seeds(scores, "ece") if len(scores) > 1 else None,
        )
        for label, scores in _scored(group, options).items()
    }


def _reliability(group: RunGroup, options: PlotOptions) -> Any:
    found = _curves(group, options)
    return plots.draw_reliability_diagrams(
        {name: curve for name, (curve, _) in found.items()},
        errors={name: error for name, (_, error) in found.items() if error is not None},
    )


def _confidence(group: RunGroup, options: PlotOptions) -> Any:
    found = _curves(group, options)
    figure, grid = panels(len(found), size=(3.6, 3.0))
    for (name, (curve, _)), (ax,) in zip(found.items(), grid, strict=True):
        plots.draw_confidence_histogram(curve, title=name, ax=ax)
    return figure


def _histories(group: RunGroup) -> dict[str, list[list[dict[str, Any]]]]:
    """Return the history of every seed of each method."""
    return {label: [run.history() for run in runs] for label, runs in group.methods.items()}


def _history(group: RunGroup, options: PlotOptions) -> Any:
    column = options.column or f"tune_{options.metric}"
    return plots.draw_history(_histories(group), column=column, smooth=options.smooth, ema=options.ema)


def _logits(group: RunGroup, options: PlotOptions) -> Any:
    return plots.draw_max_logits(
        {label: [run.predictions("test") for run in runs] for label, runs in group.methods.items()}
    )


def _rivals(group: RunGroup, options: PlotOptions) -> Any:
    import numpy as np

    from equipoise.metrics import rival_probability

    return plots.draw_rivals(
        {
            label: np.concatenate([rival_probability(run.predictions("test")) for run in runs])
            for label, runs in group.methods.items()
        }
    )


def _gammas(group: RunGroup, options: PlotOptions) -> Any:
    return _multipliers(group, options, of="gamma")


def _multipliers(group: RunGroup, options: PlotOptions, *, of: str = "") -> Any:
    found = {
        (label, name): seeds
        for label, seeds in _histories(group).items()
        for name in _learned(seeds[0])
        if options.column in (None, name) and name.startswith(of)
    }
    if not found:
        what = f"{of}s" if of else "multipliers, gammas or the like"
        raise DataError(f"plot: no run learned {what}. Only losses that adapt, and gamma-net, do.")
    figure, grid = panels(len(found), size=(4.0, 3.2), most=3)
    for ((label, name), seeds), (ax,) in zip(found.items(), grid, strict=True):
        plots.draw_multipliers(_over_seeds(seeds, name), buffer=name, ax=ax)
        ax.set_title(wrapped(_title(label, len(seeds))), fontsize="medium")
    share_legend([ax for (ax,) in grid])
    return figure


def _over_seeds(seeds: Sequence[Sequence[Mapping[str, Any]]], name: str) -> list[dict[str, float]]:
    """Return what seeds learned epoch by epoch: the mean of their means, the least and the largest of all."""
    parts: dict[str, Callable[[list[float]], float]] = {"mean": fmean, "min": min, "max": max}
    epochs: dict[float, list[Mapping[str, Any]]] = {}
    for row in (row for rows in seeds for row in rows if all(f"{name}_{end}" in row for end in parts)):
        epochs.setdefault(row["epoch"], []).append(row)
    return [
        {
            "epoch": epoch,
            **{f"{name}_{end}": f([row[f"{name}_{end}"] for row in rows]) for end, f in parts.items()},
        }
        for epoch, rows in sorted(epochs.items())
    ]


def _learned(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = rows[0] if rows else {}
    stems = [name.removesuffix("_mean") for name in names if name.endswith("_mean")]
    return [stem for stem in stems if {f"{stem}_min", f"{stem}_max"} <= set(names)]


def _hyperparameter(group: RunGroup, options: PlotOptions) -> Any:
    """Draw all runs that set a hyperparameter, tried ones included: one line per method, one point per value."""
    from equipoise.evaluate import mean_over_seeds
    from equipoise.experiments.results.means import score_over_seeds

    name, calibrator = options.parameter or "", options.calibrator or "identity"
    found: dict[str, dict[float | str, list[RunScores]]] = {}
    for run, spec in group.specs.items():
        method = spec.method
        loss_options = {} if method.loss is None else method.loss.options
        value = {**method.options, **loss_options, **method.recipe}.get(name)
        if isinstance(value, (int, float, str)) and calibrator in group.scores[run]:
            values = found.setdefault(_without(method, name).label, {})
            values.setdefault(value, []).append(group.scores[run][calibrator])
    if not any(len(values) > 1 for values in found.values()):
        raise DataError(
            f"plot: expected in --parameter a hyperparameter that runs of one method set to two values at least, got "
            f"{options.parameter!r}. Compare a method at several settings, or let `choose` try them."
        )
    metrics = list(dict.fromkeys((options.metric, "accuracy")))

    def table(
        score: Callable[[list[RunScores], str], Score],
    ) -> dict[str, dict[str, dict[float | str, Score]]]:
        return {
            metric: {
                label: {value: score(runs, metric) for value, runs in values.items()}
                for label, values in found.items()
            }
            for metric in metrics
        }

    def score_on_tune(runs: list[RunScores], metric: str) -> Score:
        return mean_over_seeds(metric, [run.cards["tune"][metric] for run in runs], level=runs[0].test.level)

    every = [run for values in found.values() for runs in values.values() for run in runs]
    # Only scores without a calibrator are known on both splits.
    has_tune = all("tune" in run.cards and run.cards["tune"].scores.keys() >= set(metrics) for run in every)
    return plots.draw_hyperparameter(
        table(score_over_seeds),
        tune=table(score_on_tune) if has_tune else None,
        parameter=name,
        title=_seeds_title([len(runs) for values in found.values() for runs in values.values()]),
    )


def _without(method: MethodSpec, name: str) -> MethodSpec:
    """Return a method whose label does not name a hyperparameter."""

    def rest(options: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in options.items() if key != name}

    loss = None if method.loss is None else replace(method.loss, options=rest(method.loss.options))
    return replace(method, title=None, options=rest(method.options), recipe=rest(method.recipe), loss=loss)


def _seeds_title(numbers: Sequence[int]) -> str | None:
    few, many = min(numbers), max(numbers)
    if many == 1:
        return None
    return f"means of {many if few == many else f'{few} to {many}'} seeds"


def _sweep(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.tuning.choices import sweep_of

    sweeps = [sweep for sweep in map(sweep_of, group.choices.values()) if sweep is not None]
    if not sweeps:
        raise DataError("plot: nothing was chosen here. Give a method `choose` in the comparison.")
    figure, grid = panels(len(sweeps), size=(4.2, 3.4), most=3)
    for sweep, (ax,) in zip(sweeps, grid, strict=True):
        plots.draw_sweep(sweep, ax=ax)
    share_legend([ax for (ax,) in grid])
    return figure


def _bars(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.results.means import score_over_seeds

    wanted = [options.calibrator] if options.calibrator else group.calibrators
    scores: dict[str, dict[str, Score]] = {}
    for label in group.methods:
        for calibrator in wanted:
            seeds = list(group.seeds(label, calibrator).values())
            if seeds:
                found = score_over_seeds(seeds, options.metric)
                name = "no calibrator" if calibrator == "identity" else calibrator
                scores.setdefault(label, {})[name] = found
    return plots.draw_bars(scores, metric=options.metric)


def _tradeoff(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.results.means import score_over_seeds

    found = _scored(group, options)
    scores = {
        label: {key: score_over_seeds(parts, key) for key in dict.fromkeys((options.metric, "accuracy"))}
        for label, parts in found.items()
    }
    title = _seeds_title([len(parts) for parts in found.values()])
    return plots.draw_accuracy_against_error(scores, metric=options.metric, title=title)


def _shift(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.results.shift import shift_scores

    calibrator = options.calibrator or "identity"
    found = [one for one in shift_scores(group) if one.calibrator == calibrator]
    families = list(dict.fromkeys(name for one in found for name in one.curves))
    if not families:
        raise DataError("plot: no run was scored under shift. Name test sets in `shift` of the comparison.")
    wanted = (
        families
        if options.family is None
        else [look_up(options.family, dict.fromkeys(families, options.family), what="corruption")]
    )
    figure, grid = panels(len(wanted), size=(4.0, 3.4), most=3)
    for family, (ax,) in zip(wanted, grid, strict=True):
        plots.draw_shift(found, family=family, metric=options.metric, ax=ax)
    share_legend([ax for (ax,) in grid])
    return figure


#: Every kind of figure of runs.
PLOTS: dict[str, Callable[[RunGroup, PlotOptions], Any]] = {
    "bars": _bars,
    "confidence": _confidence,
    "gammas": _gammas,
    "history": _history,
    "hyperparameter": _hyperparameter,
    "logits": _logits,
    "multipliers": _multipliers,
    "reliability": _reliability,
    "rivals": _rivals,
    "shift": _shift,
    "sweep": _sweep,
    "tradeoff": _tradeoff,
}
#: Figures of what comes out of calibrators.
_AFTER_CALIBRATORS = frozenset({"bars", "confidence", "hyperparameter", "reliability", "shift", "tradeoff"})
#: Figures of theory, which need none.
NEEDS_NO_RUNS: dict[str, Callable[[PlotOptions], Any]] = {
    "penalties": lambda options: plots.draw_penalties(),
    "phi": lambda options: plots.draw_phi(gamma=options.gamma, rivals=(0.0, *options.rivals)),
}


def plot_runs(kind: str, runs: Sequence[RunFolder], options: PlotOptions | None = None) -> dict[str, Any]:
    """Draw a kind of figure for each dataset, network and recipe among finished runs.

    Args:
        kind: A key of :data:`PLOTS` or :data:`NEEDS_NO_RUNS`.
        runs: Finished runs.
        options: What it shows.

    Returns:
        Figures by a short name.

    Raises:
        SpecError: If there is no such kind.
        DataError: If the runs do not hold what it shows.

    Example:
        >>> list(plot_runs("phi", []))
        ['phi']
    """
    chosen = options or PlotOptions()
    draw: Any = look_up(kind, {**PLOTS, **NEEDS_NO_RUNS}, what="kind of figure")
    if kind in NEEDS_NO_RUNS:
        return {kind: _figure(draw(chosen))}
    from equipoise.experiments.results.groups import group_runs

    groups = [group for group in group_runs(runs, n_bins=chosen.n_bins) if group.methods]
    if not groups:
        raise DataError("plot: no finished run to draw. `equipoise runs` shows what is there.")
    known = list(dict.fromkeys(name for group in groups for name in group.calibrators))
    if chosen.calibrator not in (None, *known):
        raise DataError(f"plot: no run was scored after {chosen.calibrator!r}. There are {', '.join(known)}.")
    figures = {group.slug: _figure(draw(group, chosen)) for group in groups}
    if kind in _AFTER_CALIBRATORS:
        for group in groups:
            add_caption(figures[group.slug], _warnings(kind, group, chosen))
    return figures


def _warnings(kind: str, group: RunGroup, options: PlotOptions) -> list[str]:
    """Return what the fits of the calibrators that a figure shows warned of."""
    from equipoise.experiments.results.means import fit_warnings

    wanted = group.calibrators if kind == "bars" and not options.calibrator else [options.calibrator]
    return [
        f"{label} + {name}: {text}."
        for name in wanted
        if name is not None
        for label in group.methods
        for text in fit_warnings(group.seeds(label, name))
    ]


def _figure(drawn: Any) -> Any:
    """Return the figure of axes, or the figure itself."""
    return drawn.figure if hasattr(drawn, "plot") else drawn
