"""`pytest --hlo-check`: every program that the suite executes runs on this project's compiler and is judged against the reference interpreter.

    pytest --hlo-check                    a wrong result fails the test in which it is computed
    pytest --hlo-check=log                it is reported at the end
    pytest --hlo-check --hlo-sample 1/16  every sixteenth execution

The summary says how many executions were judged, how, and what was found. Workers of pytest-xdist count together.
"""

import json
import os
import tempfile

_LOG = "HLO_CHECK_LOG"


def pytest_addoption(parser):
    group = parser.getgroup("hlo-ref", "results of JAX judged by a reference")
    group.addoption(
        "--hlo-check", nargs="?", const="raise", choices=["raise", "log"], default=None,
        help="judge every execution of JAX; a wrong result raises (default), or is logged",
    )
    group.addoption("--hlo-sample", default=None, metavar="1/N", help="judge every Nth execution")
    group.addoption("--hlo-save", default=None, metavar="DIR", help="where executions with wrong results are saved")


def pytest_load_initial_conftests(early_config):
    """Before anything imports JAX, which reads its platform once."""
    known = early_config.known_args_namespace
    action = known.hlo_check
    if action is None:
        return
    os.environ.setdefault("JAX_PLATFORMS", "hlo,cpu")
    os.environ["HLO_MODE"] = "check"
    os.environ["HLO_CHECK_ACTION"] = action
    if known.hlo_sample:
        os.environ["HLO_CHECK"] = known.hlo_sample
    if known.hlo_save:
        os.environ["HLO_CHECK_SAVE"] = os.path.abspath(known.hlo_save)
    if _LOG not in os.environ:
        handle, path = tempfile.mkstemp(prefix="hlo-check-", suffix=".jsonl")
        os.close(handle)
        os.environ[_LOG] = path
        early_config._hlo_check_owner = path


def pytest_report_header(config):
    if config.getoption("--hlo-check") is None:
        return None
    return f"hlo-check: on {os.environ['JAX_PLATFORMS']}, {config.getoption('--hlo-check')}, sample {os.environ.get('HLO_CHECK', '1')}"


def _records(path):
    try:
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except OSError:
        return []


def pytest_terminal_summary(terminalreporter, config):
    path = getattr(config, "_hlo_check_owner", None)
    if path is None:
        return
    records = _records(path)
    os.unlink(path)
    counts = {}
    elements = {"same": 0, "explained": 0, "undecided": 0, "wrong": 0}
    for record in records:
        counts[record["verdict"]] = counts.get(record["verdict"], 0) + 1
        for kind in elements:
            elements[kind] += record.get("elements", {}).get(kind, 0)
    terminalreporter.section("hlo-check")
    judged = sum(n for verdict, n in counts.items() if verdict != "not judged")
    said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())) or "nothing was executed"
    terminalreporter.write_line(f"{judged} executions judged of {len(records)} looked at: {said}")
    terminalreporter.write_line("elements: " + ", ".join(f"{n:,} {kind}" for kind, n in elements.items()))
    reasons = {}
    for record in records:
        if record["verdict"] == "not judged":
            reasons[record.get("reason", "")] = reasons.get(record.get("reason", ""), 0) + 1
    for reason, n in sorted(reasons.items(), key=lambda item: -item[1])[:10]:
        terminalreporter.write_line(f"not judged {n} times: {reason}")
    for record in [r for r in records if r["verdict"] == "wrong"][:20]:
        terminalreporter.write_line(f"WRONG {record['program']}: {record.get('message', '')}", red=True)
        if record.get("test"):
            terminalreporter.write_line(f"  in {record['test']}")
        if record.get("saved"):
            terminalreporter.write_line(f"  saved: {record['saved']}")
