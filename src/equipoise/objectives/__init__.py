"""Methods that need more than a loss: mutual learning, gamma-net, pruning, ensembles."""

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message
from equipoise.objectives.deep_ensemble import DeepEnsemble, MeanNetwork, MemberCalibration
from equipoise.objectives.differentiated_mutual_learning import DifferentiatedMutualLearning
from equipoise.objectives.distilled_ensemble import DistilledEnsemble
from equipoise.objectives.gamma_net import GammaMap, GammaNet
from equipoise.objectives.kl import kl_divergence
from equipoise.objectives.last_layer_laplace import LaplaceNetwork, LastLayerLaplace
from equipoise.objectives.mc_dropout import MCDropout, MonteCarloNetwork
from equipoise.objectives.meta_label_smoothing import MetaLabelSmoothing, Smoothing
from equipoise.objectives.mutual_learning import MutualLearning
from equipoise.objectives.parts import Parts
from equipoise.objectives.pruned import Pruned
from equipoise.objectives.sample_adaptive import SampleAdaptive
from equipoise.objectives.snapshot_ensemble import SnapshotEnsemble, SnapshotNetwork
from equipoise.objectives.supervised import Supervised
from equipoise.objectives.weight_average import WeightAverage

__all__ = [
    "DeepEnsemble",
    "DifferentiatedMutualLearning",
    "DistilledEnsemble",
    "GammaMap",
    "GammaNet",
    "LaplaceNetwork",
    "LastLayerLaplace",
    "MCDropout",
    "MeanNetwork",
    "MemberCalibration",
    "MetaLabelSmoothing",
    "MonteCarloNetwork",
    "MutualLearning",
    "Parts",
    "Pruned",
    "SampleAdaptive",
    "Smoothing",
    "SnapshotEnsemble",
    "SnapshotNetwork",
    "Supervised",
    "WeightAverage",
    "kl_divergence",
]
