"""The catalogue of networks: every factory has an entry that tells the truth."""

import re

import pytest
import torch

from equipoise import models
from equipoise.catalogue import CATALOGUE
from equipoise.models import Network, count_parameters

MODELS = CATALOGUE["models"]

UNITS = {"million": 1e6, "thousand": 1e3}


@pytest.mark.parametrize("key", MODELS)
def test_entry_builds_a_network(key):
    entry = MODELS[key]
    assert entry.key == key
    with torch.device("meta"):
        network = entry.make(n_classes=7)
    assert isinstance(network, Network)
    assert network.n_classes == 7


@pytest.mark.parametrize("key", MODELS)
def test_summary_counts_right(key):
    entry = MODELS[key]
    said = re.search(r"([\d.]+) (million|thousand) parameters", entry.summary)
    if said is None:
        assert key == "mlp"
        return
    with torch.device("meta"):
        count = count_parameters(entry.make())
    digits = len(said[1].partition(".")[2])
    assert round(count / UNITS[said[2]], digits) == float(said[1])


def test_every_factory_is_in_the_catalogue():
    made = {
        name
        for name in models.__all__
        if getattr(getattr(models, name), "__annotations__", {}).get("return") == "Network"
    }
    assert made - {"cifar_resnet", "load_published", "split_head"} == {
        entry.factory.__name__ for entry in MODELS.values()
    }


def test_published_names_are_titles():
    titles = {entry.title for entry in MODELS.values()}
    assert titles >= {
        "DeepLabV3",
        "DenseNet-121",
        "DenseNet-40",
        "Global Pooling CNN",
        "ResNet-110",
        "ResNet-110sd",
        "ResNet-34",
        "ResNet-50",
        "SwinV2-T",
        "Wide-ResNet-26-10",
    }
    assert len(titles) == len(MODELS)
