"""Draw the figures of the README and the guides.

python tools/docs/figures.py               # docs/figures/*.png
python tools/docs/figures.py decide trust  # these only
python tools/docs/figures.py --gallery     # docs/figures/gallery-*.png, by the code of docs/gallery.md
"""

import sys
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import schematics
from page_figures import PAGE_FIGURES, names_of
from torch.nn import functional

from equipoise import Predictions, losses, metrics, plots, read_predictions, theory

HERE = Path(__file__).resolve().parents[2] / "docs" / "figures"


def embedded() -> tuple[Predictions, Predictions]:
    """Return a network's predictions on half of the rows before and after temperature scaling.

    The temperature is fitted on the other half.
    """
    with as_file(files("equipoise").joinpath("data", "embedded", "digits.npz")) as path:
        rows = read_predictions(path)
    order = np.random.default_rng(0).permutation(len(rows))
    fit, judge = rows.take(order[: len(rows) // 2]), rows.take(order[len(rows) // 2 :])
    grid = np.geomspace(0.5, 8, 200)
    temperature = grid[metrics.sweep_temperatures(fit, temperatures=grid).nll.argmin()]
    return judge, judge.with_scores(logits=judge.logits / temperature)


def reliability():
    before, after = embedded()
    curves = {
        "An overconfident network": metrics.reliability_curve(before, n_bins=10),
        "After temperature scaling": metrics.reliability_curve(after, n_bins=10),
    }
    return plots.draw_reliability_diagrams(curves)


def three_models():
    """Draw an overconfident, an underconfident and a calibrated model of the same rows."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(20_000, 5))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    scales = {"Overconfident": 2.5, "Underconfident": 0.4, "Calibrated": 1.0}
    return plots.draw_reliability_diagrams(
        {
            name: metrics.reliability_curve(Predictions(logits=scale * logits, labels=labels), n_bins=10)
            for name, scale in scales.items()
        }
    )


def gradients():
    pulls = {
        "cross-entropy": functional.cross_entropy,
        "label smoothing 0.05": losses.label_smoothing_loss,
        "focal, γ = 3": losses.focal_loss,
        "dual focal, γ = 5": losses.dual_focal_loss,
        "inverse focal": losses.inverse_focal_loss,
        "Brier": losses.brier_loss,
        "margin 10": losses.margin_loss,
        "entropy": losses.entropy_regularized_loss,
    }
    return plots.draw_gradient_weights({name: theory.gradient_weight(f) for name, f in pulls.items()}).figure


def save(drawn, path: Path) -> None:
    figure = drawn if hasattr(drawn, "savefig") else drawn.figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, facecolor="white")
    print(path)


FIGURES = {
    "reliability": reliability,
    "three-models": three_models,
    "gradients": gradients,
    "splits": schematics.splits,
    "run-stages": schematics.run_stages,
    "auto": schematics.ladder,
    "body-and-head": schematics.body_and_head,
    "forms": schematics.forms,
    "cluster": schematics.cluster,
    "serving": schematics.serving,
    "adapters": schematics.adapters,
    "objective-step": schematics.objective_step,
    "own-code": schematics.own_code,
    # Printed by .ci/torch_free.py --sizes.
    "sizes": partial(schematics.sizes, {"equipoise": 451, "equipoise[torch]": 1308, "equipoise[all]": 1656}),
    **PAGE_FIGURES,
}


def main() -> None:
    if sys.argv[1:] == ["--gallery"]:
        names_of("gallery.md", folder=HERE)
        return
    for name in sys.argv[1:] or FIGURES:
        save(FIGURES[name](), HERE / f"{name}.png")


if __name__ == "__main__":
    main()
