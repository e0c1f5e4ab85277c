"""Samplers: which settings of a tuned method are tried next. A grid proposes all at once, Optuna one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Protocol, final

from equipoise.core.errors import require
from equipoise.core.seeds import derive_seed
from equipoise.experiments.specs.tuning import TunedMethod, is_whole

__all__ = ["GridSampler", "OptunaSampler", "Sampler", "first_settings", "make_sampler"]

Setting = Mapping[str, Any]


class Sampler(Protocol):
    """Proposes settings, and receives what they gave."""

    def ask(self) -> list[dict[str, Any]]:
        """Return the settings to try next; nothing if all have been tried."""

    def tell(self, setting: Setting, value: Callable[[], float] | None) -> None:
        """Take in what a setting gave on ``tune``, the lower the better; None if its run failed."""


def first_settings(tuned: TunedMethod) -> list[dict[str, Any]]:
    """Return the settings that are known before anything is run: a whole grid, or where a search begins.

    A grid is ordered by how many steps its settings are from the first of every list, so that lists that begin with the
    simplest value give a grid that does.

    Example:
        >>> from equipoise.experiments.specs.tuning import parse_tuned_method
        >>> grid = {"name": "mbls", "choose": {"margin": [6.0, 10.0], "strength": [0.1, 0.2]}}
        >>> [setting["margin"] for setting in first_settings(parse_tuned_method(grid, where="doc"))]
        [6.0, 6.0, 10.0, 10.0]
    """
    if tuned.sampler != "grid":
        return [{name: _first(values) for name, values in tuned.space.items()}]
    sizes = [range(len(values)) for values in tuned.space.values()]
    order = sorted(product(*sizes), key=lambda steps: (sum(steps), steps))
    return [
        {name: values[step] for (name, values), step in zip(tuned.space.items(), steps, strict=True)}
        for steps in order
    ]


def _first(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values[0]
    return values["low"] if is_whole(values) else float(values["low"])


def make_sampler(tuned: TunedMethod, seed: int) -> Sampler:
    """Return the sampler of a tuned method for one seed.

    Raises:
        MissingExtraError: If Optuna is needed and not installed.
    """
    return GridSampler(tuned) if tuned.sampler == "grid" else OptunaSampler(tuned, seed)


@final
class GridSampler:
    """Proposes every setting of a grid at once."""

    def __init__(self, tuned: TunedMethod) -> None:
        self._left = first_settings(tuned)

    def ask(self) -> list[dict[str, Any]]:
        """Return all settings, the simplest first; nothing when asked again."""
        found, self._left = self._left, []
        return found

    def tell(self, setting: Setting, value: Callable[[], float] | None) -> None:
        """Ignore what a setting gave: a grid is fixed."""


@final
class OptunaSampler:
    """Proposes one setting at a time, by what the ones before it gave.

    Its proposals depend on the seed and on what was found before, so that a search that was stopped tries the same
    settings again and finds their runs done.
    """

    def __init__(self, tuned: TunedMethod, seed: int) -> None:
        optuna = require("optuna", extra="optuna", purpose="search settings")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(
            seed=derive_seed(seed, "search", tuned.label) % 2**32, n_startup_trials=max(2, tuned.trials // 3)
        )
        self._study = optuna.create_study(sampler=sampler)
        self._study.enqueue_trial(first_settings(tuned)[0])
        self._failed = optuna.trial.TrialState.FAIL
        self._space, self._left = tuned.space, tuned.trials
        self._trial: Any = None

    def ask(self) -> list[dict[str, Any]]:
        """Return one setting; nothing after the last trial."""
        if not self._left:
            return []
        self._left -= 1
        self._trial = self._study.ask()
        return [{name: _suggest(self._trial, name, values) for name, values in self._space.items()}]

    def tell(self, setting: Setting, value: Callable[[], float] | None) -> None:
        """Take in what the setting gave."""
        if value is None:
            self._study.tell(self._trial, state=self._failed)
        else:
            self._study.tell(self._trial, value())


def _suggest(trial: Any, name: str, values: Any) -> Any:
    if not isinstance(values, Mapping):
        return trial.suggest_categorical(name, list(values))
    low, high, step = values["low"], values["high"], values.get("step")
    if is_whole(values):
        return trial.suggest_int(name, low, high, step=step or 1, log=bool(values.get("log")))
    return trial.suggest_float(name, low, high, step=step, log=bool(values.get("log")))
