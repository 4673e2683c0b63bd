#!/usr/bin/env python3
"""Run end-to-end test files against given programs and say what became of each test.

    run.py --server PATH --helper PATH TEST.py...

Every test method is one line in the manner of TAP; a skip carries its reason. The last line counts
all of them:
`codespace-tests: P passed, F failed, S skipped`. Exit status 1 when one failed.
"""

import argparse
import importlib
import os
import sys
import traceback
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.passed = self.failed = self.skipped_count = 0
        self._bad = None

    def _line(self, ok, test, note=""):
        self.number += 1
        name = ".".join(test.id().split(".")[-3:])
        print("%s %d - %s%s" % ("ok" if ok else "not ok", self.number, name, note), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self._bad = []
        self._reason = None

    def addSuccess(self, test):
        pass

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._reason = reason

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad.append(err)

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._bad.append(err)
            print("# in %s" % subtest.id(), flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        for err in self._bad:
            for line in "".join(traceback.format_exception(*err)).rstrip().splitlines():
                print("# " + line, flush=True)
        if self._bad:
            self.failed += 1
            self._line(False, test)
        elif self._reason is not None:
            self.skipped_count += 1
            self._line(True, test, " # SKIP " + self._reason.replace("\n", " "))
        else:
            self.passed += 1
            self._line(True, test)

    def count(self):
        print(
            "codespace-tests: %d passed, %d failed, %d skipped"
            % (self.passed, self.failed, self.skipped_count),
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--helper", required=True)
    parser.add_argument("-k", dest="pattern", help="only tests whose name contains this")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    os.environ["CODESPACE_TEST_SERVER"] = os.path.realpath(options.server)
    os.environ["CODESPACE_TEST_HELPER"] = os.path.realpath(options.helper)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

    loader = unittest.TestLoader()
    if options.pattern:
        loader.testNamePatterns = ["*%s*" % options.pattern]
    suite = unittest.TestSuite()
    for path in options.files:
        name = os.path.splitext(os.path.basename(path))[0]
        suite.addTests(loader.loadTestsFromModule(importlib.import_module(name)))
    print("1..%d" % suite.countTestCases(), flush=True)
    result = TapResult()
    suite.run(result)
    result.count()
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
