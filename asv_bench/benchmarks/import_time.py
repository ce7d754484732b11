"""``import mxop`` beside ``import numpy``, each in a fresh interpreter; the bound is 1.5 times."""

import statistics
import subprocess
import sys
import time


def raw_import_mxop():
    """Import mxop."""
    return "import mxop"


def raw_import_numpy():
    """Import NumPy, the measure of the machine."""
    return "import numpy"


def seconds(code, rounds):
    """Return the median time of an interpreter that runs `code`."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


class ImportTime:
    """Timed by asv in processes of their own."""

    timeout = 300

    def timeraw_import_mxop(self):
        return raw_import_mxop()

    def timeraw_import_numpy(self):
        return raw_import_numpy()

    def track_ratio(self):
        """Time to import mxop as a multiple of NumPy's, without what the interpreter itself takes."""
        bare = seconds("pass", 9)
        return (seconds("import mxop", 9) - bare) / (seconds("import numpy", 9) - bare)


ImportTime.track_ratio.unit = "times import numpy"
