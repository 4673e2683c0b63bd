"""The command sandbox as a client of the tools meets it.

What hostile programs can try inside is tests/sandbox; here is what the tools promise: the walls
stand for commands that were started by exec_command, and both kinds of tools tell the same.
"""

import os
import socket
import subprocess

from support import Case, ToolError, needs_sandbox, patch_text, processes


class SandboxCase(Case):
    @needs_sandbox
    def setUp(self):
        super().setUp()
        self.client = self.start(env={"MY_SECRET": self.secret()})

    def secret(self):
        """A word that occurs nowhere but in this test's secrets."""
        if not hasattr(self, "_secret"):
            self._secret = "hush-" + os.urandom(8).hex()
        return self._secret

    def sh(self, script, **arguments):
        return self.shell(self.client, script, **arguments)

    def output(self, script, **arguments):
        done = self.sh(script, **arguments)
        self.assertEqual(done.get("exit_code"), 0, done)
        return done["output"]

    def denied(self, script, **arguments):
        done = self.sh(script, **arguments)
        self.assertNotEqual(done.get("exit_code"), 0, done)
        return done


class Truth(SandboxCase):
    @needs_sandbox
    def test_what_is_on_is_told(self):
        """R18, H14."""
        info = self.client.call("workspace_info", workspace_id="ws")
        self.assertEqual(info["profile"], "workspace-write")
        self.assertEqual(info["root"], self.ws)
        execution = info["execution"]
        self.assertEqual(execution["isolation"]["command_sandbox"], "linux-sandbox")
        self.assertIs(execution["isolation"]["file_tools_workspace_scoped"], True)
        self.assertEqual(execution["network"]["policy"], "restricted")
        self.assertEqual(execution["network"]["enforcement"], "enforced")
        self.assertIs(execution["network"]["client_may_escalate"], False)
        self.assertIs(execution["process"]["available"], True)
        self.assertEqual(execution["environment"]["kind"], "host")
        self.assertNotIn("environment_id", str(info))

    @needs_sandbox
    def test_descriptions_say_the_same(self):
        """A server that was asked after its probe describes what it found."""
        self.client.call("workspace_info", workspace_id="ws")
        tools = {t["name"]: t for t in self.client.request("tools/list")["tools"]}
        text = tools["exec_command"]["description"].lower()
        self.assertIn("sandbox", text)
        self.assertNotIn("without a sandbox", text)

    @needs_sandbox
    def test_the_walls_stand(self):
        status = self.output("cat /proc/self/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual(int(fields["CapEff"], 16), 0)
        self.assertEqual(int(fields["CapPrm"], 16), 0)
        self.assertEqual(fields["NoNewPrivs"], "1")
        self.assertEqual(fields["Seccomp"], "2")
        for name in ("user", "mnt", "pid", "ipc", "net", "uts", "cgroup"):
            with self.subTest(namespace=name):
                inside = self.output("readlink /proc/self/ns/" + name).strip()
                self.assertNotEqual(inside, os.readlink("/proc/self/ns/" + name))


class Denials(SandboxCase):
    """G9, G10: told by the layer that refused, never guessed."""

    @needs_sandbox
    def test_a_refused_call_is_told(self):
        done = self.denied("unshare -U true; exit 3")
        self.assertEqual(
            [(d["rule"], d["layer"], d["what"], d["count"]) for d in done["denials"]],
            [("filter.namespace", "filter", "unshare(CLONE_NEWUSER)", 1)],
        )
        self.assertIn('"user_namespaces": true', done["denials"][0]["grant"])
        self.assertEqual(done["denials_unknown"], ["view", "masks", "network"])
        again = self.client.call("process_status", process_id=done["process_id"])
        self.assertEqual(again["denials"], done["denials"])

    @needs_sandbox
    def test_the_way_to_allow_it_is_told(self):
        done = self.sh("python3 -S -c 'import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0)'")
        self.assertEqual(done["exit_code"], 0, done)
        self.assertIn('"debug": true', done["denials"][0]["grant"])

    @needs_sandbox
    def test_words_are_no_denial(self):
        done = self.denied("echo permission denied by the sandbox: seccomp; exit 1")
        self.assertNotIn("denials", done)
        done = self.sh("echo permission denied")
        self.assertNotIn("denials_unknown", done)

    @needs_sandbox
    def test_a_protected_name_is_told(self):
        done = self.sh("mkdir .codex; exit 0")
        self.assertEqual(done["removed"], [".codex"])
        self.assertEqual([(d["rule"], d["what"]) for d in done["denials"]],
                         [("protect.name", ".codex")])
        self.assertIn("protect", done["denials"][0]["grant"])


class UserNamespaces(Case):
    """B18: an operator's choice, told wherever it counts."""

    def machine(self, **options):
        path = self.config({"workspaces": {
            "ws": {"root": self.ws, "profile": "workspace-write", "sandbox": "required",
                   "user_namespaces": True, **options}}})
        return self.start("--config", path)

    @needs_sandbox
    def test_they_work(self):
        """Cold, and warm."""
        client = self.machine()
        for _ in range(3):
            done = self.shell(client, "unshare -Urn id -u; mkdir .codex; :")
            self.assertEqual(done["output"].split("\n")[0], "0", done)
            self.assertEqual(done["removed"], [".codex"])
            self.assertEqual(done["weaker"], "user_namespaces: true")
            self.assertEqual([d["rule"] for d in done["denials"]], ["protect.name"])

    @needs_sandbox
    def test_what_stays_refused_is_told(self):
        done = self.shell(self.machine(), "unshare -Urm true; exit 1")
        self.assertEqual([(d["rule"], d["what"]) for d in done["denials"]],
                         [("filter.namespace", "unshare(CLONE_NEWNS)")])
        self.assertIn("not offered", done["denials"][0]["grant"])

    @needs_sandbox
    def test_truth(self):
        client = self.machine(debug=True)
        view = client.call("workspace_info", workspace_id="ws")["execution"]["view"]
        self.assertIs(view["user_namespaces"], True)
        self.assertEqual(self.shell(client, "true")["weaker"], "debug: true, user_namespaces: true")

    @needs_sandbox
    def test_nobody_has_them_unasked(self):
        client = self.start()
        view = client.call("workspace_info", workspace_id="ws")["execution"]["view"]
        self.assertIs(view["user_namespaces"], False)
        self.assertNotIn("weaker", self.shell(client, "true"))

    @needs_sandbox
    def test_a_search_has_none(self):
        client = self.machine()
        self.write("f", "word\n")
        self.assertEqual(client.call("search", workspace_id="ws", pattern="word")["total"], 1)

    def test_without_a_proc_of_its_own(self):
        path = self.config({"workspaces": {"ws": {"root": self.ws, "user_namespaces": True,
                                                  "proc": "inherited"}}})
        self.assertIn("user_namespaces", self.refused("--config", path)[1])


class WithoutFreshProc(Case):
    """D2: a container whose /proc cannot be mounted anew."""

    def machine(self, **options):
        fake = os.path.join(self.dir, "bwrap")
        with open(fake, "w", encoding="utf-8") as f:
            f.write(
                "#!/usr/bin/python3\nimport os, sys\n"
                "if '--args' in sys.argv:\n"
                "    fd = int(sys.argv[sys.argv.index('--args') + 1])\n"
                "    at = os.lseek(fd, 0, os.SEEK_CUR)\n"
                "    words = os.read(fd, 1 << 20).split(b'\\0')\n"
                "    os.lseek(fd, at, os.SEEK_SET)\n"
                "    if b'--proc' in words:\n"
                "        sys.exit(\"bwrap: Can't mount proc on /newroot/proc: Invalid argument\")\n"
                "os.execv('/usr/bin/bwrap', ['bwrap'] + sys.argv[1:])\n"
            )
        os.chmod(fake, 0o755)
        other = os.path.join(self.dir, "other")
        os.mkdir(other)
        path = self.config({"workspaces": {
            "plain": {"root": self.ws, "profile": "workspace-write", "sandbox": "required"},
            "weaker": {"root": other, "profile": "workspace-write", "sandbox": "required",
                       "proc": "inherited", **options},
        }})
        return self.start("--config", path, env={"CODESPACE_BWRAP_BIN": fake})

    @needs_sandbox
    def test_only_for_who_chose_it(self):
        client = self.machine()
        done = self.run_command(client, "/bin/sh", "-c", "grep -c . /proc/self/status; exit 4",
                                workspace_id="weaker")
        self.assertEqual((done["exit_code"], done["sandbox"], done["weaker"]),
                         (4, "linux-sandbox", "proc: inherited"))
        with self.assertRaises(ToolError) as refused:
            self.run_command(client, "/bin/true", workspace_id="plain")
        self.assertEqual(refused.exception.code, "SANDBOX_UNAVAILABLE")
        self.assertIn("inherited", str(refused.exception))

    @needs_sandbox
    def test_truth(self):
        client = self.machine()
        weaker = client.call("workspace_info", workspace_id="weaker")["execution"]
        self.assertEqual(weaker["isolation"]["command_sandbox"], "linux-sandbox")
        self.assertEqual(weaker["isolation"]["mode"], "sandboxed")
        self.assertIs(weaker["isolation"]["layers"]["fresh_proc"], False)
        self.assertIs(weaker["isolation"]["layers"]["seccomp"], True)
        self.assertEqual(weaker["network"]["enforcement"], "enforced")
        plain = client.call("workspace_info", workspace_id="plain")["execution"]
        self.assertEqual(plain["isolation"]["command_sandbox"], "none")
        self.assertIs(plain["isolation"]["layers"]["seccomp"], False)

    @needs_sandbox
    def test_debug_is_told(self):
        client = self.machine(debug=True)
        done = self.run_command(client, "/bin/true", workspace_id="weaker")
        self.assertEqual(done["weaker"], "proc: inherited, debug: true")


class Network(SandboxCase):
    @needs_sandbox
    def test_nothing_is_reached(self):
        """R16: not even a server of this host on the loopback."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            listener.setblocking(False)
            port = listener.getsockname()[1]
            done = self.run_command(
                self.client, "/bin/bash", "-c", "echo x > /dev/tcp/127.0.0.1/%d" % port
            )
            self.assertNotEqual(done["exit_code"], 0, done)
            with self.assertRaises(BlockingIOError):
                listener.accept()

    @needs_sandbox
    def test_no_interface_but_its_own_loopback(self):
        lines = self.output("cat /proc/net/dev").splitlines()[2:]
        self.assertEqual([line.split(":")[0].strip() for line in lines], ["lo"])

    @needs_sandbox
    def test_a_client_cannot_open_it(self):
        done = self.run_command(
            self.client, "/bin/sh", "-c", "cat /proc/net/dev | wc -l", network="enabled"
        )
        self.assertEqual(done["output"].strip(), "3")


class View(SandboxCase):
    @needs_sandbox
    def test_the_host_is_not_there(self):
        with open(os.path.join(self.home, "secret"), "w") as f:
            f.write(self.secret())
        for path in (
            os.path.join(self.home, "secret"), self.home, self.tmp, "/root/.ssh", "/home",
            "/var/log", "/run/dbus",
        ):
            with self.subTest(path=path):
                done = self.sh('cat "%s" || ls -A "%s"' % (path, path))
                self.assertNotIn(self.secret(), done["output"])
                names = self.sh('ls -A "%s" 2>/dev/null' % path)["output"]
                self.assertEqual(names, "")

    @needs_sandbox
    def test_secrets_of_the_platform_are_not_there(self):
        self.denied("test -s /etc/shadow")
        self.denied("grep -r . /etc/ssh/*_key")

    @needs_sandbox
    def test_the_platform_is_read_only(self):
        for path in ("/usr/x", "/etc/x", "/bin/x", "/x", "/proc/sys/kernel/hostname"):
            with self.subTest(path=path):
                self.denied('echo x > "%s"' % path)

    @needs_sandbox
    def test_the_workspace_is_writable(self):
        self.output("mkdir -p d/e && echo made > d/e/f && chmod 700 d/e/f && ln d/e/f d/g")
        self.assertEqual(self.bytes_of("d/g"), b"made\n")
        self.assertEqual(os.stat(self.path("d/g")).st_uid, os.getuid())

    @needs_sandbox
    def test_tmp_is_private(self):
        """B3: nothing of it on the host, nothing of it in the next command."""
        name = "codespace-e2e-" + os.urandom(6).hex()
        self.output("echo x > /tmp/%s && cat /tmp/%s" % (name, name))
        self.assertFalse(os.path.exists("/tmp/" + name))
        self.denied("cat /tmp/" + name)
        self.assertNotIn(name, self.output("ls -A /tmp"))

    @needs_sandbox
    def test_processes_of_the_host_are_not_there(self):
        pids = self.output("ls /proc").split()
        self.assertLess(len([p for p in pids if p.isdigit()]), 8)
        self.denied("kill -0 %d" % self.client.pid)

    @needs_sandbox
    def test_devices_are_few(self):
        names = set(self.output("ls /dev").split())
        self.assertIn("null", names)
        self.assertFalse(names & {"mem", "kmsg", "sda", "vda", "kvm", "fuse"}, names)


class Secrets(SandboxCase):
    @needs_sandbox
    def test_the_servers_environment_stays_outside(self):
        """A28: not in the environment, not in any process that is visible."""
        self.assertNotIn("MY_SECRET", self.output("env"))
        done = self.sh(
            "cat /proc/*/environ /proc/*/task/*/environ /proc/*/cmdline 2>/dev/null"
            " | tr '\\0' '\\n'"
        )
        self.assertIn("PATH=", done["output"])
        self.assertNotIn(self.secret(), done["output"])
        self.assertNotIn(HELPER_VARIABLE, done["output"])

    @needs_sandbox
    def test_a_variable_is_not_seen_in_argument_lists(self):
        """E34: `ps` on the host does not show what a command was given in secret."""
        word = self.secret() + "-given"
        started = self.client.call(
            "exec_command", workspace_id="ws", env={"GIVEN": word},
            command=["/bin/sh", "-c", 'test -n "$GIVEN" && echo up && cat'],
        )
        self.ready(self.client, started["process_id"], "up")
        seen = [command for _, _, _, command in processes() if word in command]
        self.assertEqual(seen, [])

    @needs_sandbox
    def test_descriptors_of_the_server_are_not_seen(self):
        """E30."""
        listing = self.output("ls -l /proc/self/fd")
        numbers = [line.split()[8] for line in listing.splitlines() if "->" in line]
        self.assertEqual(numbers, ["0", "1", "2", "3"], listing)
        self.assertNotIn("socket:", listing)
        for pid in ("1", "$PPID"):
            self.sh("echo junk > /proc/%s/fd/1; echo junk > /proc/%s/fd/2" % (pid, pid))
        self.assertEqual(self.client.request("ping"), {})
        self.assertEqual(self.client.junk, [])
        self.assertNotIn("junk", self.client.stderr_lines)


HELPER_VARIABLE = "CODESPACE_LINUX_SANDBOX_BIN"


class Protected(SandboxCase):
    NAMES = (".git", ".agents", ".codex")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.write(name + "/config", "original\n")

    def test_commands_cannot_write_them(self):
        """R21, H3."""
        for name in self.NAMES:
            with self.subTest(name=name):
                self.assertEqual(self.output("cat %s/config" % name), "original\n")
                self.denied("echo x >> %s/config" % name)
                self.denied("echo x > %s/new" % name)
                self.denied("rm -rf %s" % name)
                self.denied("mv %s other" % name)
                self.assertEqual(self.bytes_of(name + "/config"), b"original\n")
        self.assertEqual(sorted(os.listdir(self.ws)), sorted(self.NAMES))

    def test_both_kinds_of_tools_say_the_same(self):
        """A27: what a command may not write, a patch may not; what one may read, the other may."""
        self.write("free.txt", "original\n")
        for path, writable in [(name + "/config", False) for name in self.NAMES] + [
            ("free.txt", True)
        ]:
            with self.subTest(path=path):
                content = self.client.call("read", workspace_id="ws", path=path)["content"]
                self.assertEqual(content, self.output("cat " + path))
                by_command = self.sh("echo command >> " + path)["exit_code"] == 0
                try:
                    self.client.call(
                        "apply_patch", workspace_id="ws",
                        patch=patch_text("*** Update File: " + path, "@@", "-original", "+patch"),
                    )
                    by_patch = True
                except ToolError as error:
                    self.assertEqual(error.code, "PATH_PROTECTED")
                    by_patch = False
                self.assertEqual((by_command, by_patch), (writable, writable))


class ProtectedMissing(SandboxCase):
    @needs_sandbox
    def test_nothing_is_left_where_they_are_missing(self):
        """A7: an empty workspace stays empty."""
        self.output("true")
        self.assertEqual(os.listdir(self.ws), [])

    @needs_sandbox
    def test_a_command_cannot_plant_them(self):
        """H3: even when they did not exist; what was created is taken away and told."""
        done = self.sh("mkdir -p .git/hooks && echo evil > .git/hooks/post-checkout; echo end")
        self.assertIn("end", done["output"])
        self.assertFalse(os.path.exists(self.path(".git")), done)
        if "removed" in done:
            self.assertEqual(done["removed"], [".git"])
        else:
            self.assertIn(".git", done["output"])

    @needs_sandbox
    def test_other_names_are_free(self):
        self.output("mkdir .github .gitignore.d && echo x > .gitignore")
        self.assertEqual(sorted(os.listdir(self.ws)), [".github", ".gitignore", ".gitignore.d"])


class Planted(SandboxCase):
    @needs_sandbox
    def test_links_that_a_command_made_do_not_lead_the_file_tools_out(self):
        """A19."""
        self.output("ln -s /etc/passwd l; ln -s .. up; ln -s / root; mkfifo f")
        for path, code in (
            ("l", "SYMLINK_REJECTED"),
            ("up/home/secret", "SYMLINK_REJECTED"),
            ("root/etc/passwd", "SYMLINK_REJECTED"),
            ("f", "SPECIAL_FILE_REJECTED"),
        ):
            with self.subTest(path=path):
                self.fails(code, self.client, "read", workspace_id="ws", path=path)
        self.assertEqual(self.client.call("find", workspace_id="ws")["paths"], [])

    @needs_sandbox
    def test_a_command_sees_what_a_patch_wrote(self):
        self.client.call(
            "apply_patch", workspace_id="ws", patch=patch_text("*** Add File: d/n", "+new")
        )
        self.assertEqual(self.output("cat d/n"), "new\n")
        self.output("echo changed > d/n")
        page = self.client.call("read", workspace_id="ws", path="d/n")
        self.assertEqual(page["content"], "changed\n")


class Programs(SandboxCase):
    """What ordinary programs need is there."""

    @needs_sandbox
    def test_here_documents_and_temporary_files(self):
        """B1: also where only /tmp can be written."""
        self.output("cd /usr && cat <<E\nin sh\nE\n")
        done = self.run_command(self.client, "/bin/bash", "-c", "cd /usr; cat <<E\nin bash\nE\n")
        self.assertEqual(done["output"], "in bash\n")
        self.output("f=$(mktemp) && echo x > $f && cat $f")

    @needs_sandbox
    def test_a_home_that_can_be_written(self):
        """B7: tools that keep a file beside their file; gone with the command."""
        self.output('mkdir -p "$HOME/.config/x" && echo x > "$HOME/.config/x/y"')
        self.denied('cat "$HOME/.config/x/y"')

    @needs_sandbox
    def test_a_server_of_its_own_on_the_loopback(self):
        """C7: restricted means nothing outside, not nothing."""
        script = (
            "import socket\n"
            "l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()\n"
            "c = socket.create_connection(l.getsockname())\n"
            "s, _ = l.accept(); s.sendall(b'hello'); print(c.recv(5).decode())\n"
        )
        done = self.run_command(self.client, "/usr/bin/python3", "-c", script)
        self.assertEqual(done["output"], "hello\n", done)

    @needs_sandbox
    def test_nothing_waits_for_a_person(self):
        """E21, E22: no pager, no editor."""
        self.assertEqual(self.output('echo "$PAGER $GIT_PAGER $GIT_EDITOR"'), "cat cat true\n")

    @needs_sandbox
    def test_git_reads_the_workspace_and_writes_below_it(self):
        """A4, A11: a protected .git is read-only, not broken."""
        environment = {**os.environ, "HOME": self.home}
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        self.write("f", "x\n")
        for words in (("init", "-q"), ("add", "f"), (*who, "commit", "-qm", "first")):
            subprocess.run(["git", "-C", self.ws, *words], check=True, env=environment)
        self.assertIn("first", self.output("git log --oneline"))
        self.assertEqual(self.output("git status --short"), "")
        self.assertIn("+y", self.output("echo y >> f; git diff"))
        self.denied("git %s commit -qam second" % " ".join(who))
        self.output(
            "git init -q sub && cd sub && echo z > g && git add g && git %s commit -qm own"
            % " ".join(who)
        )
        self.assertEqual(self.output("git -C sub log --format=%s"), "own\n")


class Operator(Case):
    """What the registry adds to the view of a workspace."""

    def start_with(self, **workspace):
        entry = {"root": self.ws, "profile": "workspace-write", **workspace}
        return self.start("--config", self.config({"workspaces": {"ws": entry}}))

    @needs_sandbox
    def test_extra_mounts(self):
        read, write = self.make_dir("extra-read"), self.make_dir("extra-write")
        with open(os.path.join(read, "f"), "w") as f:
            f.write("shared\n")
        client = self.start_with(mounts=[{"path": read}, {"path": write, "writable": True}])
        done = self.shell(
            client, "cat %s/f && echo x > %s/g && ! echo x > %s/h" % (read, write, read)
        )
        self.assertEqual(done["exit_code"], 0, done)
        self.assertIn("shared", done["output"])
        self.assertEqual((os.listdir(read), os.listdir(write)), (["f"], ["g"]))

    @needs_sandbox
    def test_variables(self):
        client = self.start_with(env={"FROM_OPERATOR": "yes"})
        done = self.shell(client, 'echo "$FROM_OPERATOR"')
        self.assertEqual(done["output"], "yes\n")

    @needs_sandbox
    def test_hidden_paths_are_hidden_from_both_kinds_of_tools(self):
        """A27."""
        self.write("secret/key", "hush\n")
        self.write("open", "open\n")
        client = self.start_with(hide=[self.path("secret")])
        done = self.shell(client, "cat secret/key; ls -A secret")
        self.assertNotIn("hush", done["output"])
        self.assertNotIn("\nkey", done["output"])
        self.fails(
            ("PATH_PROTECTED", "FILE_NOT_FOUND"), client, "read", workspace_id="ws",
            path="secret/key",
        )
        self.assertNotIn("secret/key", client.call("find", workspace_id="ws")["paths"])
        with self.assertRaises(ToolError):
            client.call(
                "apply_patch", workspace_id="ws",
                patch=patch_text("*** Update File: secret/key", "@@", "-hush", "+x"),
            )
        self.assertEqual(self.bytes_of("secret/key"), b"hush\n")

    @needs_sandbox
    def test_reading_everything_is_not_reading_secrets(self):
        client = self.start_with(read="all")
        done = self.shell(client, "ls -d /var/lib && test ! -s /etc/shadow && ! echo x > /var/x")
        self.assertEqual(done["exit_code"], 0, done)

    @needs_sandbox
    def test_two_workspaces_do_not_see_each_other(self):
        other = self.make_dir("other")
        with open(os.path.join(other, "f"), "w") as f:
            f.write("other\n")
        client = self.start("--workspace", "ws=" + self.ws, "--workspace", "two=" + other)
        done = self.shell(client, "cat %s/f" % other)
        self.assertNotEqual(done["exit_code"], 0)
        done = self.run_command(client, "cat", "f", workspace_id="two")
        self.assertEqual(done["output"], "other\n")

    @needs_sandbox
    def test_a_container_environment_runs_nothing_here(self):
        client = self.start(
            "--config",
            self.config(
                {
                    "environments": {"box": {"kind": "linux-container"}},
                    "workspaces": {
                        "ws": {
                            "root": self.ws, "profile": "workspace-write", "environment": "box",
                        }
                    },
                }
            ),
        )
        for tool, arguments in (
            ("exec_command", {"command": ["true"]}),
            ("read", {"path": "a"}),
            ("find", {}),
            ("apply_patch", {"patch": patch_text("*** Add File: a", "+x")}),
        ):
            with self.subTest(tool=tool):
                self.fails("UNAUTHORIZED", client, tool, workspace_id="ws", **arguments)
        execution = client.call("workspace_info", workspace_id="ws")["execution"]
        self.assertIs(execution["process"]["available"], False)
        self.assertIs(execution["files"]["read"]["available"], False)


if __name__ == "__main__":
    import unittest

    unittest.main()
