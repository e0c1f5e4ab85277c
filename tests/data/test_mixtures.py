"""The mixture: its posterior is the truth, and its calibration error is that of the definition."""

import math

import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import gaussian_mixture, load


def test_posterior_by_hand():
    model = gaussian_mixture(n_classes=2, n_features=1, separation=1.0, imbalance=3.0, seed=0)
    # Two centers on the line, at +1 or -1: the log odds at x are log 3 + x (mu_0 - mu_1).
    x = torch.tensor([[0.4]], dtype=torch.float64)
    log_odds = math.log(3) + 0.4 * float(model.means[0, 0] - model.means[1, 0])
    assert model.posterior(x)[0, 0].item() == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-12)


def test_posterior_is_the_ratio_of_densities():
    model = gaussian_mixture(n_classes=5, n_features=3, imbalance=10.0, seed=2)
    x = torch.randn(20, 3, dtype=torch.float64)
    density = torch.stack(
        [
            prior * torch.distributions.Normal(mean, model.spread).log_prob(x).sum(1).exp()
            for prior, mean in zip(model.priors, model.means, strict=True)
        ],
        dim=1,
    )
    torch.testing.assert_close(model.posterior(x), density / density.sum(1, keepdim=True))


def test_labels_follow_the_posterior():
    model = gaussian_mixture(n_classes=3, imbalance=4.0, seed=1)
    x, y = model.sample(40_000, seed=3)
    truth = model.posterior(x)
    frequency = torch.bincount(y, minlength=3) / len(y)
    torch.testing.assert_close(frequency.double(), model.priors, atol=0.015, rtol=0)
    # Where the posterior says 60 to 70% class 0, so many are class 0.
    chosen = (truth[:, 0] > 0.6) & (truth[:, 0] < 0.7)
    gap = (y[chosen] == 0).double().mean() - truth[chosen, 0].mean()
    assert abs(gap) < 6 * 0.5 / math.sqrt(int(chosen.sum()))


def test_the_posterior_itself_has_no_calibration_error():
    model = gaussian_mixture(n_classes=4)
    x, _ = model.sample(2000, seed=0)
    assert model.true_calibration_error(x, model.posterior(x)) == pytest.approx(0, abs=1e-12)


def test_a_sharpened_posterior_of_two_classes_has_the_error_of_the_definition():
    # With two classes confidence is a monotone map of the posterior, so the error is the mean of the
    # pointwise gap.
    model = gaussian_mixture(n_classes=2, separation=0.7)
    x, _ = model.sample(20_000, seed=0)
    truth = model.posterior(x)
    sharp = torch.softmax(2.5 * truth.log(), dim=1)
    expected = (sharp.max(1).values - truth.max(1).values).abs().mean().item()
    assert expected > 0.05
    assert model.true_calibration_error(x, sharp) == pytest.approx(expected, abs=1e-9)


def test_a_constant_prediction_has_the_error_of_its_mean():
    model = gaussian_mixture(n_classes=2, imbalance=3.0)
    x, _ = model.sample(50_000, seed=0)
    always = torch.tensor([[0.9, 0.1]]).expand(len(x), 2)
    error = model.true_calibration_error(x, always, n_groups=1)
    assert error == pytest.approx(0.9 - 0.75, abs=0.01)


def test_the_dataset_carries_its_posterior():
    data = load("mixture", seed=4, options={"n": 200, "n_classes": 3})
    model = gaussian_mixture(n_classes=3, seed=4)
    torch.testing.assert_close(data.soft_labels, model.posterior(data.inputs).float())
    assert data.fingerprints == load("mixture", seed=4, options={"n": 200, "n_classes": 3}).fingerprints


def test_wrong_shapes_and_sizes_are_refused():
    model = gaussian_mixture(n_classes=3)
    with pytest.raises(DataError, match="one row per input"):
        model.true_calibration_error(torch.zeros(4, 2), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="the least"):
        gaussian_mixture(n_classes=1)
