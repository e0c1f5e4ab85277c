"""Where runs happen: this machine, or a Ray cluster. Same code, same folders."""

from equipoise.experiments.engines.local import run_locally
from equipoise.experiments.engines.progress import RunSummary
from equipoise.experiments.engines.ray import run_on_ray

__all__ = ["RunSummary", "run_locally", "run_on_ray"]
