"""Settings that are sought on ``tune``, one after the other, each by what the ones before it gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

from equipoise.core.errors import require
from equipoise.core.seeds import derive_seed
from equipoise.experiments.engines import RunSummary
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.tuning import Search, TunedMethod, badness, is_whole, scaled

__all__ = ["Sought", "search_settings"]

#: Does runs, finished ones being passed over, and tells which are done.
Engine = Callable[[Sequence[Spec]], RunSummary]


class Sought(NamedTuple):
    """What was tried at one place: data, network, recipe and seed.

    Attributes:
        choice: The choice, with every setting that was tried.
        specs: The run at each.
    """

    choice: TunedMethod
    specs: Sequence[Spec]


def search_settings(
    choices: Sequence[TunedMethod],
    places: Mapping[str, Spec],
    pin: Callable[[Sequence[Spec]], Sequence[Spec]],
    engine: Engine,
) -> dict[tuple[str, str], Sought]:
    """Seek settings at every place; places are sought at beside each other, trials of one place follow each other.

    The trials of a place depend on its seed and on what was found before, so a search that was stopped tries the same
    settings again and finds their runs done.

    Args:
        choices: Those of a comparison; only the ones with a search are heeded.
        places: A spec of each place, by a name.
        pin: Makes specs ready to run.
        engine: Runs them.

    Returns:
        What was tried, by label of the choice and name of the place.

    Raises:
        MissingExtraError: If Optuna is not installed.
    """
    studies = {
        (choice.label, name): _Study(choice, choice.search, place)
        for choice in choices
        if choice.search is not None
        for name, place in places.items()
    }
    for number in range(max((study.trials for study in studies.values()), default=0)):
        asked = [study for study in studies.values() if number < study.trials]
        specs = pin([study.ask() for study in asked])
        done = {run.name: run for run in engine(specs).done}
        for study, spec in zip(asked, specs, strict=True):
            study.tell(spec, done.get(spec.identity))
    return {key: study.sought() for key, study in studies.items()}


@final
class _Study:
    """One search: what to try next, and what was found."""

    def __init__(self, choice: TunedMethod, search: Search, place: Spec) -> None:
        optuna = require("optuna", extra="optuna", purpose="seek settings")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(
            seed=derive_seed(place.seed, "search", choice.label) % 2**32,
            n_startup_trials=max(2, search.trials // 3),
        )
        self._study = optuna.create_study(sampler=sampler)
        self._study.enqueue_trial(choice.settings[0])
        self._failed = optuna.trial.TrialState.FAIL
        self._choice, self._search, self._place = choice, search, place
        self._trial: Any = None
        self._tried: dict[str, tuple[dict[str, Any], Spec]] = {}
        self.trials = search.trials

    def ask(self) -> Spec:
        """Return the run to try next."""
        self._trial = self._study.ask()
        setting = {knob: _suggest(self._trial, knob, values) for knob, values in self._search.knobs.items()}
        candidate = self._search.candidate(setting, where=self._choice.label)
        table = replace(self._place, method=candidate).to_table()
        self._setting = setting
        return Spec.from_table(table, where=self._choice.label, home=self._place.home)

    def tell(self, spec: Spec, run: RunFolder | None) -> None:
        """Take in what a run gave on ``tune``; a setting that comes again counts once."""
        self._tried.setdefault(spec.identity, (self._setting, spec))
        if run is None:
            self._study.tell(self._trial, state=self._failed)
            return
        tune = run.predictions("tune")
        judged = scaled(tune)[0] if self._choice.by == "nll_scaled" else tune
        card = run.scores().test
        value = badness(judged, by=self._choice.by, n_bins=card.n_bins, closed=card.closed)
        self._study.tell(self._trial, value)

    def sought(self) -> Sought:
        """Return all that was tried, in order."""
        settings = tuple(setting for setting, _ in self._tried.values())
        specs = [spec for _, spec in self._tried.values()]
        return Sought(
            replace(self._choice, settings=settings, candidates=tuple(s.method for s in specs)), specs
        )


def _suggest(trial: Any, knob: str, values: Any) -> Any:
    if not isinstance(values, Mapping):
        return trial.suggest_categorical(knob, list(values))
    low, high, step = values["low"], values["high"], values.get("step")
    if is_whole(values):
        return trial.suggest_int(knob, low, high, step=step or 1, log=bool(values.get("log")))
    return trial.suggest_float(knob, low, high, step=step, log=bool(values.get("log")))
