"""A hyperparameter of a method at several settings: what each gave on the rows that choose and on those that judge."""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.evaluate.scorecard import Score

__all__ = ["Sweep"]


class Sweep(NamedTuple):
    """One method at several settings.

    Attributes:
        name: The method, as tables call it.
        metric: What was measured: a key of the scorecard.
        settings: What was tried, the simplest first.
        tune: What each setting gave on the rows that the choice was made by.
        test: What each gave on the rows that took no part in it.
        chosen: How many seeds chose each setting.
        words: What was chosen, how, and what it cost, in a sentence.
        own_settings: Whether every seed tried settings of its own, as a search does; each score is then of one seed.

    Example:
        >>> none = Score(0.5, 0.4, 0.6)
        >>> sweep = Sweep("focal", "nll", ({"gamma": 1.0}, {"gamma": 2.0}), (none, none), (none, none), (1, 0), "")
        >>> sweep.values, sweep.parameters
        ((1.0, 2.0), 'gamma')
    """

    name: str
    metric: str
    settings: tuple[dict[str, Any], ...]
    tune: tuple[Score, ...]
    test: tuple[Score, ...]
    chosen: tuple[int, ...]
    words: str
    own_settings: bool = False

    @property
    def parameters(self) -> str:
        """Names of the hyperparameters."""
        return ", ".join(self.settings[0])

    @property
    def values(self) -> tuple[float, ...] | None:
        """The settings as numbers, if there is one hyperparameter and it takes numbers; else None."""
        found = [value for setting in self.settings for value in setting.values()]
        numbers = [float(value) for value in found if isinstance(value, (int, float))]
        return tuple(numbers) if len(numbers) == len(found) == len(self.settings) else None

    @property
    def ascending(self) -> tuple[int, ...]:
        """Places of the settings as a line goes through them: by value if they are numbers, else as they were tried.

        Example:
            >>> none = (Score(0.5, 0.4, 0.6),) * 2
            >>> Sweep("focal", "nll", ({"gamma": 3.0}, {"gamma": 1.0}), none, none, (1, 0), "").ascending
            (1, 0)
        """
        values = self.values
        places = range(len(self.settings))
        return tuple(places) if values is None else tuple(sorted(places, key=values.__getitem__))

    @property
    def labels(self) -> tuple[str, ...]:
        """The settings as texts."""
        return tuple(
            ", ".join(f"{value}" if len(setting) == 1 else f"{key}={value}" for key, value in setting.items())
            for setting in self.settings
        )
