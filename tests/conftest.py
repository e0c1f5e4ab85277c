"""Settings for all tests: generated inputs are the same in every run, and never judged by the clock."""

from hypothesis import settings

settings.register_profile("equipoise", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("equipoise")
