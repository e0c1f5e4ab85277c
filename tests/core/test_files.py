"""Files that are there whole or not at all."""

import os
import stat

import pytest

from equipoise.core.files import atomic_path, write_bytes, write_text


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def stop():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stop()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_name_appears_only_at_the_end(tmp_path):
    target = tmp_path / "a.npz"
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"new")
        assert not target.exists()
        assert temporary.suffix == ".npz"
        assert temporary.parent == tmp_path
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_text_is_utf8_with_plain_newlines(tmp_path):
    write_text(tmp_path / "a.txt", "Wärme\n")
    assert (tmp_path / "a.txt").read_bytes() == "Wärme\n".encode()


def test_replaces(tmp_path):
    for content in (b"one", b"two"):
        write_bytes(tmp_path / "a.bin", content)
    assert (tmp_path / "a.bin").read_bytes() == b"two"
