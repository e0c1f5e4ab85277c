"""The catalogue: every method by name, as literal dictionaries of frozen entries, one file per room."""

from collections.abc import Mapping
from types import MappingProxyType

from equipoise.experiments.catalogue.calibrators import CALIBRATORS
from equipoise.experiments.catalogue.datasets import DATASETS
from equipoise.experiments.catalogue.entry import Entry, Fidelity
from equipoise.experiments.catalogue.losses import LOSSES
from equipoise.experiments.catalogue.match import check_match
from equipoise.experiments.catalogue.metrics import METRICS
from equipoise.experiments.catalogue.models import MODELS
from equipoise.experiments.catalogue.objectives import OBJECTIVES
from equipoise.experiments.catalogue.penalties import PAIRS, PENALTIES
from equipoise.experiments.catalogue.recipes import RECIPES

__all__ = ["CATALOGUE", "Entry", "Fidelity", "check_match"]

#: Every entry, by room and key.
CATALOGUE: Mapping[str, Mapping[str, Entry]] = MappingProxyType(
    {
        "losses": LOSSES,
        "penalties": PENALTIES,
        "pairs": PAIRS,
        "objectives": OBJECTIVES,
        "calibrators": CALIBRATORS,
        "metrics": METRICS,
        "datasets": DATASETS,
        "models": MODELS,
        "recipes": RECIPES,
    }
)
