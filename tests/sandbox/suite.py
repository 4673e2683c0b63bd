"""Running test cases of the sandbox as the caller and, when that is root, once more as user 1000.

A file of tests ends with `suite.main(CASE, ...)` and is run as: FILE HELPER HOSTILE [unittest
arguments]. Nothing is skipped: a machine that cannot build the sandbox fails here.
"""

import os
import sys
import unittest

import test_sandbox as base


def main(*cases):
    base.HELPER, base.HOSTILE = (os.path.abspath(path) for path in sys.argv[1:3])
    os.umask(0o022)

    def load_tests(loader, _tests, _pattern):
        suite = unittest.TestSuite()
        for case in cases:
            suite.addTests(loader.loadTestsFromTestCase(case))
            if os.getuid() == 0:
                other = type(case.__name__ + "AsUser", (case,), {"uid": 1000})
                suite.addTests(loader.loadTestsFromTestCase(other))
        return suite

    module = sys.modules["__main__"]
    module.load_tests = load_tests
    program = unittest.main(module=module, argv=[sys.argv[0], *sys.argv[3:]], verbosity=2,
                            exit=False)
    bad = len(program.result.failures) + len(program.result.errors)
    skipped = len(program.result.skipped)
    print(f"codespace-tests: {program.result.testsRun - bad - skipped} passed, {bad} failed, "
          f"{skipped} skipped")
    if os.environ.get("CI") == "true":
        bad += skipped
    sys.exit(bad != 0)
