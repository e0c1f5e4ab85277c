"""The same numbers whatever a process was set to: no compiler, other defaults of torch, errors instead of warnings."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, sys
import numpy as np
import torch
exec(os.environ.get("SETTING", ""))
from equipoise import Predictions, compare, losses, metrics, score
from equipoise.calibrators import HistogramBinning, TemperatureScaling
from equipoise.evaluate import score_by_class
from equipoise.integrations.torchmetrics import ECE
from equipoise.metrics import CalibrationState

rng = np.random.default_rng(0)
logits = (30 * rng.normal(size=(2000, 12))).astype(np.float32)
labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(1)
rows = Predictions(logits=logits, labels=labels, weights=rng.random(2000))
found = [part.value for part in score(rows, n_resamples=20).scores.values()]
fit = TemperatureScaling().fit(logits, labels)
found += [fit.temperature, TemperatureScaling(criterion="ece").fit(logits, labels).temperature]
found += [float(HistogramBinning().fit(logits, labels)(logits).sum())]
found += [score_by_class(rows)[0].gap]
found += [row.difference for row in compare(rows, rows.with_scores(logits=logits / 2), n_resamples=20)]
state = CalibrationState(12)
state.update(logits=logits, labels=labels)
top = CalibrationState(0)
top.update(predicted=rows.predicted, confidence=rows.confidence, labels=labels)
found += [state.curve().expected_error(), top.curve().expected_error()]
probs = rows.probs
state.update(probs=probs, labels=labels)
found += [float(state.sums.floats.sum())]
metric = ECE(12, inputs="logits")
metric.update(torch.from_numpy(logits), torch.from_numpy(labels))
found += [metric.state().curve().expected_error()]
few = Predictions(logits=logits[:100], labels=labels[:100])
found += [metrics.gaussian_calibration_error(few), metrics.kernel_calibration_error(few)]
found += [metrics.debiased_calibration_error(few, norm="l1"), metrics.smooth_calibration_error(few)]
held_out = torch.from_numpy(logits[:, :3].astype(np.float64)), torch.from_numpy(labels % 3)
with torch.device("cpu"):
    made = [
        losses.AdaFocalLoss(),
        losses.AdaDualFocalLoss(),
        losses.AvUC(threshold=0.3),
        losses.ClassAdaptiveLoss(n_classes=3),
        losses.ClassAdaptiveHeuristicLoss(n_classes=3),
        losses.FocalLoss(gamma=2.1),
    ]
for loss in made:
    loss.update(*held_out)
    loss.update(held_out[0] / 3, held_out[1])
    found += [loss(*held_out).item()]
print(json.dumps(found))
"""

SETTINGS = {
    "no jit": {"NUMBA_DISABLE_JIT": "1"},
    "no kernels": {"EQUIPOISE_PLAIN": "1"},
    "meta": {"SETTING": "torch.set_default_device('meta')"},
    "cpu": {"SETTING": "torch.set_default_device('cpu')"},
    "float16": {"SETTING": "torch.set_default_dtype(torch.float16)"},
    "bfloat16": {"SETTING": "torch.set_default_dtype(torch.bfloat16)"},
    "float64": {"SETTING": "torch.set_default_dtype(torch.float64)"},
    "errors": {"SETTING": "np.seterr(all='raise')"},
}


def numbers(**environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def known():
    return numbers()


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_the_process_changes_no_number(setting, known):
    assert numbers(**SETTINGS[setting]) == pytest.approx(known, rel=1e-12, abs=1e-15)
