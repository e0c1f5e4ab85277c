import numpy as np
import pytest

njit = pytest.importorskip("numba").njit

from equipoise.compiled.blocks import BLOCK  # noqa: E402
from equipoise.compiled.elementary import LOWEST, logarithms  # noqa: E402
from equipoise.compiled.pointers import at  # noqa: E402
from equipoise.compiled.softmax_row import exponentials_below, highest  # noqa: E402


@njit
def take_logarithms(numbers, out):
    logarithms(at(numbers, 0), numbers.shape[0], at(out, 0))


@njit
def take_exponentials(logits, blocks):
    top = highest(at(logits, 0), logits.shape[0])
    return top, exponentials_below(at(logits, 0), logits.shape[0], top, at(blocks, 0))


def softmax(logits):
    """Return probabilities, the sum of exponentials and the highest logit."""
    k, lanes = len(logits), BLOCK // logits.itemsize
    blocks = np.full(k + lanes, np.nan, logits.dtype)
    top, total = take_exponentials(logits, blocks)
    whole = k // lanes * lanes
    # The last block has a place of its own and ends where the row ends.
    exps = np.concatenate([blocks[:whole], blocks[whole + lanes - (k - whole) : whole + lanes]])
    return exps * logits.dtype.type(1 / total), total, top


def test_logarithms_are_right_to_the_last_bits():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.random(1000),
            10.0 ** rng.uniform(-300, 300, 1000),
            1 + rng.normal(0, 1e-9, 1000),
            [1.0, 0.5, 2.0, np.sqrt(0.5), np.finfo(np.float32).tiny],
        ]
    )
    found = np.empty_like(x)
    take_logarithms(x, found)
    exact = np.log(x.astype(np.longdouble))
    np.testing.assert_allclose(found, exact.astype(float), rtol=5e-16, atol=0)
    assert found[-5] == 0.0


@pytest.mark.parametrize(("dtype", "within"), [(np.float32, 3e-7), (np.float64, 1e-15)])
@pytest.mark.parametrize("k", [16, 17, 100, 999])
def test_softmax_is_right_to_the_last_bits(k, dtype, within):
    # Multiples of 1/64 so that differences of logits are exact and only our arithmetic is measured.
    logits = (np.random.default_rng(k).integers(-900, 900, k) / 64).astype(dtype)
    probs, total, top = softmax(logits)
    exps = np.exp((logits - logits.max()).astype(np.longdouble))
    np.testing.assert_allclose(probs, (exps / exps.sum()).astype(float), rtol=within, atol=0)
    np.testing.assert_allclose(
        np.log(total) + float(top) - float(logits[5]), float(np.log(exps.sum() / exps[5])), rtol=within
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_extreme_logits_is_zeros_and_one(dtype):
    logits = np.full(20, -1e4, dtype)
    logits[7] = 1e4
    probs, total, top = softmax(logits)
    np.testing.assert_array_equal(probs, np.arange(20) == 7)
    assert (total, top) == (1.0, 1e4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_denormal_is_made(dtype):
    lowest = LOWEST[8 * np.dtype(dtype).itemsize]
    logits = np.linspace(2 * lowest, 0, 64).astype(dtype)
    probs, _, _ = softmax(logits)
    assert ((probs == 0) | (probs >= np.finfo(dtype).tiny)).all()
    assert (probs == 0).any()
