"""The text network: its formula, and the padding that may be cut without a trace."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from equipoise.models import RECEPTIVE_FIELD, global_pooling_cnn
from equipoise.models.text_cnn import RowConvolution


def padded(n_tokens, lengths, seed=0):
    """Documents behind zeros, as the readers pad."""
    torch.manual_seed(seed)
    words = torch.zeros(len(lengths), n_tokens, 100)
    for row, length in enumerate(lengths):
        words[row, n_tokens - length :] = torch.randn(length, 100)
    return words


def oracle(network, words):
    """The layers as the papers list them, one-dimensional and in double precision."""
    weights = {key: value.double() for key, value in network.state_dict().items()}
    hidden = words.double().transpose(1, 2)
    for number in (1, 2, 3):
        hidden = functional.conv1d(
            hidden, weights[f"body.conv{number}.weight"], weights[f"body.conv{number}.bias"]
        )
        hidden = hidden.relu()
        if number < 3:
            hidden = functional.max_pool1d(hidden, 5, stride=1)
    hidden = hidden.max(dim=2).values @ weights["body.fc1.weight"].T + weights["body.fc1.bias"]
    return hidden.relu() @ weights["head.weight"].T + weights["head.bias"]


def test_oracle():
    network = global_pooling_cnn().eval()
    words = padded(60, [5, 30, 60])
    with torch.no_grad():
        torch.testing.assert_close(network(words).double(), oracle(network, words), rtol=1e-5, atol=1e-6)


def test_receptive_field_is_21_words():
    assert RECEPTIVE_FIELD == 21
    body = global_pooling_cnn().body
    body(torch.zeros(1, 21, 100))
    with pytest.raises(ValueError, match=r"t at least 21, got \(1, 20, 100\).*pad short documents"):
        body(torch.zeros(1, 20, 100))
    with pytest.raises(ValueError, match="Embed the word numbers first"):
        body(torch.zeros(1, 40))


@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(0, 150), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_a_cut_batch_gives_exactly_the_same(lengths, seed):
    words = padded(250, lengths, seed).double()
    network = global_pooling_cnn().double().eval()
    cut = words[:, 250 - max(lengths) - RECEPTIVE_FIELD :]
    with torch.no_grad():
        # The same sums; a library may add them in another order for another length.
        torch.testing.assert_close(network(cut), network(words), rtol=0, atol=1e-12)


def test_one_word_less_of_padding_is_too_little():
    words = padded(250, [40])
    torch.manual_seed(0)
    network = global_pooling_cnn().eval()
    with torch.no_grad():
        change = (network(words[:, 250 - 40 - RECEPTIVE_FIELD + 1 :]) - network(words)).abs().max()
    assert change > 1e-5


def test_a_cut_batch_gives_the_same_gradient():
    words, network = padded(250, [12, 90]).double(), global_pooling_cnn().double()
    gradients = []
    for batch in (words, words[:, 250 - 90 - RECEPTIVE_FIELD :]):
        network.zero_grad()
        network(batch).square().sum().backward()
        gradients.append(torch.cat([value.grad.flatten() for value in network.parameters()]))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-9, atol=1e-12)


def test_dropout_is_off_by_default_and_in_evaluation():
    words = padded(40, [30])
    plain, dropping = global_pooling_cnn().train(), global_pooling_cnn(dropout=0.3)
    assert torch.equal(plain(words), plain(words))
    assert not torch.equal(dropping.train()(words), dropping(words))
    assert torch.equal(dropping.eval()(words), dropping(words))


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 3),
    width=st.integers(1, 5),
    extra=st.integers(0, 6),
    channels=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_gradients_of_a_row_are_those_of_torch(n, width, extra, channels, seed):
    torch.manual_seed(seed)
    row = torch.randn(n, channels, 1, width + extra, dtype=torch.float64)
    weight, bias = torch.randn(3, channels, width).double(), torch.randn(3).double()
    upstream = torch.randn(n, 3, 1, extra + 1).double()
    found = []
    for convolve in (
        RowConvolution.apply,
        lambda row, weight, bias: functional.conv2d(row, weight.unsqueeze(2), bias),
    ):
        parts = [part.clone().requires_grad_() for part in (row, weight, bias)]
        output = convolve(*parts)
        found.append([output, *torch.autograd.grad(output, parts, upstream)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_second_derivatives_of_a_row():
    torch.manual_seed(0)
    shapes = ((2, 2, 1, 5), (2, 2, 3), (2,))
    parts = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(RowConvolution.apply, parts)
    assert torch.autograd.gradgradcheck(RowConvolution.apply, parts)


def test_training_and_evaluation_agree_and_have_the_same_gradient():
    words, network = padded(60, [5, 30, 60]).double(), global_pooling_cnn().double()
    found = []
    for mode in (True, False):
        network.train(mode).zero_grad()
        logits = network(words)
        logits.square().sum().backward()
        found.append([logits.detach(), *(value.grad for value in network.parameters())])
    for trained, evaluated in zip(*found, strict=True):
        torch.testing.assert_close(trained, evaluated, rtol=1e-9, atol=1e-12)


def test_it_trains_in_mixed_precision():
    network = global_pooling_cnn().train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        network(padded(40, [30, 40])).float().square().sum().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in network.parameters())
