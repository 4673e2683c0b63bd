#!/usr/bin/env python3
"""Run the proxy's test files against a given program and speak TAP.

    run_proxy.py --proxy PATH TEST.py...

The last line counts all of them, as the end-to-end tests do.
"""

import argparse
import importlib
import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proxy", required=True)
    parser.add_argument("-k", dest="pattern", help="only tests whose name contains this")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    os.environ["CODESPACE_TEST_PROXY"] = os.path.realpath(options.proxy)
    sys.dont_write_bytecode = True
    # HERE first: both folders have a support.py.
    sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
    tap = importlib.import_module("run")

    loader = unittest.TestLoader()
    if options.pattern:
        loader.testNamePatterns = ["*%s*" % options.pattern]
    suite = unittest.TestSuite()
    for path in options.files:
        name = os.path.splitext(os.path.basename(path))[0]
        suite.addTests(loader.loadTestsFromModule(importlib.import_module(name)))
    print("TAP version 13")
    print("1..%d" % suite.countTestCases(), flush=True)
    result = tap.TapResult()
    suite.run(result)
    result.count()
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
