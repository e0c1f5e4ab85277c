"""Network itself: what it takes for a head, and what it refuses."""

import pytest
import torch
from torch import nn

from equipoise.models import Network, count_parameters, small_cnn


def test_sizes_are_read_from_linear_and_convolution():
    assert (
        Network(nn.Identity(), nn.Linear(7, 3)).n_features,
        Network(nn.Identity(), nn.Linear(7, 3)).n_classes,
    ) == (7, 3)
    dense = Network(nn.Identity(), nn.Conv2d(6, 4, 1))
    assert (dense.n_features, dense.n_classes) == (6, 4)


def test_a_head_of_several_layers_is_refused():
    with pytest.raises(TypeError, match=r"one layer.*got Sequential.*put the rest in the body"):
        Network(nn.Flatten(), nn.Sequential(nn.Linear(4, 3)))


@pytest.mark.parametrize("n_classes", [1, 0, -2])
def test_fewer_than_two_classes_are_refused(n_classes):
    with pytest.raises(ValueError, match=f"`n_classes` must be at least 2, got {n_classes}"):
        small_cnn(n_classes=n_classes)


def test_layout_is_left_alone_unless_asked_for():
    body = nn.Conv2d(3, 4, 3)
    Network(body, nn.Linear(4, 2))
    assert body.weight.is_contiguous()
    assert not body.weight.is_contiguous(memory_format=torch.channels_last)


def test_layout_spares_video_kernels():
    body = nn.Sequential(nn.Conv3d(3, 4, 3), nn.Flatten(2), nn.Unflatten(2, (6, 6)), nn.Conv2d(4, 4, 3))
    network = Network(body, nn.Conv2d(4, 2, 1), channels_last=True)
    assert network.body[3].weight.is_contiguous(memory_format=torch.channels_last)


def test_counting_counts_a_shared_weight_once():
    layer = nn.Linear(3, 3, bias=False)
    assert count_parameters(nn.Sequential(layer, layer)) == 9
