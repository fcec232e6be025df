"""JAX's own tests on the plugin, and on XLA:CPU as a PJRT plugin, file by file: the table of docs/jax-tests.md.

Usage:
  python suite.py run CHECKOUT OUT.json --on hlo [--file lax_test ...] [--cases 1] [--devices 1] [--timeout 600]
  python suite.py run CHECKOUT OUT.json --on cpu [--failed OURS.json] ...                 XLA:CPU as jaxlib brings it
  python suite.py run CHECKOUT OUT.json --on xla=PLUGIN.so [--failed OURS.json] ...       XLA:CPU as a PJRT plugin
  python suite.py again OURS.json AGAIN.json             what became of OURS's failed tests, run with --failed OURS.json, goes into OURS
  python suite.py table OURS.json XLA.json [--say ", built ..."] > ../../../../docs/jax-tests.md
  python suite.py table OURS.json XLA.json --section [--say ", built ..."] >> ../../../../docs/jax-tests.md         another version of JAX

CHECKOUT is one of jax-ml/jax at the tag of the JAX that is installed, without its folders `jax`, `jaxlib` and `jax_plugins`: what is installed is tested. `run` goes on where an earlier one ended: files that OUT.json has are not run again, unless they are named. A test that takes the process with it
is counted as crashed, and the rest of its file is run. With --failed, only tests that failed in OURS.json are run, of the files that have any. With --reports, pytest's own reports are kept in that folder (needs pytest, pytest-xdist, pytest-timeout, absl-py, hypothesis).
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

# In the order in which they say most. Files for other hardware and for several processes are not here.
FILES = """
lax_test lax_numpy_test lax_numpy_operators_test lax_numpy_reducers_test lax_numpy_indexing_test lax_numpy_einsum_test lax_numpy_ufuncs_test lax_numpy_vectorize_test lax_numpy_setops_test
lax_control_flow_test lax_autodiff_test lax_vmap_test lax_vmap_op_test lax_scipy_test lax_scipy_special_functions_test nn_test api_test core_test jax_jit_test dtypes_test
linalg_test svd_test eigh_test qdwh_test fft_test scipy_fft_test scipy_signal_test scipy_stats_test scipy_interpolate_test scipy_ndimage_test scipy_optimize_test scipy_spatial_test
random_test random_lax_test random_impl_test stateful_rng_test python_callback_test debugging_primitives_test jaxpr_effects_test checkify_test debug_nans_test ffi_test custom_api_test
custom_linear_solve_test custom_root_test image_test ode_test polynomial_test optimizers_test stax_test sparse_test sparse_bcoo_bcsr_test sparsify_test lobpcg_test state_test mutable_array_test
aot_test export_test compilation_cache_test layout_test memories_test array_test array_interoperability_test device_test multi_device_test pjit_test pmap_test shard_map_test shard_alike_test
ann_test batching_test unary_ops_accuracy_test x64_context_test name_stack_test metadata_test error_check_test errors_test extend_test hijax_test jet_test xla_interpreter_test buffer_callback_test
""".split()


def environment(args, folder):
    env = dict(os.environ)
    name, _, library = args.on.partition("=")
    env["JAX_PLATFORMS"] = name if name == "cpu" else f"{name},cpu"
    if env.get("PYTHONPATH"):
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in env["PYTHONPATH"].split(os.pathsep))
    if library:  # XLA:CPU as a plugin takes the number of devices as an option, of a type that only this file can give it
        known = pathlib.Path(folder) / "plugin.json"
        known.write_text(json.dumps({"library_path": os.path.abspath(library), "create_options": {"cpu_device_count": args.devices}}))
        env["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"{name}:{known}"
    env["JAX_NUM_GENERATED_CASES"] = str(args.cases)
    env["JAX_SKIP_SLOW_TESTS"] = "1"
    env.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if args.devices > 1:
        env["HLO_NUM_DEVICES"] = str(args.devices)
        env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={args.devices}".strip()
    return env


def first_words(text):
    """What an error says, without the numbers and names that differ from test to test."""
    lines = [line.strip().removeprefix("E  ").strip() for line in text.splitlines()]
    for n, line in enumerate(lines):
        if re.match(r"^E?\s*[\w.]*(Error|Exception|Failure|Failed|Warning|Timeout)\b.*", line):
            words = line.removeprefix("E").strip() if line.startswith("E ") else line
            # numpy says what is wrong below.
            more = next((m for m in lines[n + 1 :] if m), "") if words.endswith("Error:") else ""
            return f"{words} {more}".strip()[:300]
    return (text.strip().splitlines() or [""])[0].strip()[:300]


def run_file(args, file, names=None):
    """What became of the tests of a file, or of those that are named."""
    start = time.monotonic()
    tests = [f"tests/{file}.py"] if names is None else [f"tests/{file}.py::{name.replace('.', '::', 1)}" for name in names]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(args.reports or folder).resolve() / f"{file}.xml"
        report.unlink(missing_ok=True)
        command = [
            sys.executable, "-m", "pytest", *tests, "-q", "-n", "1", "--max-worker-restart", "200", "-p", "no:cacheprovider", f"--junitxml={report}",
            f"--timeout={args.test_timeout}", "--tb=short", "-W", "ignore",
        ]
        try:
            done = subprocess.run(command, cwd=args.checkout, env=environment(args, folder), capture_output=True, text=True, timeout=args.timeout, check=False)
            ended = "" if done.returncode in (0, 1) else f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            return {"ended": f"not within {args.timeout} s", "passed": 0, "skipped": 0, "skipped_tests": [], "failed": {}, "seconds": round(time.monotonic() - start)}
        counts = {"ended": ended, "passed": 0, "skipped": 0, "skipped_tests": [], "failed": {}}
        if report.exists():
            for case in xml.parse(report).getroot().iter("testcase"):
                problems = [*case.iter("failure"), *case.iter("error")]
                name = f"{case.get('classname', '').rsplit('.', 1)[-1]}.{case.get('name')}"
                if problems:
                    message = problems[0].get("message", "")
                    text = message if "crashed while" in message else f"{message}\n{problems[0].text or ''}"
                    counts["failed"][name] = first_words(message) if "Error" in message or "crashed" in message else first_words(text)
                elif case.find("skipped") is not None:
                    counts["skipped"] += 1
                    counts["skipped_tests"].append(name)
                else:
                    counts["passed"] += 1
        elif not ended:
            counts["ended"] = "no report"
        counts["seconds"] = round(time.monotonic() - start)
        return counts


def run(args):
    out = pathlib.Path(args.out)
    known = json.loads(out.read_text()) if out.exists() else {"files": {}}
    versions = "import jax, jaxlib; print(jax.__version__, jaxlib.__version__)"
    known["versions"] = subprocess.run([sys.executable, "-c", versions], capture_output=True, text=True, check=True).stdout.split()
    known |= {"on": args.on.partition("=")[0], "cases": args.cases}
    failed = {file: list(counts["failed"]) for file, counts in json.loads(pathlib.Path(args.failed).read_text())["files"].items()} if args.failed else None
    for file in args.file or [f for f in FILES if f not in known["files"]]:
        if not (pathlib.Path(args.checkout) / "tests" / f"{file}.py").exists() or (failed is not None and not failed.get(file)):
            continue
        counts = run_file(args, file, failed and failed[file])
        counts |= {"devices": args.devices} | ({"only": len(failed[file])} if failed else {})
        known["files"][file] = counts
        out.write_text(json.dumps(known, indent=1))
        print(f"{file}: {counts['passed']} passed, {len(counts['failed'])} failed, {counts['skipped']} skipped {counts['ended']} ({counts['seconds']} s)", flush=True)


def again(args):
    """Tests that failed and were run again count as they ended then."""
    path = pathlib.Path(args.ours)
    ours, later = json.loads(path.read_text()), json.loads(pathlib.Path(args.again).read_text())
    for file, counts in later["files"].items():
        own = ours["files"][file]
        if counts["ended"] or counts.get("only") != len(own["failed"]):
            print(f"{file}: not taken, for not all failed tests were run")
            continue
        assert counts["passed"] + len(counts["failed"]) + counts["skipped"] == len(own["failed"]), file
        own["passed"] += counts["passed"]
        own["skipped"] += counts["skipped"]
        own["skipped_tests"] += counts["skipped_tests"]
        own["failed"] = counts["failed"]
    path.write_text(json.dumps(ours, indent=1))


# Why a test fails: the first that matches what it says, or its name. Each is a class of the table.
CLASSES = [
    (r"crashed while|worker .* crashed", "the process ended"),
    (r"Timeout|timed out", "longer than a test may take"),
    (r"groups given by the axes of a mesh", "collectives along axes of a mesh"),
    (r"an array of (s|u)[124] in C|an array of f4\w* in C", "callbacks with elements below 8 bits"),
    (r"unreduced=(max|min)", "a greatest or a least as an unreduced value"),
    (r"ImportError while importing", "the tests import what this version of JAX has not"),
    (r"has no attribute|use_abstract_mesh|do(es)? not match the specs|should match the", "tests of another version of JAX"),
    (r"test_grad_closure_with_vmap", "a difference quotient of f32 at a distance of 1e-5, which magnifies rounding 100,000 times"),
    (r"testSchur\d", "another Schur form of the same matrix than LAPACK's, which the test wants: it is not unique"),
    (r"'(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)[^']*' (not |unexpectedly )?found in|0 != 1", "programs are not partitioned: tests that count the collectives of partitioned ones"),
    (r"unexpectedly found in 'HloModule|PartitionedDebugCallback|InspectSharding|custom_partitioning|inspect_sharding|is_pure_map", "programs are not partitioned: tests that look into partitioned ones"),
    (r"Arrays are not equal", "an unreduced sum is not divided among devices as XLA's partitioner does"),
    (r"unreduced=|is unreduced", "unreduced shardings that are refused"),
    (r"^AssertionError: (Named|P\(|Lists differ: \[\])", "a result whose sharding nobody says is cut along other axes"),
    (r"layout|Layout|Tuples differ", "another layout"),
    (r"memory_kind=|memory kind|pinned_host|MemorySpace|memories|offload", "the three memories are one"),
    (r"profiler|Profiler", "the profiler is absent"),
    (r"NOT_FOUND|which nothing|nobody knows|is not known|no such target", "a custom call that nobody implements"),
    (r"UNIMPLEMENTED|Unimplemented", "refused by name"),
    (r"Not equal to tolerance|Mismatched elements|not almost equal|not close", "another value"),
    (r"RESOURCE_EXHAUSTED", "limits on memory"),
    (r"AssertionError", "an assertion of the test"),
]


def class_of(name, text):
    return next((reason for pattern, reason in CLASSES if re.search(pattern, text) or re.search(pattern, name)), "other")


def table(args):
    ours, theirs = (json.loads(pathlib.Path(path).read_text()) for path in (args.ours, args.theirs))
    say = lambda c: f"{c['passed']} / {len(c['failed'])} / {c['skipped']}" + (f" ({c['ended']})" if c["ended"] else "")
    print(f"## jax {ours['versions'][0]}\n" if args.section else "# JAX's tests\n")
    native = theirs["on"] == "cpu"
    print(
        f"Tests of jax {ours['versions'][0]}, `JAX_NUM_GENERATED_CASES={ours['cases']}`, without the slow ones, run by `codegen/pjrt/tests/jax/suite.py` on this plugin{args.say}. What is counted: passed / failed / skipped."
        f" What fails here is run on XLA:CPU, {'as jaxlib brings it' if native else 'as a PJRT plugin through the same C API'}, which is the bar: the last column has the tests that pass there and fail here, of those that fail here. Tests that XLA:CPU was not run on count as passing there.\n"
    )
    print("| file | devices | this plugin | pass on XLA:CPU alone |")
    print("|---|---|---|---|")
    total, total_alone = collections.Counter(), 0
    by_class = collections.defaultdict(list)
    for file in [f for f in FILES if f in ours["files"]]:
        own, other = ours["files"][file], theirs["files"].get(file, {"failed": {}, "skipped_tests": []})
        alone = {n: t for n, t in own["failed"].items() if n not in other["failed"] and n not in other["skipped_tests"]}
        for name, text in alone.items():
            by_class[class_of(name, text)].append((file, name, text))
        total.update(passed=own["passed"], failed=len(own["failed"]), skipped=own["skipped"])
        total_alone += len(alone)
        print(f"| {file} | {own['devices']} | {say(own)} | {len(alone)} |")
    counted = {"passed": total["passed"], "failed": dict.fromkeys(range(total["failed"])), "skipped": total["skipped"], "ended": ""}
    print(f"| **all** | | {say(counted)} | {total_alone} |\n")
    rate = 100 * total["passed"] / max(total["passed"] + total_alone, 1)
    print(f"Of what passes on one of the two, **{rate:.2f}%** passes here ({100 * total['passed'] / max(total['passed'] + total['failed'], 1):.2f}% of what was run).\n")
    if not native:
        print("XLA:CPU as a plugin has neither callbacks nor LAPACK, because JAX hands its handlers to no foreign plugin (`jax_plugins.hlo` does it here).\n")
    print("Files that did not end in the time given say nothing of the tests in them.\n")
    missing = [f for f in FILES if f not in ours["files"]]
    if missing:
        print(f"Not run: {', '.join(missing)}{args.missing}.\n")
    print(f"##{'#' if args.section else ''} Why tests fail here that pass on XLA:CPU\n")
    print("| class | tests | such as |")
    print("|---|---|---|")
    for reason, tests in sorted(by_class.items(), key=lambda item: -len(item[1])):
        file, name, text = tests[0]
        shown = re.sub(r"\s+", " ", text).replace("|", "\\|")[:140]
        print(f"| {reason} | {len(tests)} | `{file}` {name.split('.')[-1][:60]}: {shown} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    of_run = commands.add_parser("run")
    of_run.add_argument("checkout")
    of_run.add_argument("out")
    of_run.add_argument("--on", default="hlo")
    of_run.add_argument("--file", action="append")
    of_run.add_argument("--cases", type=int, default=1)
    of_run.add_argument("--devices", type=int, default=1)
    of_run.add_argument("--timeout", type=int, default=900)
    of_run.add_argument("--test-timeout", type=int, default=120)
    of_run.add_argument("--failed")
    of_run.add_argument("--reports")
    of_run.set_defaults(call=run)
    of_again = commands.add_parser("again")
    of_again.add_argument("ours")
    of_again.add_argument("again")
    of_again.set_defaults(call=again)
    of_table = commands.add_parser("table")
    of_table.add_argument("ours")
    of_table.add_argument("theirs")
    of_table.add_argument("--say", default="", help="of which build, when")
    of_table.add_argument("--section", action="store_true", help="a section of the document, of another version")
    of_table.add_argument("--missing", default="", help="why files are missing")
    of_table.set_defaults(call=table)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
