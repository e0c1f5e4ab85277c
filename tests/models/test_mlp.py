"""The perceptron."""

import pytest
import torch
from torch.nn import functional

from equipoise.models import mlp


def test_by_hand():
    network = mlp(n_classes=2, n_inputs=3, hidden=(4,))
    rows = torch.randn(5, 3)
    hidden = functional.relu(functional.linear(rows, network.body[1].weight, network.body[1].bias))
    torch.testing.assert_close(network(rows), network.head(hidden), rtol=1e-5, atol=1e-6)


def test_without_hidden_layers_it_is_linear():
    network = mlp(n_classes=2, n_inputs=6, hidden=())
    assert torch.equal(network.features(torch.ones(1, 2, 3)), torch.ones(1, 6))


def test_drops_only_while_training():
    network = mlp(hidden=(50,), dropout=0.5)
    rows = torch.randn(4, 64)
    assert not torch.equal(network(rows), network(rows))
    assert torch.equal(network.eval()(rows), network(rows))


@pytest.mark.parametrize("options", [{"n_inputs": 0}, {"hidden": (8, 0)}])
def test_refuses_empty_layers(options):
    with pytest.raises(ValueError, match=r"must be at least 1.*pass hidden=\(\)"):
        mlp(**options)
