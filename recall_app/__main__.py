"""``python -m recall_app`` and the ``recall`` command."""

import sys

from recall_app.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
