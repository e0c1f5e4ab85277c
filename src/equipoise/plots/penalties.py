"""How penalties on a logit distance grow: the hinge, and those of class-adaptive smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Literal

from equipoise.core.errors import needs
from equipoise.plots.style import COLORS, DASHES, GRAY, dress, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

__all__ = ["draw_penalties"]


def draw_penalties(
    *,
    penalty: Literal["phr", "p2", "p3"] = "phr",
    rhos: Sequence[float] = (1.0, 2.0, 5.0, 10.0),
    multipliers: Sequence[float] = (0.1, 0.5, 1.0, 2.0),
) -> Figure:
    r"""Draw a penalty with varying weight rho, with varying multiplier lambda, and next to the other penalties.

    The horizontal axis is how far a constraint is broken; left of 0 it holds. Rho varies at a multiplier of 1, the
    multiplier varies at a rho of 1, and penalties are compared at 1 and 1.

    Args:
        penalty: The penalty that varies: ``"phr"``, ``"p2"`` or ``"p3"``.
        rhos: Weights of the penalty (*rho* in the paper), above 0.
        multipliers: Multipliers of the constraint (*lambda* in the paper), at least 0.

    Returns:
        The figure.

    Example:
        >>> [ax.get_title(loc="left") for ax in draw_penalties().axes]
        ['PHR, $\\lambda$ = 1', 'PHR, $\\rho$ = 1', '$\\lambda$ = 1, $\\rho$ = 1']

    Reference:
        Liu et al. (2023), Class adaptive network calibration, figure 2.
    """
    if not all(value > 0 for value in rhos) or not all(value >= 0 for value in multipliers):
        raise ValueError(
            "draw_penalties: `rhos` must be above 0 and `multipliers` at least 0, got "
            f"{list(rhos)} and {list(multipliers)}."
        )
    with needs("torch", extra="torch", purpose="draw penalties of losses"):
        import torch
    from equipoise.losses.cals_alm import PENALTIES

    broken = torch.linspace(-2.0, 2.0, 401, dtype=torch.float64, device="cpu")

    def values(key: str, multiplier: float, rho: float) -> Tensor:
        return PENALTIES[key](broken, broken.new_tensor(multiplier), broken.new_tensor(rho))

    name = penalty.upper()
    varying = {
        rf"{name}, $\lambda$ = 1": {rf"$\rho$ = {rho:g}": values(penalty, 1.0, rho) for rho in rhos},
        rf"{name}, $\rho$ = 1": {
            rf"$\lambda$ = {multiplier:g}": values(penalty, multiplier, 1.0) for multiplier in multipliers
        },
        r"$\lambda$ = 1, $\rho$ = 1": {
            **{key.upper(): values(key, 1.0, 1.0) for key in PENALTIES},
            "hinge": broken.clamp(min=0),
        },
    }
    figure, grid = panels(len(varying), size=(3.4, 3.2))
    for (title, lines), (ax,) in zip(varying.items(), grid, strict=True):
        ax.axvline(0, color=GRAY, linewidth=1, linestyle=":")
        for (label, drawn), color, dash in zip(lines.items(), cycle(COLORS), cycle(DASHES), strict=False):
            ax.plot(broken, drawn, color=color, linestyle=dash, linewidth=1.8, label=label)
        ax.set_ylim(-2.2, 5.0)
        ax.legend(frameon=False, fontsize="small", loc="upper left")
        dress(ax, x="how far the constraint is broken", y="penalty", title=title)
    return figure
