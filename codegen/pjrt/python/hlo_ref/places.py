"""Where the shared library and the programs are: in this package, as a wheel brings them, or in the checkout that this file is in. HLO_PLUGIN and HLO_PROGRAM name others."""

import os
import pathlib
import shutil
import sys

_HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "libhlo_pjrt_plugin.so"


def _find(named, inside, built, name):
    path = os.environ.get(named)
    if path:
        return path
    if inside.exists():
        return str(inside)
    target = _HERE.parents[3] / "target"
    found = [path for path in (target / profile / built for profile in ("release", "debug")) if path.exists()]
    if found:
        return str(max(found, key=lambda path: path.stat().st_mtime))
    raise FileNotFoundError(f"{name} is neither at {inside} nor in {target}: {named} names it")


def _check_processor():
    """The library is compiled for processors with AVX2 and FMA, and ends in an illegal instruction on others."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line.split() for line in file if line.startswith("flags")), None)
    except OSError:
        return
    marker = _HERE / "baseline.txt"
    needed = marker.read_text().split() if marker.exists() else []
    if flags is not None and (missing := [name for name in needed if name not in flags]):
        raise ImportError(f"hlo_ref was built for processors with {', '.join(needed)}; this one lacks {', '.join(missing)}")


def library():
    """The PJRT plugin."""
    _check_processor()
    return _find("HLO_PLUGIN", _HERE / LIBRARY, LIBRARY, LIBRARY)


def program(name="hlo"):
    """A program: `hlo` or `run_hlo_module`."""
    _check_processor()
    return _find("HLO_PROGRAM" if name == "hlo" else "HLO_" + name.upper(), _HERE / "bin" / name, name, f"the program {name}")


def _run(name):
    try:
        path = program(name)
    except (FileNotFoundError, ImportError) as error:
        sys.exit(str(error))
    os.execv(path, [shutil.which(sys.argv[0]) or name, *sys.argv[1:]])


def hlo():
    _run("hlo")


def run_hlo_module():
    _run("run_hlo_module")
