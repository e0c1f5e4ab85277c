"""Two real processes add up their states."""

import numpy as np
import pytest
import torch

from equipoise import Predictions
from equipoise.metrics import CalibrationState
from helpers.metric_samples import draw


def work(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    probs, labels = np.load(f"{folder}/probs.npy"), np.load(f"{folder}/labels.npy")
    half = slice(0, 70) if rank == 0 else slice(70, None)
    state = CalibrationState(4)
    state.update(probs=probs[half], labels=labels[half])
    state.all_reduce()
    torch.save(state.state_dict(), f"{folder}/state{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_all_reduce_gives_every_process_the_whole(tmp_path):
    probs, labels = draw(200, 4)
    np.save(tmp_path / "probs.npy", probs)
    np.save(tmp_path / "labels.npy", labels)
    torch.multiprocessing.spawn(work, args=(str(tmp_path),), nprocs=2)
    whole = CalibrationState.of(Predictions(probs=probs, labels=labels)).sums.parts()
    for rank in range(2):
        content = torch.load(tmp_path / f"state{rank}.pt", weights_only=True)
        state = CalibrationState.from_state_dict(content)
        for name, part in state.sums.parts().items():
            np.testing.assert_allclose(part, whole[name], rtol=1e-12, atol=1e-12)
