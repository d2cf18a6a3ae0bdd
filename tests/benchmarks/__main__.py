"""``python -m tests.benchmarks [NAME] [--messages N]``: print the tables, all or one."""

import argparse
from collections.abc import Callable

from tests.benchmarks import importing, indexing, reading, search_latency

BENCHMARKS: dict[str, Callable[[int], None]] = {
    "search_latency": search_latency.run,
    "reading": reading.run,
    "importing": importing.run,
    "indexing": indexing.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 packaging/dev.py bench", description="Print the benchmark tables.")
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, help="only this one")
    parser.add_argument("--messages", type=int, default=100_000, help="size of the history (default 100,000)")
    asked = parser.parse_args()
    for name, run in BENCHMARKS.items():
        if asked.name in (None, name):
            run(asked.messages)


if __name__ == "__main__":
    main()
