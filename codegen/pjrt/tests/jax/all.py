"""All tests under JAX, each in a process of its own with its own settings. `--short`: what CI runs.

Usage: python all.py [--short]    with `hlo_ref` installed, or codegen/pjrt/python on PYTHONPATH.
"""

import os
import pathlib
import subprocess
import sys

import hlo_ref

HERE = pathlib.Path(__file__).resolve().parent


def main():
    short = "--short" in sys.argv[1:]
    print(f"the plugin: {hlo_ref.library()}\nthe program: {hlo_ref.program()}", flush=True)
    python = lambda script, *args: [sys.executable, str(HERE / script), *args]
    hlo = {"JAX_PLATFORMS": "hlo"}
    with_callbacks = {"JAX_PLATFORMS": "hlo,cpu"}
    runs = [
        ("JAX against numpy", python("check.py"), hlo),
        ("eight devices", python("devices.py"), {**hlo, "HLO_NUM_DEVICES": "8"}),
        ("the module hlo_ref", python("module.py"), {"JAX_PLATFORMS": "cpu"}),
        ("check mode", python("checked.py"), {}),
        ("custom calls", python("ffi.py"), with_callbacks),
    ]
    if not short:
        runs += [
            ("the C API, misused", python("border.py", hlo_ref.library()), {}),
            ("JAX against numpy, interpreted", python("check.py"), {**hlo, "HLO_MODE": "interpret"}),
            ("JAX against numpy, judged", python("check.py"), {**hlo, "HLO_MODE": "check", "HLO_CHECK_SAVE": "none"}),
            ("custom calls, jaxlib's LAPACK", python("ffi.py"), {**with_callbacks, "HLO_CUSTOM_CALLS": "registered"}),
            ("a published library of custom calls", python("published.py"), with_callbacks),
            ("conformance to the C API", [sys.executable, "-m", "pypjrt.conform", hlo_ref.library()], {}),
        ]
    failed = []
    for name, command, settings in runs:
        print(f"\n-- {name}", flush=True)
        if subprocess.run(command, env={**os.environ, **settings}, check=False).returncode:
            failed.append(name)
    print(f"\n{len(runs) - len(failed)} of {len(runs)} passed" + "".join(f"; FAILED: {name}" for name in failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
