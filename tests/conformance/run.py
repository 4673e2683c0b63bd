#!/usr/bin/env python3
"""Run the official MCP conformance suite against the fixture server and say what became of it.

    run.py 2025-11-25|2026-07-28 --server PATH

The suite is an npm package of an exact version (package.json, package-lock.json), installed here
into node_modules/, which is ignored. Where npm or the package cannot be had, the test is skipped
with the reason; with CI set that is a failure. Every scored scenario must pass; those that are run
but not scored and are known not to pass stand in NOT_SERVED with the reason.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "clients"))

import run as clients  # noqa: E402

SUITE_S = 600

NOT_SERVED = {
    "sep-2640-skills": "the skills extension is not declared",
}


def result_of(folder):
    """(messages of failed checks, how many checks ran, why none did) of one scenario."""
    with open(os.path.join(folder, "checks.json")) as f:
        checks = json.load(f)
    failed = [c for c in checks if c["status"] == "FAILURE"]
    # A check of the wire beside nothing that was asked is no check of the scenario.
    left_out = [c for c in checks if c["status"] == "SKIPPED"]
    ran = [c for c in checks if c not in left_out and c["id"] != "wire-schema-valid"]
    why = left_out[0].get("errorMessage", "") if left_out and not ran else None
    return ["%s: %s" % (c["id"], c.get("errorMessage", "")) for c in failed], len(checks), why


def report(results):
    """Print a line a scenario; the number that failed and are not known to."""
    names = sorted(os.listdir(results))
    bad = excused = 0
    print("1..%d" % max(1, len(names)))
    for number, name in enumerate(names, 1):
        failed, total, why = result_of(os.path.join(results, name))
        scenario = re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", name)
        reason = next((r for k, r in NOT_SERVED.items() if scenario.startswith(k)), None)
        if (failed and reason) or (why and not failed):
            excused += 1
            print("ok %d - %s # SKIP %s" % (number, scenario, reason if failed else
                                            "by the suite itself: " + why))
            continue
        bad += bool(failed) or total == 0
        for line in failed:
            print("# " + line.replace("\n", " ")[:600])
        print("%s %d - %s" % ("not ok" if failed or total == 0 else "ok", number, scenario))
    good = len(names) - bad - excused
    print("codespace-tests: %d passed, %d failed, %d skipped" % (good, bad, excused))
    return bad


def run_suite(node, options, scratch):
    results = os.path.join(scratch, "results")
    os.makedirs(results)
    program = os.path.join(
        HERE, "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    )
    with clients.HttpServer([os.path.realpath(options.server)]) as server:
        suite = subprocess.run(
            [node, program, "server", "--url", server.url,
             "--requirements", options.requirements, "-o", results],
            cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, timeout=SUITE_S,
            env={"PATH": "/usr/bin:/bin", "HOME": scratch, "LANG": "C.UTF-8"},
        )
    bad = report(results)
    text = suite.stdout.decode("utf-8", "replace")
    print("\n".join("# " + line for line in text.splitlines()[-25:]))
    print("# the suite's exit status: %d, the server's: %d" % (suite.returncode, server.status))
    return 1 if bad or suite.returncode or server.status else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirements", choices=("2025-11-25", "2026-07-28"))
    parser.add_argument("--server", required=True)
    options = parser.parse_args()
    clients.use_folder(HERE)
    node = clients.node_or_exit()
    with tempfile.TemporaryDirectory(prefix="codespace-conformance-") as scratch:
        return run_suite(node, options, os.path.realpath(scratch))


if __name__ == "__main__":
    sys.exit(main())
