"""``python -m equipoise`` is the command line."""

import sys

from equipoise.cli import main

if __name__ == "__main__":
    sys.exit(main())
