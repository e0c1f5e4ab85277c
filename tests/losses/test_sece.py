import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import SmoothECE, dca_penalty, focal_loss, neighbors, sece_penalty
from helpers.batch_terms import batches, check_edges, plain
from helpers.golden import CASES, double

OPTIONS = [{"include_self": own, "power": power} for own in (True, False) for power in (1, 2)]


def oracle(batch, bandwidth, include_self, power):
    confidence, correct = plain(*batch)
    total = 0.0
    for i, c in enumerate(confidence):
        near = [j for j in range(len(confidence)) if include_self or j != i]
        logs = [-((c - confidence[j]) ** 2) / (2 * bandwidth**2) for j in near]
        if near:
            kernel = [math.exp(x - max(logs)) for x in logs]
            mean = sum(k * correct[j] for k, j in zip(kernel, near, strict=True)) / sum(kernel)
            total += abs(mean - c) ** power
    return total / len(confidence)


def random_batch(n_samples, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n_samples, 4, generator=generator, dtype=dtype)
    return logits.requires_grad_(), torch.randint(0, 4, (n_samples,), generator=generator)


def test_value_by_hand():
    logits, labels = torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])
    # all at 1/2: accuracy 3/4 with oneself; without, right ones see 2/3 and the wrong one sees 1
    assert sece_penalty(logits, labels).item() == pytest.approx(0.25)
    alone = sece_penalty(logits, labels, include_self=False)
    assert alone.item() == pytest.approx((3 * (2 / 3 - 0.5) + 0.5) / 4)


@given(batches())
def test_a_wide_kernel_gives_mean_accuracy(batch):
    confidence, correct = plain(*batch)
    accuracy = sum(correct) / len(correct)
    wanted = sum(abs(accuracy - c) for c in confidence) / len(confidence)
    assert sece_penalty(*batch, bandwidth=1e6).item() == pytest.approx(wanted, abs=1e-9)


@given(batches())
def test_a_narrow_kernel_gives_the_absolute_error_of_each_sample(batch):
    confidence, correct = plain(*batch)
    wanted = sum(abs(a - c) for c, a in zip(confidence, correct, strict=True)) / len(correct)
    assert sece_penalty(*batch, bandwidth=1e-9).item() == pytest.approx(wanted, abs=1e-9)


@given(batches(), st.sampled_from(OPTIONS), st.floats(0.01, 0.5))
def test_oracle(batch, options, bandwidth):
    value = sece_penalty(*batch, bandwidth=bandwidth, **options)
    assert value.item() == pytest.approx(oracle(batch, bandwidth, **options), abs=1e-10)


@given(batches())
def test_never_below_the_gap_of_the_batch_for_a_wide_kernel(batch):
    assert sece_penalty(*batch, bandwidth=1e6) >= dca_penalty(*batch) - 1e-12


@pytest.mark.parametrize("options", OPTIONS)
def test_blocks_give_the_same_value_and_derivatives(options, monkeypatch):
    logits, labels = random_batch(23)

    def derivatives():
        value = sece_penalty(logits, labels, bandwidth=0.1, **options)
        [first] = torch.autograd.grad(value, logits, create_graph=True)
        [second] = torch.autograd.grad(first.square().sum(), logits)
        return value, first, second

    whole = derivatives()
    monkeypatch.setattr(neighbors, "MOST_PAIRS", 23 * 5)
    for one, other in zip(derivatives(), whole, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.slow
def test_blocks_compile_to_one_graph(monkeypatch):
    monkeypatch.setattr(neighbors, "MOST_PAIRS", 23 * 5)
    logits, labels = random_batch(23)
    compiled = torch.compile(SmoothECE(), fullgraph=True, backend="aot_eager")
    gradients = [torch.autograd.grad(term(logits, labels), logits)[0] for term in (SmoothECE(), compiled)]
    torch.testing.assert_close(*gradients)


def test_memory_is_bounded():
    """No tensor of all pairs is alive at once: the largest stays within the bound."""
    logits, labels = random_batch(3000, dtype=torch.float32)
    largest = 0

    def note(tensor):
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        value = sece_penalty(logits, labels)
    value.backward()
    assert largest <= neighbors.MOST_PAIRS < 3000**2


@pytest.mark.parametrize("options", OPTIONS)
def test_second_derivatives(options):
    logits, labels = random_batch(5)
    assert torch.autograd.gradgradcheck(lambda z: sece_penalty(z, labels, bandwidth=0.2, **options), logits)


def test_gradient_through_a_training_step():
    """One step of focal loss on a linear head, then the gradient with respect to every sample's gamma."""
    case = CASES["bilevel_gamma_sece"]
    numbers = {key: double(case["params"][key]) for key in ("X", "X_val", "W", "b", "gamma")}
    head, gamma = [numbers[key].requires_grad_() for key in ("W", "b")], numbers["gamma"].requires_grad_()
    labels = torch.tensor(case["params"]["y"])
    inner = focal_loss(numbers["X"] @ head[0].T + head[1], labels, gamma=gamma).mean()
    steps = torch.autograd.grad(inner, head, create_graph=True)
    moved = [w - case["params"]["inner_lr"] * step for w, step in zip(head, steps, strict=True)]
    held_out = numbers["X_val"] @ moved[0].T + moved[1], torch.tensor(case["params"]["y_val"])
    value = SmoothECE(bandwidth=case["params"]["bandwidth"])(*held_out)
    assert value.item() == pytest.approx(case["expected"]["meta_loss"], rel=1e-8)
    [gradient] = torch.autograd.grad(value, gamma)
    torch.testing.assert_close(gradient, double(case["expected"]["hypergrad_gamma"]), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("options", OPTIONS)
def test_edges(options):
    check_edges(SmoothECE(**options))


def test_one_sample_without_neighbors_adds_nothing():
    assert sece_penalty(torch.zeros(1, 2), torch.tensor([1]), include_self=False) == 0


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match=r"above 0, got 0.*try 0.01"):
        SmoothECE(bandwidth=0)
    with pytest.raises(ValueError, match="`power` must be"):
        SmoothECE(power=3)
