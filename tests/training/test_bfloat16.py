"""A processor that promises instructions and does not have them is found out before it ends a run."""

import pytest

from equipoise.cli import main
from equipoise.training import Hardware, bfloat16
from equipoise.training.bfloat16 import why_no_bfloat16


@pytest.fixture
def promise(monkeypatch):
    """Let a machine promise, and say how a process that takes it at its word ends."""

    def make(*, tiles, ends):
        monkeypatch.setattr(bfloat16, "_promises_tiles", lambda: tiles)
        monkeypatch.setattr(bfloat16, "_try_product", lambda: ends)
        why_no_bfloat16.cache_clear()

    yield make
    why_no_bfloat16.cache_clear()


def test_a_broken_promise_is_an_error_with_its_remedy(promise, capsys):
    promise(tiles=True, ends=-4)
    with pytest.raises(
        RuntimeError, match=r"'bf16-mixed' cannot be had: .* \(signal 4\)\. Set ONEDNN_MAX_CPU_ISA="
    ):
        Hardware(accelerator="cpu", devices=1, precision="bf16-mixed").make_fabric()
    Hardware(accelerator="cpu", devices=1).make_fabric()
    assert main(["doctor"]) == 0, "nobody asked for bfloat16"
    assert "bfloat16" in (out := capsys.readouterr().out)
    assert "not on this CPU" in out


@pytest.mark.parametrize(("tiles", "ends"), [(False, -4), (True, 0), (True, 1)])
def test_nothing_is_said_without_a_promise_or_when_it_is_kept(promise, tiles, ends):
    promise(tiles=tiles, ends=ends)
    assert why_no_bfloat16() is None
    Hardware(accelerator="cpu", devices=1, precision="bf16-mixed").make_fabric()


def test_what_is_tried_is_a_product_that_ends_well_or_by_a_signal():
    assert bfloat16._try_product() <= 0


def test_a_file_called_like_a_package_does_not_answer_for_it(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert bfloat16._try_product() <= 0
