"""What a fit found, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from math import nan
from types import MappingProxyType
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array, freeze
from equipoise.core.tables import Table

__all__ = ["FitResult"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitResult:
    """The outcome of fitting a calibrator.

    Attributes:
        parameters: What was learned, by name; read-only float64 arrays.
        words: The finding as a sentence: "overconfident: divide logits by 2.37".
        converged: Whether the certificate meets the solver's tolerance. False at a bound.
        iterations: Steps taken; 0 for closed forms.
        certificate: Evidence of optimality, such as ``gradient`` (largest slope left) and ``gap`` (estimated
            excess of the objective over its minimum). Empty for closed forms.
        warnings: Sentences about what is right but unusual: a bound reached, classes absent.
        notes: Sentences about how the rows were read: what exact zeros counted as.
        floor: What an exact probability of 0 counts as: one number, or one for each of two classes. Empty if the fit
            rows had no zeros.
        nll_before: Mean negative log-likelihood of the fit rows before the calibrator.
        nll_after: The same after the calibrator; never larger than before.
        identity: True if the calibrator was given up because it made the fit rows worse; the calibrator then
            returns its input.
        groups: Names of the groups that have parameters of their own; empty for calibrators of all rows.

    Example:
        >>> print(FitResult(parameters={}, words="nothing to do", nll_before=0.5, nll_after=0.5))
        nothing to do (NLL 0.5 -> 0.5)
    """

    parameters: Mapping[str, Array]
    words: str
    converged: bool = True
    iterations: int = 0
    certificate: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floor: tuple[float, ...] = ()
    nll_before: float = nan
    nll_after: float = nan
    identity: bool = False
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        frozen = {name: freeze(np.asarray(value, np.float64)) for name, value in self.parameters.items()}
        object.__setattr__(self, "parameters", MappingProxyType(frozen))
        object.__setattr__(self, "certificate", MappingProxyType(dict(self.certificate)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by content, since read-only views of dictionaries cannot be."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {
            "parameters": {name: np.array(value) for name, value in self.parameters.items()},
            "certificate": dict(self.certificate),
        }
        return partial(FitResult, **{**values, **plain}), ()

    def _repr_html_(self) -> str:
        rows = [
            ("NLL before", f"{self.nll_before:.6g}"),
            ("NLL after", f"{self.nll_after:.6g}"),
            ("converged", "yes" if self.converged else "no"),
            *((name, _value_text(value)) for name, value in self.parameters.items()),
            *((name, f"{value:.3g}") for name, value in self.certificate.items()),
        ]
        return Table.of(("", ""), rows, caption=self.words, notes=(*self.notes, *self.warnings)).to_html()

    def __str__(self) -> str:
        status = "" if self.converged else ", not converged"
        line = f"{self.words} (NLL {self.nll_before:.6g} -> {self.nll_after:.6g}{status})"
        return "\n".join([line, *self.notes, *(f"! {warning}" for warning in self.warnings)])


def _value_text(value: Array) -> str:
    return f"{float(value):.6g}" if value.ndim == 0 else f"{value.size} numbers, shape {value.shape}"
