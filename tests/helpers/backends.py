"""Laws that hold whether work is compiled or plain: a module that asks for it runs once each way.

A module's own fixture does the asking, with the scope of the module, because generated inputs share it::

    @pytest.fixture(scope="module", params=["compiled", "fallback"], autouse=True)
    def _way(request):
        yield from go(request.param)
"""

import pytest

from equipoise.kernels.dispatch import use_backend, why_fallback


def go(way):
    """Run what is left of the module one way; without numba, or if it was switched off, only the plain one."""
    reason = why_fallback()
    if way == "compiled" and reason:
        pytest.skip(reason)
    with use_backend(way):
        yield
