"""Datasets by name, the four splits, augmentation, batches that carry the sample index."""

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message
from equipoise.data.arrays import from_arrays
from equipoise.data.augment import (
    Augment,
    cut_mix,
    cut_out,
    erase_boxes,
    flip_images,
    jitter_colors,
    mix_up,
    normalize,
    shift_crop,
)
from equipoise.data.batching import Batch, Batches, batches
from equipoise.data.columns import from_columns
from equipoise.data.corruptions import CORRUPTIONS, corrupt, corrupt_images
from equipoise.data.dataset import Dataset, FileRecord
from equipoise.data.loading import COMMON_OPTIONS, READERS, load
from equipoise.data.ood import OodPair, ood_pair
from equipoise.data.ordering import trim_documents
from equipoise.data.readers.mixtures import GaussianMixture, gaussian_mixture
from equipoise.data.row_splits import (
    VALIDATIONS,
    focal_split,
    meta_part,
    stratified_split,
    whole_validation,
)
from equipoise.data.shift import Shift, load_shift, read_shifts
from equipoise.data.stand_ins import STAND_INS, stand_in
from equipoise.data.streaming import ImageFiles
from equipoise.data.subsets import few, long_tail

__all__ = [
    "COMMON_OPTIONS",
    "CORRUPTIONS",
    "READERS",
    "STAND_INS",
    "VALIDATIONS",
    "Augment",
    "Batch",
    "Batches",
    "Dataset",
    "FileRecord",
    "GaussianMixture",
    "ImageFiles",
    "OodPair",
    "Shift",
    "batches",
    "corrupt",
    "corrupt_images",
    "cut_mix",
    "cut_out",
    "erase_boxes",
    "few",
    "flip_images",
    "focal_split",
    "from_arrays",
    "from_columns",
    "gaussian_mixture",
    "jitter_colors",
    "load",
    "load_shift",
    "long_tail",
    "meta_part",
    "mix_up",
    "normalize",
    "ood_pair",
    "read_shifts",
    "shift_crop",
    "stand_in",
    "stratified_split",
    "trim_documents",
    "whole_validation",
]
