"""Learner (moves a network), Objective (abstract), the loop, checkpoints, history."""

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message
from equipoise.training.averaging import AveragedWeights
from equipoise.training.batch_source import BatchLike, Inputs, Loader, Source, gather
from equipoise.training.checkpoint import load_weights, read_checkpoint, write_checkpoint
from equipoise.training.cycle import Cycle
from equipoise.training.dense import DenseScores, boundary_mask, score_dense
from equipoise.training.diagnosis import watch
from equipoise.training.evaluation import evaluating, predict
from equipoise.training.hardware import Hardware
from equipoise.training.history import History
from equipoise.training.learner import Learner
from equipoise.training.loop import fit
from equipoise.training.objective import HeldOut, Objective, Step
from equipoise.training.recipes import FOCAL_RECIPE, Optimizer, Recipe
from equipoise.training.sam import sam_perturbation
from equipoise.training.schedules import Constant, Cosine, Cyclic, HoldFrom, MultiStep, Schedule, WarmUp
from equipoise.training.selection import Selection

__all__ = [
    "FOCAL_RECIPE",
    "AveragedWeights",
    "BatchLike",
    "Constant",
    "Cosine",
    "Cycle",
    "Cyclic",
    "DenseScores",
    "Hardware",
    "HeldOut",
    "History",
    "HoldFrom",
    "Inputs",
    "Learner",
    "Loader",
    "MultiStep",
    "Objective",
    "Optimizer",
    "Recipe",
    "Schedule",
    "Selection",
    "Source",
    "Step",
    "WarmUp",
    "boundary_mask",
    "evaluating",
    "fit",
    "gather",
    "load_weights",
    "predict",
    "read_checkpoint",
    "sam_perturbation",
    "score_dense",
    "watch",
    "write_checkpoint",
]
