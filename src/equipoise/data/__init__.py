"""Datasets by name, the four splits, augmentation, batches that carry the sample index."""

from equipoise.data.arrays import from_arrays
from equipoise.data.augment import Augment, cut_out, flip_images, mix_up, normalise, shift_crop
from equipoise.data.batches import Batch, Batches, batches
from equipoise.data.corruptions import CORRUPTIONS, corrupt, corrupt_images
from equipoise.data.dataset import Dataset, FileRecord
from equipoise.data.loading import READERS, load
from equipoise.data.long_tail import long_tail
from equipoise.data.ood import OodPair, ood_pair
from equipoise.data.ordering import trim_documents
from equipoise.data.readers.mixtures import GaussianMixture, gaussian_mixture
from equipoise.data.row_splits import focal_split, stratified_split
from equipoise.data.streaming import ImageFiles

__all__ = [
    "CORRUPTIONS",
    "READERS",
    "Augment",
    "Batch",
    "Batches",
    "Dataset",
    "FileRecord",
    "GaussianMixture",
    "ImageFiles",
    "OodPair",
    "batches",
    "corrupt",
    "corrupt_images",
    "cut_out",
    "flip_images",
    "focal_split",
    "from_arrays",
    "gaussian_mixture",
    "load",
    "long_tail",
    "mix_up",
    "normalise",
    "ood_pair",
    "shift_crop",
    "stratified_split",
    "trim_documents",
]
