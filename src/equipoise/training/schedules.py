"""How the learning rate moves: pure functions of time, so a resumed run needs nothing to be restored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

__all__ = ["Constant", "Cosine", "Cyclic", "HoldFrom", "MultiStep", "Schedule", "WarmUp"]


@dataclass(frozen=True)
class Schedule(ABC):
    """The learning rate over a run, as a multiple of its first value.

    Example:
        >>> isinstance(Cosine(), Schedule)
        True
    """

    @abstractmethod
    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return the multiple at a time of the run.

        Args:
            epoch: Epochs gone by; 1.5 is the middle of the second.
            epochs: Length of the run.
        """


@final
@dataclass(frozen=True)
class Constant(Schedule):
    """The same rate throughout.

    Example:
        >>> Constant().factor(7, epochs=10)
        1.0
    """

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return 1."""
        return 1.0


@final
@dataclass(frozen=True)
class MultiStep(Schedule):
    """A lower rate from each of some epochs on.

    Attributes:
        milestones: Epochs, counted from 0, at whose start the rate falls.
        gamma: What it is multiplied with each time.

    Example:
        >>> [round(MultiStep((2, 3)).factor(epoch, epochs=4), 4) for epoch in range(4)]
        [1.0, 1.0, 0.1, 0.01]
    """

    milestones: tuple[int, ...] = (150, 250)
    gamma: float = 0.1

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return ``gamma`` to the power of the milestones passed."""
        return float(self.gamma ** sum(epoch >= milestone for milestone in self.milestones))


@final
@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from the first rate down to a last one.

    Attributes:
        floor: The last rate as a multiple of the first.

    Example:
        >>> [round(Cosine().factor(epoch, epochs=4), 4) for epoch in (0, 2, 4)]
        [1.0, 0.5, 0.0]
    """

    floor: float = 0.0

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return the height of the cosine."""
        share = min(max(epoch / epochs, 0.0), 1.0)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * share)) / 2


@final
@dataclass(frozen=True)
class WarmUp(Schedule):
    """A straight rise from a small rate, then another schedule as if it had begun at the end of the rise.

    Attributes:
        length: Epochs of the rise.
        then: What follows.
        start: The first rate as a multiple of the full one.

    Example:
        >>> [round(WarmUp(2, then=Cosine()).factor(epoch, epochs=6), 3) for epoch in (0, 1, 2, 4, 6)]
        [0.01, 0.505, 1.0, 0.5, 0.0]
    """

    length: float = 5
    then: Schedule = field(default_factory=Constant)
    start: float = 0.01

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return the height of the rise, or of what follows it."""
        if epoch < self.length:
            return self.start + (1 - self.start) * epoch / self.length
        return self.then.factor(epoch - self.length, epochs=max(1, round(epochs - self.length)))


@final
@dataclass(frozen=True)
class HoldFrom(Schedule):
    """Another schedule first, then a constant learning rate, as stochastic weight averaging has it.

    Attributes:
        share: Share of all epochs after which the learning rate is constant.
        first: The schedule until then.
        level: The constant learning rate as a multiple of the initial one.

    Example:
        >>> [HoldFrom(0.75, first=Cosine(), level=0.5).factor(epoch, epochs=4) for epoch in (0, 3, 4)]
        [1.0, 0.5, 0.5]
    """

    share: float = 0.75
    first: Schedule = field(default_factory=Constant)
    level: float = 0.5

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return the factor of the first schedule, or the constant one."""
        return self.level if epoch >= self.share * epochs else self.first.factor(epoch, epochs=epochs)


@final
@dataclass(frozen=True)
class Cyclic(Schedule):
    """Half a cosine down to 0, again and again, as snapshot ensembles have it.

    Attributes:
        n_cycles: Number of cycles, of equal length.

    Example:
        >>> [round(Cyclic(2).factor(epoch, epochs=4), 4) for epoch in (0, 1, 2, 3)]
        [1.0, 0.5, 1.0, 0.5]
    """

    n_cycles: int = 5

    def factor(self, epoch: float, *, epochs: int) -> float:
        """Return the height of the current cosine."""
        length = epochs / self.n_cycles
        return (1 + math.cos(math.pi * (epoch % length) / length)) / 2
