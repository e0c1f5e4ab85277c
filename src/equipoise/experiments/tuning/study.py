"""A study: settings of a tuned method are proposed, run and reported back, and one is chosen on ``tune``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from equipoise.calibrators import Calibrator, TemperatureScaling
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate import score
from equipoise.evaluate.selection import CRITERIA, select_candidate, selection_value
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.tuning import TunedMethod
from equipoise.experiments.tuning.choices import SeedChoice
from equipoise.experiments.tuning.samplers import make_sampler

__all__ = ["Study", "choose_setting", "scale_half"]


@final
class Study:
    """The settings of a tuned method that are tried with one dataset, network, recipe and seed.

    Args:
        tuned: The method.
        place: A spec with the dataset, network, recipe and seed.
    """

    def __init__(self, tuned: TunedMethod, place: Spec) -> None:
        self.tuned, self.place = tuned, place
        self._sampler = make_sampler(tuned, place.seed)
        self._settings: dict[Spec, dict[str, Any]] = {}

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The settings that were tried, in order; a setting that comes again counts once."""
        return list(self._settings.values())

    @property
    def specs(self) -> list[Spec]:
        """The run at each setting."""
        return list(self._settings)

    def ask(self) -> list[Spec]:
        """Return the runs to do next; nothing if all are done."""
        found = []
        for setting in self._sampler.ask():
            spec = replace(self.place, method=self.tuned.method_at(setting))
            self._settings.setdefault(spec, setting)
            found.append(spec)
        return found

    def tell(self, spec: Spec, run: RunFolder | None) -> None:
        """Take in what a run gave on ``tune``; None if it failed."""

        def value() -> float:
            assert run is not None
            tune, card = run.predictions("tune"), run.scores().test
            scaled = scale_half(tune)[0] if self.tuned.by == "nll_scaled" else tune
            metric = CRITERIA[self.tuned.by]
            return selection_value(scaled, metric=metric, n_bins=card.n_bins, closed=card.closed)

        self._sampler.tell(self._settings[spec], None if run is None else value)


def choose_setting(
    study: Study,
    names: Sequence[str],
    runs: Mapping[str, RunFolder],
    listed: Iterable[str],
    earlier: Iterable[SeedChoice] = (),
) -> SeedChoice:
    """Choose for one seed; only then look at what each setting gave on ``test``.

    An earlier choice among the same runs, as they are now, is used again.

    Args:
        study: What was tried.
        names: The run of each setting, by name.
        runs: Finished runs by name.
        listed: Runs that are methods on their own.
        earlier: Earlier choices.
    """
    by, rule = study.tuned.by, study.tuned.rule
    choice = SeedChoice(
        label=study.tuned.label,
        seed=study.place.seed,
        by=by,
        rule=rule,
        settings=tuple(study.settings),
        runs=tuple(names),
        listed=tuple(name for name in names if name in set(listed)),
    )
    if any(name not in runs for name in names):
        return choice
    found = [runs[name] for name in names]
    choice = replace(choice, fingerprints=tuple(run.fingerprint() for run in found))
    for one in earlier:
        same = ("by", "rule", "runs", "fingerprints")
        if all(getattr(one, key) == getattr(choice, key) for key in same):
            return replace(choice, tune=one.tune, test=one.test, index=one.index)
    tune = [run.predictions("tune") for run in found]
    cards = [run.scores().cards for run in found]
    first = cards[0]["test"]
    bins: dict[str, Any] = {"n_bins": first.n_bins, "closed": first.closed}
    if by == "nll_scaled":
        options = {"level": first.level, "n_resamples": first.n_resamples, "seed": first.seed, **bins}
        scaled = [scale_half(part) for part in tune]
        tune = [half for half, _ in scaled]
        cards = [
            {"tune": score(half, **options), "test": score(fitted(run.predictions("test")), **options)}
            for run, (half, fitted) in zip(found, scaled, strict=True)
        ]
    metric = CRITERIA[by]
    index = select_candidate(tune, metric=metric, rule=rule, **bins)
    on_tune, on_test = (
        tuple(
            (card[split][metric].value, card[split][metric].low, card[split][metric].high) for card in cards
        )
        for split in ("tune", "test")
    )
    return replace(choice, index=index, tune=on_tune, test=on_test)


def scale_half(tune: Predictions) -> tuple[Predictions, Calibrator]:
    """Return half of ``tune``, always the same, after temperature scaling fitted on the other half, and the calibrator.

    Example:
        >>> rows = Predictions(logits=[[3.0, 0.0]] * 8, labels=[0, 0, 0, 1] * 2, split="tune")
        >>> half, fitted = scale_half(rows)
        >>> len(half), fitted.kind
        (4, 'temperature')
    """
    order = numpy_generator(0, "halves of tune").permutation(len(tune))
    half = len(tune) // 2
    fitted = TemperatureScaling().fit(tune.take(np.sort(order[:half])))
    return fitted(tune.take(np.sort(order[half:]))), fitted
