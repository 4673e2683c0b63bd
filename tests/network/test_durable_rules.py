"""Commands that outlive their gateway obey what the next one was told."""

import json
import os
import signal
import tempfile

import test_rules
from test_rules import BOTH


class DurableRules(test_rules.RulesCase):
    def setUp(self):
        super().setUp()
        self.place = tempfile.mkdtemp(prefix="cs-worker-")
        self.OPTIONS = ("--runner", "uds", "--runner-durable", self.place)
        self.addCleanup(self.end_worker)

    def worker(self):
        """Its pid, 0 = there is none."""
        try:
            with open(self.place + "/lock") as f:
                pid = int(f.read() or 0)
            with open("/proc/%d/cmdline" % pid) as f:
                return pid if self.place in f.read() else 0
        except (OSError, ValueError):
            return 0

    def end_worker(self):
        pid = self.worker()
        if pid:
            os.kill(pid, signal.SIGTERM)
        self.until(lambda: not self.worker(), "the end of the worker")
        for name in os.listdir(self.place):
            os.unlink(self.place + "/" + name)
        os.rmdir(self.place)

    def set_file(self, **egress):
        with open(self.dir + "/config.json") as f:
            config = json.load(f)
        config["workspaces"]["Work_1.x"]["egress"] = egress
        with open(self.dir + "/config.json", "w") as f:
            json.dump(config, f)

    def check(self):
        running = self.loop(BOTH)
        self.assertEqual(self.next_of(), "200 403 ")
        self.put({"allow": ["*.test"]})
        self.assertEqual(self.next_of(), "200 200 ")
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(self.next_of(), "200 200 ")  # nobody has said anything else
        self.set_file(allow=["registry.test"])
        self.serve()
        self.initialize()
        self.until(lambda: self.tool("workspace_info")["execution"]["network"]["egress_change"][
            "state"] == "in_force", "the rules of the new server")
        self.assertEqual(self.next_of(), "403 200 ")
        answer = self.put({})
        self.assertEqual(answer.json["running_with_these"], [running])
        self.assertEqual(self.next_of(), "403 403 ")
        self.stop_loops()

    def test_a_command_of_its_own(self):
        self.start(network_scope="command")
        self.check()

    def test_a_warm_one(self):
        self.start()
        self.warm_up()
        self.check()

    def test_a_worker_that_is_gone(self):
        """What was lost with it is not said to obey; what starts has the new rules."""
        self.start()
        self.loop(BOTH)
        self.next_of()
        os.kill(self.worker(), signal.SIGKILL)
        self.until(lambda: not self.worker(), "its end")
        answer = self.put({"allow": ["registry.test"]})
        self.assertEqual(answer.status, 200)
        self.assertFalse(answer.json["running_with_these"])
        self.assertEqual(self.sh(BOTH), "403 200 ")
