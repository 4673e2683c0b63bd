#!/usr/bin/env python3
"""Commands that may make user namespaces ("user_namespaces"), cold and warm: what that is for works,
and with every capability over a namespace of its own a hostile one gets no further than without
(hostile_spaces.c). Run as: test_namespaces.py HELPER HOSTILE [unittest arguments]; see suite.py.
"""

import os
import shutil
import socket
import tempfile

import suite
from test_sandbox import Sandbox
from test_warm import Warm

# Attacks of the other files, from inside of a user namespace: name, arguments.
SAME = (
    ("write_outside",), ("protected_directories", ".git"), ("protected_file", "ci/run.sh"),
    ("cannot_rename", "ci"), ("by_descriptor", ".git", "ci"), ("proc_one",), ("kernel_files",),
    ("families",), ("netlink",), ("denied_calls", "chroot"), ("terminal_injection",),
    ("foreign_numbers",), ("forged_signals",), ("pidfd_of_process_one",),
    ("subvolumes",), ("watching",), ("ten_thousand_denials",), ("killed_in_calls",),
    ("calls_with_pointers",),
)


class Namespaces:
    """What is tried; how it is started is the class's that takes it in."""

    def request(self, argv, **options):
        options.setdefault("user_namespaces", True)
        return super().request(argv, **options)

    def denials(self, outcome):
        return {(d["rule"], d["what"]) for d in outcome.end.get("denials", [])}

    def test_what_it_is_for(self):
        """[B18]"""
        outcome = self.shell("unshare -Ur id -u; unshare -Urpf --kill-child sh -c 'echo $$'; "
                             "unshare -Urn true; unshare -Uru hostname x; grep CapEff /proc/self/status")
        self.succeeds(outcome)
        self.assertEqual(outcome.out.split(), [b"0", b"1", b"CapEff:", b"0" * 16])
        self.assertNotIn("denials", outcome.end)

    def test_what_it_is_not_for(self):
        outcome = self.succeeds(self.shell("! unshare -Urm true"))
        self.assertEqual(self.denials(outcome), {("filter.namespace", "unshare(CLONE_NEWNS)")})

    def test_not_without_it(self):
        outcome = self.succeeds(self.shell("! unshare -Ur true", user_namespaces=False))
        self.assertEqual(self.denials(outcome), {("filter.namespace", "unshare(CLONE_NEWUSER)")})

    def test_who_one_is(self):
        """[B8] Not root, which the kernel lets nobody map again; what is one's own stays that."""
        uid = os.getuid() if self.uid is None else self.uid
        self.put("mine")
        outcome = self.shell("id -u; id -g; stat -c '%u %g' . mine; touch new && "
                             "stat -c %u $HOME new; unshare -Ur stat -c %u mine")
        self.succeeds(outcome)
        self.assertEqual(set(outcome.out.split()[:-1]), {b"%d" % (uid or 1000)}, outcome)
        self.assertEqual(outcome.out.split()[-1], b"0")
        self.assertEqual(os.stat(f"{self.ws}/new").st_uid, uid)

    def test_allowed(self):
        self.attack("allowed_namespaces")

    def test_nested(self):
        self.attack("nested_namespaces")

    def test_the_same_from_inside(self):
        """[A1] Every other wall stands as ever."""
        self.put(".git/file")
        self.put("ci/run.sh")
        self.put("decoy")
        for kinds in ("user", "user,net,ipc,uts,cgroup", "user,pid"):
            for name, *args in SAME:
                if name == "forged_signals" and "pid" in kinds:
                    continue  # it would be process 1 itself
                with self.subTest(attack=name, kinds=kinds):
                    self.attack("inside", kinds, name, *args, protect=[".git", "ci/run.sh"])
            with self.subTest(attack="proc_is_read_only", kinds=kinds):
                self.attack("inside", kinds, "proc_is_read_only", self.owner(), "opened")

    def test_masks_from_inside(self):
        """What process 1 laid is as fixed as what bubblewrap did."""
        for i in range(12):
            self.put(f"d{i}/key.pem", "SECRET")
            self.put(f"d{i}/fixed/file")
        outcome = self.shell("unshare -Ur sh -c 'cat */key.pem; chmod 777 */key.pem; "
                             "echo x > d1/fixed/file; mv d1 e; rm -f d2/key.pem; cat d2/key.pem'; :",
                             hidden=[f"{self.ws}/d{i}/key.pem" for i in range(12)],
                             protect=[f"d{i}/fixed" for i in range(12)])
        self.assertEqual(self.succeeds(outcome).out, b"")
        self.assertEqual(sorted(os.listdir(self.ws)), sorted(f"d{i}" for i in range(12)))

    def test_missing_names_from_inside(self):
        """[A7] Whatever root of a namespace makes, process 1 takes away."""
        for kinds in ("-Ur", "-Urpf"):
            outcome = self.shell(f"unshare {kinds} sh -c 'mkdir -p .codex/x; echo x > .codex/x/y; "
                                 "chmod 0 .codex/x .codex; :'")  # it may be gone before that
            self.succeeds(outcome, [".codex"])
            self.assertEqual(os.listdir(self.ws), [])

    def test_fences(self):
        self.put(".git/file")
        self.put("ci/deploy/file")
        for name in (".git", "ci/deploy"):
            self.attack("fences_from_inside", name, protect=[".git", "ci/deploy"])

    def test_files_of_others(self):
        path = self.put("others", "words", 0o600)
        if os.getuid() == 0:
            os.chown(path, 4242, 4242)
            self.attack("files_of_others", "others")
        else:
            self.attack("files_of_others")

    def test_machine(self):
        self.attack("capabilities_of_the_machine")

    def test_file_capabilities(self):
        self.attack("file_capabilities", self.hostile_here())

    def test_second_listener(self):
        outcome = self.attack("second_listener")
        self.assertIn(("filter.mount", "mount"), self.denials(outcome))

    def test_foreign_ids(self):
        self.attack("foreign_ids")

    def test_process_one(self):
        outcome = self.attack("process_one_from_inside")
        self.assertEqual(outcome.end["background"], 0)

    def test_limits_of_process_one(self):
        """[A7]"""
        outcome = self.attack("inside", "user", "limits_of_process_one", ".git")
        self.assertEqual(outcome.end["removed"], [".git"])

    def test_what_is_left_is_counted_and_killed(self):
        """Processes of process namespaces inside, which process 1 does not reap itself."""
        for depth in (1, 3):
            outcome = self.attack("left_in_namespaces", str(depth), self.marker)
            # Of each level its process 1 and one more, and at the end of all one more.
            self.assertEqual(outcome.end["background"], 2 * depth + depth, outcome)
            self.assertEqual(len(outcome.end["background_pids"]), 3 * depth, outcome)
            self.nothing_survives()

    def test_what_is_kept(self):
        hostile = self.hostile_here()
        plan = self.plan([hostile, "left_in_namespaces", "2", self.marker],
                         mounts=[{"path": hostile}], background="keep")
        process, control = self.start(plan)
        text = b""
        while b'"kept"' not in text:
            data = control.recv(65536)
            self.assertNotEqual(data, b"", text)
            text += data
        self.assertIn(b'"background":6', text)
        self.end(process, control)
        self.nothing_survives()

    def test_ended_while_it_runs(self):
        """[E2] Everything is in namespaces inside, in sessions of its own."""
        plan = self.plan(["unshare", "-Urpf", "setsid", "-w", "unshare", "-Urpf", "sh", "-c",
                          f"echo up; sleep {self.marker}"])
        process, control = self.start(plan, stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.end(process, control)
        self.nothing_survives()

    def test_network(self):
        """[C1] One of its own has nothing, and is no way into the one around."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.attack("network_from_inside", str(server.getsockname()[1]))

    def test_with_debug(self):
        """Both together open no more than both."""
        self.attack("inside", "user", "proc_one", debug=True)
        self.attack("allowed_namespaces", debug=True)
        self.succeeds(self.shell("unshare -Ur strace -o log true && grep -q execve log; "
                                 "! unshare -Ur strace -o log -p 1 2>/dev/null", debug=True))


class Cold(Namespaces, Sandbox):
    def test_secrets_that_are_closed(self):
        """Closed by a mode alone they were out of a command's reach; not out of a namespace's root's."""
        where = "/srv" if os.getuid() == 0 else os.path.expanduser("~")
        home = tempfile.mkdtemp(prefix="cs-sandbox-test-", dir=where)
        self.addCleanup(shutil.rmtree, home)
        with open(f"{home}/.netrc", "w", encoding="ascii") as f:
            f.write("SECRET")
        os.chmod(f"{home}/.netrc", 0)
        for name in (home, f"{home}/.netrc"):
            self.own(name)
        plan = self.plan(["unshare", "-Ur", "cat", f"{home}/.netrc"], env={"HOME": home}, read="all")
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["code"], outcome.out), (0, b""), outcome)


class WarmNamespaces(Namespaces, Warm):
    def test_two_commands_of_one_zygote(self):
        """Neither sees or reaches the other's namespaces, nor the zygote."""
        zygote = self.new_zygote(user_namespaces=True)
        first, control = self.hand(zygote, self.message_of(["unshare", "-Urpf", "sh", "-c",
                                                            f"echo up; sleep {self.marker}"]))
        self.assertEqual(first.stdout.readline(), b"up\n")
        outcome = self.shell_in(zygote, "unshare -Ur sh -c 'kill -9 -1; ls /proc | grep -c ^[0-9]'")
        self.assertIsNotNone(outcome.end)
        self.assertEqual(zygote.process.poll(), None)
        self.succeeds(self.shell_in(zygote, "unshare -Ur id -u"))
        control.close()
        self.nothing_survives()
        first.stdout.close()
        first.stderr.close()

    def message_of(self, argv):
        from warm_client import message
        return message(argv, self.ws)


suite.main(Cold, WarmNamespaces)
