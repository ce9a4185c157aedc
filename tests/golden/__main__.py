"""Golden values: what the configurations say, written to a file, or two such files compared.

python tests/golden make FILE [--source CHECKOUT] [--only NAME ...]
python tests/golden compare A B [--tolerance 0]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from compare import differences

HERE = Path(__file__).resolve().parent
WRITE = """
import json, sys, time, traceback
import configurations as golden
said = {}
for name in sys.argv[2:] or golden.CONFIGURATIONS:
    started = time.process_time()
    try:
        said[name] = golden.plain(golden.run(name))
    except Exception as error:
        traceback.print_exc()
        said[name] = {"error": f"{type(error).__name__}: {error}"}
    print(f"{name:32} {time.process_time() - started:6.2f} s", file=sys.stderr)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    body = ",\\n".join(f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in said.items())
    file.write("{\\n" + body + "\\n}\\n")
"""


def main() -> int:
    """Make or compare; the status of a comparison is 1 if something differs."""
    parser = argparse.ArgumentParser(prog="tests/golden", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("file")
    make.add_argument("--source", type=Path, default=HERE.parents[1], help="a checkout; default this one")
    make.add_argument("--only", nargs="*", default=[])
    compare = commands.add_parser("compare")
    compare.add_argument("first", type=Path)
    compare.add_argument("second", type=Path)
    compare.add_argument("--tolerance", type=float, default=0.0, help="relative; 0 is to the last bit")
    given = parser.parse_args()
    if given.command == "make":
        paths = [str(given.source.resolve() / "src"), str(HERE)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, "-c", WRITE, given.file, *given.only], env=environment).returncode
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (given.first, given.second))
    found = differences(first, second, given.tolerance)
    changed = sorted({path.split("/")[1] for path, *_ in found})
    for path, one, other in found:
        print(f"{path}\n  {one}\n  {other}")
    print(f"{len(changed)} of {len(first)} configurations differ{': ' if changed else ''}{', '.join(changed)}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
