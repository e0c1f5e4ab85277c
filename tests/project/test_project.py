"""What a release rests on: one version, fragments that can be gathered, hooks that fetch nothing."""

import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import equipoise
from helpers.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

CLAIMED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))


def test_the_version_is_written_once():
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "equipoise.__version__"}
    assert f"\nversion: {equipoise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert load_script(".ci/release.py").current() == equipoise.__version__


def test_fragments_have_a_kind_that_is_gathered():
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.suffix == ".md"]
    assert all(path.suffixes[-2].lstrip(".") in kinds for path in fragments)
    assert all(path.read_text().strip() for path in fragments)


@pytest.mark.parametrize("words", [["--version", "next"], ["--tag"], ["--version", "0.0.0"]])
def test_a_release_that_cannot_be_is_refused_before_anything_is_written(words, tmp_path):
    before = {path: path.read_bytes() for path in (ROOT / "CITATION.cff", ROOT / "src/equipoise/__init__.py")}
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_hooks_and_workflow_fetch_no_hook_and_name_no_registry():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "https://" not in workflow
    assert all(f'"{version}"' in workflow for version in CLAIMED)


def test_no_more_is_claimed_than_was_tried():
    systems = [one for one in PROJECT["project"]["classifiers"] if one.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    # Newer Pythons were tested in part only, which the README and the page on installing state.
    assert CLAIMED == ["3.11", "3.12", "3.13"]
    pages = [ROOT / "README.md", ROOT / "docs" / "install.md"]
    assert all("Python 3.12 and 3.13" in page.read_text() for page in pages)
    assert all("without torch" in page.read_text() for page in pages)


def test_the_lowest_versions_are_read_from_the_project():
    low = load_script(".ci/lowest.py").promised()
    assert low["numba"] == "0.61"
    assert low["scikit-learn"] == "1.6", "the higher of the two ends that extras ask for"
    assert "equipoise" not in low


def test_optional_libraries_are_imported_only_by_their_package():
    packages = {f"equipoise.{module.name}" for module in pkgutil.iter_modules(equipoise.__path__)}
    contracts = [
        one for one in PROJECT["tool"]["importlinter"]["contracts"] if one.get("allow_indirect_imports")
    ]
    owners = {one["id"]: packages - set(one["source_modules"]) for one in contracts}
    assert owners == {
        "compiler": {"equipoise.kernels"},
        "terminal": {"equipoise.cli"},
        "drawing": {"equipoise.plots"},
        "templates": {"equipoise.report"},
    }


def test_a_machine_without_a_browser_or_any_other_tool_can_gather_the_tests():
    # A helper that skips while it is imported stays behind half made, and the next test to import it fails.
    asked = ["tests/helpers", "tests/report/test_browser.py", "tests/project/test_site.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *asked],
        cwd=ROOT,
        env={**os.environ, "PATH": "", "EQUIPOISE_NEED_BROWSER": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
