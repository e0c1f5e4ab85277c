"""Pictures of finished runs, by kind: each reads run folders and calls one function of ``plots``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from equipoise import plots
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.plots.style import new_figure

if TYPE_CHECKING:
    from equipoise.evaluate import Score
    from equipoise.experiments.folder import RunFolder
    from equipoise.experiments.run_groups import RunGroup

__all__ = ["NEEDS_NO_RUNS", "PLOTS", "PlotOptions", "plot_runs"]


@final
@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What a picture shows; each kind heeds what it needs.

    Attributes:
        metric: A key of the scorecard.
        calibrator: After which map; None is without, or all where the kind shows variants.
        column: A column of the training history, or what an adaptive loss learnt.
        smooth: Epochs of a moving average.
        knob: A parameter of methods.
        family: A corruption.
        gamma: Of the theory's curves.
    """

    metric: str = "ece"
    calibrator: str | None = None
    column: str | None = None
    smooth: int = 1
    knob: str | None = None
    family: str | None = None
    gamma: float = 5.0


def _first(group: RunGroup) -> dict[str, RunFolder]:
    return {label: runs[0] for label, runs in group.methods.items()}


def _cards(group: RunGroup, options: PlotOptions) -> dict[str, Any]:
    name = options.calibrator or "identity"
    found = {label: list(group.seeds(label, name).values()) for label in group.methods}
    return {label: scores[0].test for label, scores in found.items() if scores}


def _reliability(group: RunGroup, options: PlotOptions) -> Any:
    return plots.draw_reliability_diagrams(
        {name: card.curve for name, card in _cards(group, options).items()}
    )


def _confidence(group: RunGroup, options: PlotOptions) -> Any:
    cards = _cards(group, options)
    figure, grid = new_figure(1, len(cards), size=(3.4 * len(cards), 3.0))
    for (name, card), ax in zip(cards.items(), grid[0], strict=True):
        plots.draw_confidence_histogram(card.curve, ax=ax).set_title(name, fontsize="medium")
    return figure


def _history(group: RunGroup, options: PlotOptions) -> Any:
    histories = {label: run.history() for label, run in _first(group).items()}
    column = options.column or f"tune_{options.metric}"
    return plots.draw_history(histories, column=column, smooth=options.smooth)


def _logits(group: RunGroup, options: PlotOptions) -> Any:
    return plots.draw_max_logits({label: run.predictions("test") for label, run in _first(group).items()})


def _gammas(group: RunGroup, options: PlotOptions) -> Any:
    return _multipliers(group, options, of="gamma")


def _multipliers(group: RunGroup, options: PlotOptions, *, of: str = "") -> Any:
    histories = {label: run.history() for label, run in _first(group).items()}
    found = {
        (label, name): rows
        for label, rows in histories.items()
        for name in _learnt(rows)
        if options.column in (None, name) and name.startswith(of)
    }
    if not found:
        what = f"{of}s" if of else "multipliers, gammas or the like"
        raise DataError(f"plot: no run learnt {what}. Only losses that adapt, and gamma-net, do.")
    figure, grid = new_figure(len(found), 1, size=(4.5, 3.2 * len(found)))
    for ((label, name), rows), (ax,) in zip(found.items(), grid, strict=True):
        plots.draw_multipliers(rows, buffer=name, ax=ax).set_title(label, fontsize="medium")
    return figure


def _learnt(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = rows[0] if rows else {}
    stems = [name.removesuffix("_mean") for name in names if name.endswith("_mean")]
    return [stem for stem in stems if {f"{stem}_min", f"{stem}_max"} <= set(names)]


def _knob(group: RunGroup, options: PlotOptions) -> Any:
    """Draw all runs that set a parameter, tried ones included, at every setting over its seeds."""
    from equipoise.experiments.results import score_over_seeds

    found: dict[float, list[str]] = {}
    for name, spec in group.specs.items():
        value = {**spec.method.parameters, **spec.method.loss_parameters}.get(options.knob or "")
        if isinstance(value, (int, float)):
            found.setdefault(float(value), []).append(name)
    if len(found) < 2:
        raise DataError(
            f"plot: --knob must name a parameter that runs set to two numbers at least, got {options.knob!r}. "
            "Compare a method at several settings, or let `choose` try them."
        )
    calibrator = options.calibrator or "identity"
    scores = {
        metric: [
            score_over_seeds([group.scores[name][calibrator] for name in names], metric)
            for _, names in sorted(found.items())
        ]
        for metric in dict.fromkeys((options.metric, "accuracy"))
    }
    return plots.draw_knob(sorted(found), scores, knob=str(options.knob))


def _sweep(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.tuning_outcome import sweep_of

    sweeps = [sweep for sweep in map(sweep_of, group.choices.values()) if sweep is not None]
    if not sweeps:
        raise DataError("plot: nothing was chosen here. Give a method `choose` in the comparison.")
    figure, grid = new_figure(1, len(sweeps), size=(4.5 * len(sweeps), 3.4))
    for sweep, ax in zip(sweeps, grid[0], strict=True):
        plots.draw_sweep(sweep, ax=ax)
    return figure


def _bars(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.results import score_over_seeds

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
    return plots.draw_accuracy_against_error(_cards(group, options), metric=options.metric)


def _shift(group: RunGroup, options: PlotOptions) -> Any:
    from equipoise.experiments.shift_scores import shift_scores

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
    figure, grid = new_figure(1, len(wanted), size=(4.5 * len(wanted), 3.4))
    for family, ax in zip(wanted, grid[0], strict=True):
        plots.draw_shift(found, family=family, metric=options.metric, ax=ax)
    return figure


#: Every kind of picture of runs.
PLOTS: dict[str, Callable[[RunGroup, PlotOptions], Any]] = {
    "bars": _bars,
    "confidence": _confidence,
    "gammas": _gammas,
    "history": _history,
    "knob": _knob,
    "logits": _logits,
    "multipliers": _multipliers,
    "reliability": _reliability,
    "shift": _shift,
    "sweep": _sweep,
    "tradeoff": _tradeoff,
}
#: Pictures of theory, which need none.
NEEDS_NO_RUNS: dict[str, Callable[[PlotOptions], Any]] = {
    "penalties": lambda options: plots.draw_penalties(),
    "phi": lambda options: plots.draw_phi(gamma=options.gamma),
}


def plot_runs(kind: str, runs: Sequence[RunFolder], options: PlotOptions | None = None) -> dict[str, Any]:
    """Draw a kind of picture for each dataset, network and recipe among finished runs.

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
    draw: Any = look_up(kind, {**PLOTS, **NEEDS_NO_RUNS}, what="kind of picture")
    if kind in NEEDS_NO_RUNS:
        return {kind: _figure(draw(chosen))}
    from equipoise.experiments.run_groups import group_runs

    groups = [group for group in group_runs(runs) if group.methods]
    if not groups:
        raise DataError("plot: no finished run to draw. `equipoise runs` shows what is there.")
    known = list(dict.fromkeys(name for group in groups for name in group.calibrators))
    if chosen.calibrator not in (None, *known):
        raise DataError(f"plot: no run was scored after {chosen.calibrator!r}. There are {', '.join(known)}.")
    return {group.slug: _figure(draw(group, chosen)) for group in groups}


def _figure(drawn: Any) -> Any:
    """Return the figure of axes, or the figure itself."""
    return drawn.figure if hasattr(drawn, "plot") else drawn
