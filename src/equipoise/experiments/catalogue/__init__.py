"""The catalogue: every method by name, as literal dictionaries of frozen entries, one file per room."""

from collections.abc import Mapping
from types import MappingProxyType

from equipoise.experiments.catalogue.calibrators import CALIBRATORS
from equipoise.experiments.catalogue.datasets import DATASETS
from equipoise.experiments.catalogue.entry import Entry, Fidelity
from equipoise.experiments.catalogue.losses import LOSSES, RENAMED
from equipoise.experiments.catalogue.match import check_match
from equipoise.experiments.catalogue.metrics import METRICS
from equipoise.experiments.catalogue.models import MODELS
from equipoise.experiments.catalogue.objectives import OBJECTIVES
from equipoise.experiments.catalogue.penalties import PAIRS, PENALTIES
from equipoise.experiments.catalogue.plugins import failed_plugins, load_plugins, register_in
from equipoise.experiments.catalogue.recipes import RECIPES

__all__ = ["CATALOGUE", "Entry", "Fidelity", "add_plugins", "check_match", "missing_names", "register"]

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


def register(room: str, entry: Entry) -> None:
    """Add a method under a name of its own, for this process; packages offer theirs by entry points.

    Args:
        room: ``"losses"``, ``"penalties"``, ``"objectives"``, ``"models"`` or ``"recipes"``.
        entry: What it is. Objectives are called with ``parts``, networks with ``n_classes``.

    Raises:
        SpecError: If the room takes none, or the name is taken.

    Example:
        >>> register("attic", CATALOGUE["losses"]["ce"])
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no room that takes methods of others 'attic'; known: losses, ...
    """
    register_in(CATALOGUE, room, entry)


def add_plugins() -> None:
    """Add what installed packages offer under names of their own, once.

    Example:
        >>> add_plugins()
    """
    load_plugins(CATALOGUE)


def missing_names() -> dict[str, str]:
    """Return what to say of names that are not in the catalogue: renamed methods, and those of plugins that failed.

    Example:
        >>> missing_names()["logit_norm"][:26]
        "it is 'logit_penalty' now,"
    """
    return {**RENAMED, **failed_plugins()}
