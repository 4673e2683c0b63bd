#!/usr/bin/env python3
"""Run the tests of the enabled network between two worlds of their own, and speak TAP.

    run_network.py --server PATH --helper PATH --proxy PATH [--proxy-tls PATH] --denied PATH TEST.py...

This process becomes "the host": a network namespace with one way out, to "the internet"
(internet.py, in another one). An ordinary user does that in a user namespace. There is no skip: a
machine where this is not possible cannot test an enabled network.
"""

import argparse
import ctypes
import importlib
import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000


def write(path, text):
    with open(path, "w") as out:
        out.write(text)


def become_the_host():
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)
    if libc.unshare(flags) < 0:
        sys.exit("unshare: %s" % os.strerror(ctypes.get_errno()))
    if uid:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", "0 %d 1" % uid)
        write("/proc/self/gid_map", "0 %d 1" % gid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--server", "--helper", "--proxy", "--denied"):
        parser.add_argument(name, required=True)
    parser.add_argument("--proxy-tls", help="the one that ends TLS")
    parser.add_argument("-k", dest="pattern", help="only tests whose name contains this")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    os.environ["CODESPACE_TEST_SERVER"] = os.path.realpath(options.server)
    os.environ["CODESPACE_LINUX_SANDBOX_BIN"] = os.path.realpath(options.helper)
    os.environ["CODESPACE_EGRESS_PROXY_BIN"] = os.path.realpath(options.proxy)
    if options.proxy_tls:
        os.environ["CODESPACE_EGRESS_PROXY_TLS_BIN"] = os.path.realpath(options.proxy_tls)
    os.environ["CODESPACE_TEST_DENIED"] = os.path.realpath(options.denied)
    sys.dont_write_bytecode = True
    sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
    become_the_host()
    tap = importlib.import_module("run")
    worlds = importlib.import_module("worlds")

    loader = unittest.TestLoader()
    if options.pattern:
        loader.testNamePatterns = ["*%s*" % options.pattern]
    suite = unittest.TestSuite()
    for path in options.files:
        name = os.path.splitext(os.path.basename(path))[0]
        suite.addTests(loader.loadTestsFromModule(importlib.import_module(name)))
    print("1..%d" % suite.countTestCases(), flush=True)
    result = tap.TapResult()
    with worlds.Internet() as internet:
        worlds.NetworkCase.internet = internet
        suite.run(result)
    result.count()
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
