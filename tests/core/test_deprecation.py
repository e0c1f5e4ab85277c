"""What is deprecated warns at its caller's line, and does not outlive its date."""

import ast
from pathlib import Path

import pytest

import equipoise
from equipoise.core.deprecation import deprecated, warn_deprecated

SOURCES = Path(equipoise.__file__).parent


def overdue(source, version):
    """Give the calls of the helper whose version has come."""
    now = tuple(map(int, version.split(".")))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("deprecated", "warn_deprecated"):
            dates = {key.arg: key.value for key in node.keywords}
            if isinstance(dates["until"], ast.Constant):
                until = tuple(map(int, dates["until"].value.split(".")))
                if now >= until:
                    yield node.lineno


def test_nothing_outlives_its_date():
    late = {
        str(path.relative_to(SOURCES)): lines
        for path in SOURCES.rglob("*.py")
        if (lines := list(overdue(path.read_text(encoding="utf-8"), equipoise.__version__)))
    }
    assert late == {}, "remove what was promised to go, or move its date in the changelog too"


@pytest.mark.parametrize(("version", "found"), [("0.3.9", []), ("0.4.0", [1]), ("1.0.0", [1])])
def test_a_date_that_has_come_is_found(version, found):
    source = 'warn_deprecated("x", instead="y", since="0.2.0", until="0.4.0")'
    assert list(overdue(source, version)) == found


def test_the_line_shown_is_the_callers():
    @deprecated(instead="new()", since="0.2.0", until="0.4.0")
    def old(value):
        return value + 1

    def read(table):
        warn_deprecated("`objective`", instead="`method`", since="0.2.0", until="0.4.0")
        return table

    with pytest.warns(DeprecationWarning, match=r"old\(\) goes in version 0.4.0.*Use new\(\)") as told:
        assert old(1) == 2
    assert told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="`objective` goes") as told:
        read({})
    assert told[0].filename == __file__


def test_names_that_are_gone_are_answered_with_what_to_write():
    pytest.importorskip("torch")
    with pytest.raises(AttributeError, match=r"equipoise\.training\.Batch is now BatchLike"):
        equipoise.training.Batch  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Bach'"):
        equipoise.training.Bach  # noqa: B018
