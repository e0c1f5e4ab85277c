"""Settings for all tests: generated inputs are the same in every run, and never judged by the clock."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

settings.register_profile("equipoise", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("equipoise")


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Change torch's number of threads for one test."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
