"""A settings file of the plotting library in the current folder does not change or break the figures of commands."""

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

FILES = {
    "other-style": b"figure.facecolor: red\nsavefig.facecolor: red\nlines.linewidth: 20\nfont.size: 40\n",
    "no-text": b"\xff\xfe\x00bad",
    "no-such-backend": b"backend: Nonsense\n",
    "no-such-value": b"font.size: large-as-a-house\nno.such.key: 5\n",
}


def draw(folder):
    command = [sys.executable, "-m", "equipoise", "plot", "phi", "-o", "phi.png"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return (folder / "phi.png").read_bytes()


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("usual"))


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_in_the_current_folder_changes_nothing(content, tmp_path, usual):
    (tmp_path / "matplotlibrc").write_bytes(content)
    assert draw(tmp_path) == usual


def test_settings_of_the_process_are_given_back():
    code = (
        "import matplotlib; matplotlib.rcParams['font.size'] = 33; before = dict(matplotlib.rcParams)\n"
        "from equipoise.plots.style import own_settings\n"
        "with own_settings(): assert matplotlib.rcParams['font.size'] == 10\n"
        "assert {**before, 'backend': 0} == {**dict(matplotlib.rcParams), 'backend': 0}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
