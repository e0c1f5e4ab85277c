"""Train neural classifiers whose confidence can be believed, and prove it."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__ = [
    "PairedDifferences",
    "Predictions",
    "Scorecard",
    "__version__",
    "auto",
    "compare",
    "compare_methods",
    "compare_seeds",
    "iter_predictions",
    "load_model",
    "read_predictions",
    "register",
    "score",
    "write_predictions",
]

#: The only place where the version is written.
__version__ = "0.1.0"

if TYPE_CHECKING:
    from equipoise import calibrators as calibrators
    from equipoise import catalogue as catalogue
    from equipoise import cli as cli
    from equipoise import core as core
    from equipoise import data as data
    from equipoise import decisions as decisions
    from equipoise import evaluate as evaluate
    from equipoise import experiments as experiments
    from equipoise import integrations as integrations
    from equipoise import kernels as kernels
    from equipoise import losses as losses
    from equipoise import metrics as metrics
    from equipoise import models as models
    from equipoise import objectives as objectives
    from equipoise import plots as plots
    from equipoise import report as report
    from equipoise import testing as testing
    from equipoise import theory as theory
    from equipoise import training as training
    from equipoise.catalogue import register
    from equipoise.core import Predictions, iter_predictions, read_predictions, write_predictions
    from equipoise.evaluate import PairedDifferences, Scorecard, compare, score
    from equipoise.experiments import compare_methods, compare_seeds
    from equipoise.integrations.auto import auto
    from equipoise.integrations.saved_model import load_model
else:
    # Nothing below is loaded before it is used: torch takes seconds, and `equipoise --help` needs none of it.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "PairedDifferences": "equipoise.evaluate",
            "Predictions": "equipoise.core",
            "Scorecard": "equipoise.evaluate",
            "auto": "equipoise.integrations.auto",
            "compare": "equipoise.evaluate",
            "compare_methods": "equipoise.experiments",
            "compare_seeds": "equipoise.experiments",
            "iter_predictions": "equipoise.core",
            "load_model": "equipoise.integrations.saved_model",
            "read_predictions": "equipoise.core",
            "register": "equipoise.catalogue",
            "score": "equipoise.evaluate",
            "write_predictions": "equipoise.core",
        },
        modules=(
            "calibrators",
            "catalogue",
            "cli",
            "core",
            "data",
            "decisions",
            "evaluate",
            "experiments",
            "integrations",
            "kernels",
            "losses",
            "metrics",
            "models",
            "objectives",
            "plots",
            "report",
            "testing",
            "theory",
            "training",
        ),
    )
