"""Parts with a planted defect each, for the test of the driver: by the number of the attempt."""

import os
import signal
import subprocess
import sys

import numpy as np

FULL = QUICK = 6


def attempt(number):
    """0 and 1 are well, the others are not."""
    if number == 2:
        raise AssertionError("the third is planted")
    if number == 3:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"], check=False)
    if number == 4:
        return f"{np.empty(2**28).size} numbers"  # 2 GiB
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return "odd" if number % 2 else "even"
