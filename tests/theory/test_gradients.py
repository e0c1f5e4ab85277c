"""The pull of losses by confidence."""

import numpy as np
import pytest
from torch.nn import functional

from equipoise import losses
from equipoise.theory import gradient_weight


def test_cross_entropy_pulls_by_what_is_missing():
    pull = gradient_weight(functional.cross_entropy)
    np.testing.assert_allclose(pull.weight, 1 - pull.confidence, atol=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 3.0])
def test_focal_loss_by_its_derivative(gamma):
    pull = gradient_weight(lambda logits, labels: losses.focal_loss(logits, labels, gamma=gamma))
    p = pull.confidence
    # d/dp of -(1-p)^g log p, times dp/dz = p (1-p)
    slope = gamma * (1 - p) ** (gamma - 1) * np.log(p) - (1 - p) ** gamma / p
    np.testing.assert_allclose(pull.weight, -slope * p * (1 - p), atol=1e-10)


def test_label_smoothing_pushes_down_beyond_its_target():
    pull = gradient_weight(losses.label_smoothing_loss, confidence=[0.9, 0.999])
    assert pull.weight[0] > 0 > pull.weight[1]


@pytest.mark.parametrize("bad", [[0.0], [1.0], [[0.5]]])
def test_refuses_the_ends(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        gradient_weight(functional.cross_entropy, confidence=bad)
