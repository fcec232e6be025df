"""Times XLA's own parser and printer of HLO text, through jaxlib, for the benchmark parser/benches/text.rs.

    python xla_text.py SECONDS FILE...

For each file one line of JSON: file, bytes, parse_s and print_s (medians of as many runs as fit in SECONDS each, at least 5),
printed_bytes; or file and error. The printed form is XLA's default with large constants, which is what a dump holds.
"""

import json
import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from jax._src.lib import xla_client  # noqa: E402


def median_time(run, seconds):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    seconds = float(sys.argv[1])
    hlo = xla_client.hlo if hasattr(xla_client, "hlo") else xla_client._xla
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    for path in sys.argv[2:]:
        with open(path) as f:
            text = f.read()
        try:
            module = hlo.hlo_module_from_text(text)
            printed = module.to_string(options)
            result = {
                "file": path,
                "bytes": len(text.encode()),
                "parse_s": median_time(lambda: hlo.hlo_module_from_text(text), seconds),
                "print_s": median_time(lambda: module.to_string(options), seconds),
                "printed_bytes": len(printed.encode()),
            }
        except Exception as error:  # a module that this version does not read
            result = {"file": path, "error": str(error).splitlines()[0]}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
