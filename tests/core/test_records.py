"""Records on disk: headers of arrays that declare more than the file holds."""

import tracemalloc
import zipfile

import numpy as np
import pytest

from equipoise.core.errors import DataError
from equipoise.core.records import Record, read_record, write_record
from helpers.hostile_files import npy_header


@pytest.mark.parametrize("shape", [(1 << 28,), (1 << 14, 1 << 14), (1 << 50, 2), (3,)])
def test_a_false_shape_is_refused_before_memory_is_allocated(shape, tmp_path):
    path = tmp_path / "a.state"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("equipoise.json", "{}")
        archive.writestr("a.npy", npy_header(shape, "<f8") + bytes(16))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"^a\.state: `a\.npy` is damaged: expected \d+ bytes") as caught:
            read_record(path, "doc", 1)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [".state", ".npz", ".json"])
def test_arrays_of_any_shape_come_back(ending, tmp_path):
    arrays = {
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "number": np.array(3),
        "empty": np.zeros((0, 4)),
    }
    write_record(tmp_path / f"a{ending}", "doc", 1, Record({}, arrays))
    found = read_record(tmp_path / f"a{ending}", "doc", 1).arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable
