"""Where numbers were computed: versions, processor and threads; no host, user or path."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from sosbands._version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "quantile-forest", "hetgpy")


def environment() -> dict[str, str | int]:
    """Versions of Python and of the packages that results depend on, the processor and its number of threads."""
    found: dict[str, str | int] = {"sosbands": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an optional one
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = cpu_model()
    found["threads"] = os.cpu_count() or 1
    return found


def cpu_model() -> str:
    """Name of the processor, "unknown" if the system does not say."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, subprocess.SubprocessError):
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
