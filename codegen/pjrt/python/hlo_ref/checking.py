"""`check`: the results of a function on a back end, judged by the interpreter's certified bounds."""

import contextlib
import dataclasses
import os
import shlex
import sys
import tempfile

import jax
import numpy as np

from . import arrays, lowering, tool
from .tool import Instruction, Place

_CLASSES = ("same", "explained", "undecided", "wrong")


@dataclasses.dataclass
class Array:
    """A result: where it is among the function's results, counts of its elements by class, and the worst of them (`index`, `expected`, `actual`, `error`, `ulp`, `bound`, `class`)."""

    path: str
    elements: dict
    worst: list


@dataclasses.dataclass
class Report:
    """What came of a check.

    `verdict` is `same bits`, `explained` (all that differs is within what rounding explains), `undecided` (it hangs on a decision that rounding could turn), or `wrong`.
    """

    backend: str
    verdict: str
    elements: dict
    arrays: list
    liberties: str = ""
    blamed: Instruction | None = None
    blame: str = ""
    folder: str | None = None

    @property
    def ok(self):
        return self.verdict in ("same bits", "explained")

    def __bool__(self):
        return self.ok

    def __str__(self):
        counts = ", ".join(f"{self.elements[c]} {'same bits' if c == 'same' else c}" for c in _CLASSES if self.elements[c])
        lines = [f"{self.verdict} on {self.backend}: {counts or 'no elements'}"]
        for array in self.arrays:
            for worst in array.worst[:3] if not self.ok else []:
                where = f"{array.path or 'result'}[{', '.join(map(str, worst['index']))}]"
                lines.append(f"  {where}: {worst['actual']}, not {worst['expected']} (error {worst['error']}, bound {worst['bound']}): {worst['class']}")
        if self.blamed is not None:
            lines.append(f"  at {self.blamed.opcode} %{self.blamed.name}: {self.blamed.place}")
        if self.blame:
            lines.append(f"  {self.blame}")
        if self.folder:
            lines.append(f"  saved: {self.folder} (`hlo run {shlex.quote(self.folder)}` repeats it)")
        return "\n".join(lines)


class Wrong(AssertionError):
    """A result that is beyond what rounding explains; `report` says all."""

    def __init__(self, report):
        super().__init__(str(report))
        self.report = report


def _results(f, args, kwargs, device):
    put = lambda leaf: jax.device_put(leaf, device) if isinstance(leaf, (jax.Array, np.ndarray, np.generic)) else leaf
    args, kwargs = jax.tree.map(put, (args, kwargs))
    with jax.default_device(device):
        return lowering.jitted(f)(*args, **kwargs)


def check(f, *args, backend=None, raises=False, blame=True, save=None, allow=(), functions=None, timeout=None, **kwargs):
    """Runs `f(*args, **kwargs)` on a back end of JAX and judges all elements of its results.

    backend: the name of a platform of JAX, such as "cpu" or "cuda"; the default one unless it is given.
    raises: whether a result that is wrong, or that cannot be decided, raises `Wrong`.
    blame: whether the instruction is looked for that is to blame, which runs the instructions of the program by themselves on the back end, in another process.
    save: a folder below which what repeats a failure is kept.
    allow, functions: liberties that the back end has (docs/harness.md, "One verdict"); by default all that XLA takes.
    timeout: seconds that judging may take.
    """
    device = jax.devices(backend)[0]
    name = backend or jax.default_backend()
    lowered = lowering.lower(f, args, kwargs)
    results = _results(f, args, kwargs, device)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(results)]
    leaves = [np.asarray(lowering.data(leaf)) for leaf in jax.tree.leaves(results)]
    with tempfile.TemporaryDirectory(prefix="hlo-ref-") as folder:
        module, inputs, actual = (os.path.join(folder, n) for n in ("module.mlir", "inputs.npz", "actual.npz"))
        with open(module, "w") as file:
            file.write(lowered.text)
        arrays.save(inputs, "arg", lowered.arguments)
        arrays.save(actual, "out", leaves)
        judged = list(_liberties(name, device, allow, functions))
        keep = ["--save-mismatch", os.path.abspath(save) if save else "none"]
        if save:
            os.makedirs(save, exist_ok=True)
        found, = tool.hlo("run", module, "--platform", f"recorded:{actual}", "--inputs", inputs, "--json", *keep, *judged, timeout=timeout, may_differ=True)
        report = _report(name, found["comparison"], paths)
        if not report.ok and blame:
            _blame(report, module, inputs, name, judged, timeout)
    if raises and not report.ok:
        raise Wrong(report)
    return report


def _liberties(name, device, allow, functions):
    gpu = device.platform in ("gpu", "cuda", "rocm")
    if name == "hlo" and functions is None and not allow:
        return ["--allow", "none", "--functions", "table"]
    allowed = list(allow) or (["all", "tf32"] if gpu else [])
    functions = functions or ("xla-gpu" if gpu else None)
    return [*(["--allow", ",".join(allowed)] if allowed else []), *(["--functions", functions] if functions else [])]


def _report(backend, comparison, paths):
    counts = comparison["elements"]
    verdict = next((c for c in ("wrong", "undecided", "explained") if counts[c]), "same bits")
    if not comparison["pass"] and verdict in ("same bits", "explained"):
        verdict = comparison["verdict"]
    found = []
    for array in comparison["arrays"]:
        number = int(array["name"].removeprefix("out"))
        found.append(Array(paths[number] if number < len(paths) else array["name"], array["elements"], array["worst"]))
    return Report(backend, verdict, counts, found, comparison.get("liberties", ""), folder=comparison.get("saved"))


def _blame(report, module, inputs, backend, judged, timeout):
    """Each instruction alone on the back end, on the operands that the reference has."""
    command = shlex.join([sys.executable, "-m", "hlo_ref.peer", backend])
    try:
        found = tool.hlo(
            "isolate", module, "--platform", f"serve:{command}", "--inputs", inputs, "--json", *judged, timeout=timeout, may_differ=True
        )
        blamed = found[0].get("blame")
        if not blamed:
            report.blame = "no instruction is wrong by itself: it is what the back end makes of several together"
            return
        known = tool.instructions(tool.to_hlo(module, timeout))
        report.blamed = known.get((blamed["computation"], blamed["name"])) or Instruction(
            blamed["name"], "", blamed["opcode"], blamed["computation"], [], Place()
        )
        report.blame = blamed.get("message", "")
    except Exception as error:
        # The verdict stands without it.
        report.blame = f"nobody was blamed: {error}"


@contextlib.contextmanager
def files_of(f, args, kwargs):
    """The program and its inputs in a folder, for as long as the context lasts."""
    lowered = lowering.lower(f, args, kwargs)
    with tempfile.TemporaryDirectory(prefix="hlo-ref-") as folder:
        module, inputs = os.path.join(folder, "module.mlir"), os.path.join(folder, "inputs.npz")
        with open(module, "w") as file:
            file.write(lowered.text)
        arrays.save(inputs, "arg", lowered.arguments)
        yield folder, module, inputs, lowered
