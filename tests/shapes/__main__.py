"""Run cases of one family and print what they were, as JSON in the last line; a file holds the running case, for crashes."""

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from pathlib import Path

from . import running


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--only", type=int, help="run this case alone, and show it")
    parser.add_argument("--all", action="store_true", help="go on after a fault")
    parser.add_argument("--keep", help="the file that holds the running case")
    options = parser.parse_args()
    makers = importlib.import_module(f"shapes.{options.family}").MAKERS

    def say(text):
        if options.only is not None:
            print(text, flush=True)
        if options.keep:
            Path(options.keep).write_text(text)

    counts, faults, start = Counter(), 0, time.monotonic()
    for number in range(options.cases) if options.only is None else [options.only]:
        make = makers[number % len(makers)]
        try:
            counts += running.run(options.family, options.seed, number, make, say)
        except running.Fault as fault:
            faults += 1
            print(fault, flush=True)
            if not options.all:
                return 1
        counts["cases"] += 1
        counts[f"{make.__name__}()"] += 1
        if time.monotonic() - start > options.seconds:
            break
    print(json.dumps({**counts, "faults": faults, "seconds": round(time.monotonic() - start, 1)}))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
