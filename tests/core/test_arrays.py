"""Arrays and tensors side by side: one formula for both, and nothing here imports torch by itself."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from equipoise.core import Predictions
from equipoise.core.arrays import array_namespace, is_tensor, round_to_bfloat16
from equipoise.core.probabilities import log_softmax

#: Reads, writes and describes predictions while every import of torch fails.
_WITHOUT_TORCH = """
import importlib, pkgutil, sys
sys.modules["torch"] = None
import numpy as np
import equipoise.core
from equipoise import Predictions, read_predictions, write_predictions
from equipoise.kernels.threads import map_in_order
for module in pkgutil.walk_packages(equipoise.core.__path__, "equipoise.core."):
    if module.name != "equipoise.core.torch_required":  # raises on purpose
        importlib.import_module(module.name)
rows = Predictions(logits=np.random.default_rng(0).normal(size=(9, 3)), labels=np.arange(9) % 3)
for ending in ("npz", "csv", "jsonl", "parquet", "safetensors"):
    write_predictions(rows, f"{sys.argv[1]}/a.{ending}")
    assert np.array_equal(read_predictions(f"{sys.argv[1]}/a.{ending}").logits, rows.logits)
rows.confidence, rows.log_probs, rows.fingerprint, rows.take([0]), rows.lower_edges(15, "right")
assert map_in_order(abs, [-1, 2]) == [1, 2]
"""


def test_core_works_where_torch_cannot_be_imported(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("safetensors")
    subprocess.run([sys.executable, "-c", _WITHOUT_TORCH, str(tmp_path)], check=True, timeout=120)


def test_reading_a_file_does_not_import_torch(tmp_path):
    (tmp_path / "a.csv").write_text("p_cat,p_dog,label\n0.9,0.1,cat\n")
    code = "import sys, equipoise as e; e.read_predictions(sys.argv[1]).confidence; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.csv")], check=True, timeout=120)


def test_the_namespace_follows_the_input():
    assert array_namespace(np.zeros(2), [1.0]) is np
    tensor = torch.ones(2, 3, requires_grad=True)
    xp = array_namespace(np.zeros(2), tensor)
    total = xp.sum(xp.exp(tensor), axis=-1)
    assert is_tensor(total)
    assert total.requires_grad
    assert not is_tensor(np.zeros(2))


def test_rounding_to_bfloat16_is_that_of_torch():
    rng = np.random.default_rng(0)
    ties = (np.arange(64, dtype=np.uint32) << 15 | 0x3F000000).view(np.float32)
    values = np.concatenate([rng.normal(size=1000).astype(np.float32), ties, [0.0, -0.0, 1.0, 1e38, 1e-40]])
    wanted = torch.from_numpy(values.astype(np.float32)).bfloat16().float().numpy()
    np.testing.assert_array_equal(round_to_bfloat16(values), wanted)


def test_the_precision_before_a_conversion_can_be_given():
    probs = torch.softmax(3 * torch.randn(100, 200, generator=torch.Generator().manual_seed(1)), 1).bfloat16()
    labels = np.zeros(100, int)
    converted = Predictions(probs=probs.float().numpy(), labels=labels, precision="bfloat16")
    kept = Predictions(probs=probs, labels=labels)
    assert converted.precision == kept.precision == "bfloat16"
    np.testing.assert_array_equal(converted.lower_edges(15, "right"), kept.lower_edges(15, "right"))
    with pytest.raises(ValueError, match="precision"):
        Predictions(probs=[0.5], labels=[1], precision="float8")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_softmax_is_that_of_torch(dtype):
    logits = np.random.default_rng(0).normal(scale=30, size=(50, 7)).astype(dtype)
    logits[0] = [1e4, -1e4, 0, 0, 0, 0, 0]
    wanted = torch.log_softmax(torch.from_numpy(logits.astype(np.float64)), 1).numpy()
    found = log_softmax(logits)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)
