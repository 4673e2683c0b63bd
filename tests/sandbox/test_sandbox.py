#!/usr/bin/env python3
"""What a sandboxed command may not do, tried by a hostile one, and how the sandbox behaves from
outside. Run as: test_sandbox.py HELPER HOSTILE [unittest arguments]

Every test runs as the caller and, when that is root, once more as user 1000. Nothing is skipped:
a machine that cannot build the sandbox fails here. Requirement and hazard ids stand in brackets.
"""

import concurrent.futures
import errno
import fcntl
import json
import os
import pty
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HELPER = ""
HOSTILE = ""
PREFIX = "codespace-linux-sandbox: "
LIMIT = 90  # seconds that nothing here needs on any machine

EXIT = {
    "usage": 180, "setuid": 181, "plan_file": 182, "plan_form": 183, "descriptors": 184,
    "source": 185, "bwrap_start": 186, "bwrap": 187, "guard": 192, "terminal": 193, "cwd": 194,
    "lost": 196, "limits": 198,
}


class Outcome:
    """How a run with a control socket ended."""

    def __init__(self, control, out, err, status):
        self.out, self.err, self.status = out, err, status
        lines = control.decode().splitlines()
        self.events = [json.loads(line) for line in lines if line.startswith("{")]
        self.words = [line for line in lines if line and not line.startswith("{")]
        self.end = self.events[-1] if self.events else {}

    def __repr__(self):
        return f"{self.events} {self.words} {self.out!r} {self.err!r} {self.status}"


def wait_until(condition, what):
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.005)


def alive(word):
    """Numbers of processes of this machine whose command line holds the word."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                if word.encode() in f.read():
                    found.append(int(entry))
        except OSError:
            pass
    return found


def descendants(pid):
    found = [pid]
    for at in found:
        try:
            with open(f"/proc/{at}/task/{at}/children", encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def ignore_some():
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGRTMIN):
        signal.signal(number, signal.SIG_IGN)


class Sandbox(unittest.TestCase):
    """Surroundings and tools; the tests are in the classes below."""

    uid = None  # None: as we are

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="cs-sandbox-test-")
        os.chmod(self.base, 0o755)
        self.tmp = os.path.join(self.base, "tmp")
        self.ws = os.path.join(self.base, "ws")
        self.helper = os.path.join(self.base, "codespace-linux-sandbox")
        shutil.copy(HELPER, self.helper)
        for directory in (self.tmp, self.ws):
            os.mkdir(directory)
            self.own(directory)
        self.marker = f"{os.getpid()}{time.monotonic_ns()}"
        self.addCleanup(self.clean)

    def clean(self):
        self.assertEqual(os.listdir(self.tmp), [], "plans or directories were left")
        for directory, _, _ in os.walk(self.base):
            os.chmod(directory, 0o755)
        shutil.rmtree(self.base)

    def own(self, path):
        if self.uid is not None:
            os.lchown(path, self.uid, self.uid)

    def put(self, name, text="text", mode=0o644):
        """A file of the workspace, with its directories."""
        path = os.path.join(self.ws, name)
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            os.makedirs(parent)
            while parent != self.ws:
                self.own(parent)
                parent = os.path.dirname(parent)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        self.own(path)
        return path

    def directory(self, name):
        path = os.path.join(self.ws, name)
        os.mkdir(path)
        self.own(path)
        return path

    def hostile_here(self):
        shutil.copy(HOSTILE, os.path.join(self.base, "hostile"))
        return os.path.join(self.base, "hostile")

    def as_user(self, **extra):
        if self.uid is not None:
            extra.update(user=self.uid, group=self.uid, extra_groups=[])
        env = {"TMPDIR": self.tmp, "PATH": "/usr/bin:/bin", "HOME": self.base}
        env.update(extra.pop("env", {}))
        return dict(env=env, **extra)

    def request(self, argv, **options):
        request = {
            "protocol": 1, "workspace_root": self.ws, "command_cwd": self.ws,
            "writable_workspace": True, "network": "restricted", "argv": list(argv),
        }
        request.update(options)
        return json.dumps(request)

    def ask(self, text, env=None):
        done = subprocess.run([self.helper, "prepare"], input=text.encode(), timeout=LIMIT,
                              capture_output=True, **self.as_user(env=env or {}))
        self.assertEqual(done.stderr, b"")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["type"] == "prepared" else 1)
        return answer

    def plan(self, argv, env=None, **options):
        answer = self.ask(self.request(argv, **options), env)
        self.assertEqual(answer["type"], "prepared", answer)
        return answer["plan_path"]

    def refused(self, *words, **options):
        answer = self.ask(self.request(options.pop("argv", ["true"]), **options))
        self.assertEqual(answer["type"], "error")
        for word in words:
            self.assertIn(word, answer["message"])

    def start(self, plan, **popen):
        """The runner's way: (process, our end of the control socket)."""
        ours, theirs = socket.socketpair()
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [self.helper, "run", "--plan", plan, "--control-fd", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], start_new_session=True, **self.as_user(**popen))
        theirs.close()
        ours.settimeout(LIMIT)
        self.addCleanup(ours.close)
        return process, ours

    def finish(self, process, control):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            output = pool.submit(process.communicate, timeout=LIMIT)
            text = b""
            while data := control.recv(65536):
                text += data
            out, err = output.result()
        return Outcome(text, out, err, process.returncode)

    def end(self, process, control):
        """As a runner ends a sandbox that does not matter any more (see wire/helper)."""
        control.close()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate(timeout=LIMIT)

    def run_plan(self, plan, **popen):
        return self.finish(*self.start(plan, **popen))

    def run_command(self, argv, popen=None, **options):
        return self.run_plan(self.plan(argv, **options), **(popen or {}))

    def shell(self, script, **options):
        return self.run_command(["sh", "-c", script], **options)

    def alone(self, plan, **popen):
        """A person's way: no control socket."""
        popen.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.helper, "run", "--plan", plan], timeout=LIMIT,
                              capture_output=True, **self.as_user(**popen))

    def owner(self):
        """Whose the sandbox's commands are outside."""
        return "root" if self.uid is None and os.getuid() == 0 else "user"

    def attack(self, name, *args, **options):
        """One row of hostile.c, which must fail in every way it tries."""
        hostile = self.hostile_here()
        mounts = options.pop("mounts", []) + [{"path": hostile}]
        outcome = self.run_command([hostile, name, *args], mounts=mounts, **options)
        self.assertEqual(outcome.end.get("event"), "exit", outcome)
        self.assertEqual(outcome.end["code"], 0, outcome.out.decode())
        return outcome

    def succeeds(self, outcome, removed=()):
        self.assertEqual(outcome.end.get("event"), "exit", outcome)
        self.assertEqual(outcome.end["code"], 0, outcome)
        self.assertEqual(outcome.end["removed"], list(removed))
        return outcome

    def wait_started(self, control):
        text = b""
        while not text.endswith(b"\n"):
            data = control.recv(1)  # no byte of the next line
            self.assertNotEqual(data, b"", "the sandbox did not start")
            text = (text + data).lstrip(b"\n")  # the receipt is an empty line
        self.assertEqual(json.loads(text)["event"], "started", text)

    def nothing_survives(self):
        wait_until(lambda: not alive(self.marker), "the sandbox's processes are gone")


class View(Sandbox):
    def test_rest_of_the_host_is_absent(self):
        """[H3, R21]"""
        self.attack("absent", "/home", "/root", "/var", "/run", "/srv", "/mnt", "/media", "/boot",
                    "/sys", self.tmp, self.helper)

    def test_password_hashes_are_hidden(self):
        self.attack("reads_as_empty", "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
                    "/etc/ssl/private", "/etc/sudoers")

    def test_nothing_outside_can_be_written(self):
        self.attack("write_outside")

    def test_nothing_outside_can_be_written_with_whole_view(self):
        self.attack("write_outside", read="all")

    def test_workspace_is_writable(self):
        self.attack("workspace_writable")
        self.assertEqual(os.listdir(self.ws), [])

    def test_workspace_is_read_only_by_profile(self):
        self.put("file")
        self.attack("workspace_readonly", writable_workspace=False)
        self.assertEqual(os.listdir(self.ws), ["file"])

    def test_tmp_is_private(self):
        """[B3]"""
        self.succeeds(self.shell("ls -A /tmp > seen; echo x > /tmp/x"))
        self.succeeds(self.shell("test ! -e /tmp/x"))
        with open(os.path.join(self.ws, "seen"), encoding="utf-8") as f:
            seen = f.read().split()
        self.assertEqual(sorted(seen), sorted(["home", os.path.basename(self.base)]))

    def test_here_documents_work(self):
        """[B1]"""
        done = self.succeeds(self.shell("cat <<E\nhere\nE\n"))
        self.assertEqual(done.out, b"here\n")

    def test_extra_mounts(self):
        for name in ("ro", "rw"):
            path = os.path.join(self.base, name)
            os.mkdir(path)
            self.own(path)
        mounts = [{"path": f"{self.base}/ro"}, {"path": f"{self.base}/rw", "writable": True}]
        self.succeeds(self.shell(f"touch {self.base}/rw/x && ! touch {self.base}/ro/x",
                                 mounts=mounts))
        self.assertEqual(os.listdir(f"{self.base}/rw"), ["x"])
        self.assertEqual(os.listdir(f"{self.base}/ro"), [])

    def test_mount_inside_the_workspace_is_deeper(self):
        self.put("vendor/file")
        mounts = [{"path": f"{self.ws}/vendor"}]
        self.succeeds(self.shell("touch x && ! touch vendor/x && ! mv vendor v", mounts=mounts))

    def test_hidden_paths_in_the_workspace(self):
        """[A11] Empty regular files and directories, which git can live with."""
        self.put("secret", "words")
        self.put("keys/key", "words")
        outcome = self.shell("test -f secret && ! grep -r words . && ls -A keys && "
                             "! rm -r keys && ! mv secret s",
                             hidden=[f"{self.ws}/secret", f"{self.ws}/keys"])
        self.succeeds(outcome)
        self.assertEqual(outcome.out, b"")
        with open(f"{self.ws}/secret", encoding="utf-8") as f:
            self.assertEqual(f.read(), "words")

    def test_many_hidden_files_and_few_descriptors(self):
        """[A22] The limit is raised for the set-up and given back to the command."""
        hidden = [self.put(f"f{i}", "words") for i in range(150)]
        outcome = self.run_command(
            ["sh", "-c", "cat f*; ulimit -n"], hidden=hidden,
            popen={"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))})
        self.succeeds(outcome)
        self.assertEqual(outcome.out, b"100\n")

    def test_workspaces_that_are_refused(self):
        os.symlink(self.ws, f"{self.base}/link")
        self.put("file")
        for path, word in (("/", "root directory"), ("/usr", "platform"), ("/etc", "platform"),
                           ("/nix", "platform"), ("/tmp", "private"), ("/proc", "private"),
                           ("/sys/kernel", "private"), ("/nonexistent", "No such file"),
                           (f"{self.ws}/file", "not a directory"),
                           (f"{self.base}/link", "symbolic link")):
            self.refused(word, workspace_root=path)

    def test_mounts_that_are_refused(self):
        os.symlink("/etc", f"{self.ws}/link")
        for path, word in (("/", "root directory"), ("/proc/1", "private"), ("/tmp", "private"),
                           ("/nonexistent", "No such file"), (f"{self.ws}/link", "symbolic link")):
            self.refused(word, mounts=[{"path": path}])
        self.refused("platform", mounts=[{"path": "/usr", "writable": True}])
        self.refused("workspace itself", hidden=[self.ws])
        self.refused("codespace-egress-proxy", network="enabled")

    def test_devices(self):
        self.attack("devices")

    def test_helper_may_be_anywhere(self):
        """[D8] The view does not show the helper, and it is read by nobody else."""
        os.chmod(self.helper, 0o711)
        self.succeeds(self.shell(f"test ! -e {self.helper}"))

    def test_working_directory(self):
        self.directory("sub")
        outcome = self.shell("pwd; echo $PWD", command_cwd=f"{self.ws}/sub")
        self.assertEqual(outcome.out.decode(), f"{self.ws}/sub\n" * 2)
        outcome = self.shell("pwd", command_cwd=f"{self.ws}/missing")
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["cwd"]))


class WholeView(Sandbox):
    """read: all shows the host but its secrets."""

    def setUp(self):
        super().setUp()
        where = "/srv" if os.getuid() == 0 else os.path.expanduser("~")
        self.home = tempfile.mkdtemp(prefix="cs-sandbox-test-", dir=where)
        self.own(self.home)
        self.addCleanup(shutil.rmtree, self.home)

    def home_file(self, name, text="SECRET-WORDS"):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        for directory, _, files in os.walk(self.home):
            for entry in [directory] + [os.path.join(directory, f) for f in files]:
                self.own(entry)
        return path

    def shell_all(self, script, **options):
        plan = self.plan(["sh", "-c", script], env={"HOME": self.home}, read="all", **options)
        return self.succeeds(self.run_plan(plan))

    def test_home_secrets_are_hidden(self):
        for name in (".ssh/id", ".aws/credentials", ".netrc", ".bash_history", ".gnupg/key",
                     ".config/gcloud/x", ".docker/config.json", ".git-credentials"):
            self.home_file(name)
        self.home_file("open", "visible")
        outcome = self.shell_all(f"grep -rs SECRET-WORDS {self.home}; cat {self.home}/open; "
                                 f"test -d {self.home}/.ssh -a -f {self.home}/.netrc")
        self.assertEqual(outcome.out, b"visible")

    def test_linked_secret_is_hidden_at_its_target(self):
        self.home_file("store/ssh/id")
        os.symlink("store/ssh", f"{self.home}/.ssh")
        outcome = self.shell_all(f"grep -rs SECRET-WORDS {self.home} || echo none")
        self.assertEqual(outcome.out, b"none\n")

    def test_operator_hides_more_and_mounts_reopen(self):
        self.home_file("a/b/open")
        self.home_file("a/closed")
        outcome = self.shell_all(f"cat {self.home}/a/b/open; ls {self.home}/a",
                                 hidden=[f"{self.home}/a"],
                                 mounts=[{"path": f"{self.home}/a/b"}])
        self.assertEqual(outcome.out, b"SECRET-WORDSb\n")

    def test_sockets_of_the_host_are_hidden(self):
        """[C15, C18]"""
        self.shell_all("test -z \"$(ls -A /run)\" && test -z \"$(ls -A /var/run/)\"")

    def test_password_hashes_are_hidden(self):
        self.attack("reads_as_empty", "/etc/shadow", "/etc/gshadow", read="all")

    def test_tmp_is_private(self):
        self.succeeds(self.shell("ls -A /tmp", read="all"))

    def test_workspace_below_a_hidden_directory(self):
        """The workspace is shown although what holds it is not."""
        self.home_file(".config/gcloud/keys/words")
        self.ws = f"{self.home}/.config/gcloud/keys"
        outcome = self.shell_all(f"ls -A {self.home}/.config/gcloud; cat words; touch new; "
                                 f"! touch {self.home}/.config/gcloud/x")
        self.assertEqual(outcome.out, b"keys\nSECRET-WORDS")

    def test_protection_holds(self):
        self.put(".git/file")
        self.attack("protected_directories", ".git", read="all")


class Protected(Sandbox):
    def test_existing_directories(self):
        """[H3, A1]"""
        for name in (".git", ".agents", ".codex"):
            self.put(f"{name}/file")
        self.attack("protected_directories", ".git", ".agents", ".codex")
        self.assertEqual(sorted(os.listdir(self.ws)), [".agents", ".codex", ".git"])

    def test_git_commit_like_reads_work(self):
        self.put(".git/HEAD", "ref: refs/heads/main\n")
        outcome = self.succeeds(self.shell("cat .git/HEAD"))
        self.assertEqual(outcome.out, b"ref: refs/heads/main\n")

    def test_pointer_file_and_its_directory(self):
        """[A2] Every directory on the way is fixed too."""
        self.put(".git", "gitdir: main/repo/.git/worktrees/w\n")
        self.put("main/repo/.git/worktrees/w/commondir", "../..\n")
        self.put("main/repo/.git/worktrees/w/file")
        self.put("main/repo/.git/file")
        self.put("decoy", "gitdir: evil\n")
        self.attack("protected_file", ".git")
        self.attack("cannot_rename", "main", "main/repo", "main/repo/.git")
        self.attack("protected_directories", "main/repo/.git", "main/repo/.git/worktrees/w")
        self.succeeds(self.shell("touch main/x main/repo/x"))

    def test_odd_pointer_files_do_not_matter(self):
        """[A14] One bad entry does not disable the sandbox."""
        for text in ("", "gitdir:", "gitdir: /nonexistent", "nonsense", "gitdir: .", "\0" * 9000):
            self.put(".git", text)
            self.succeeds(self.shell("! echo x > .git"))

    def test_missing_names_leave_nothing(self):
        """[A7, A9]"""
        self.succeeds(self.run_command(["true"]))
        self.assertEqual(os.listdir(self.ws), [])
        os.chmod(self.ws, 0o555)
        self.succeeds(self.run_command(["true"]))
        self.assertEqual(os.listdir(self.ws), [])

    def test_missing_names_leave_nothing_when_killed(self):
        """[A7]"""
        for victim in ("helper", "socket"):
            process, control = self.start(self.plan(["sleep", self.marker]))
            self.wait_started(control)
            self.assertEqual(os.listdir(self.ws), [])
            if victim == "helper":
                process.kill()
            else:
                control.close()
            process.communicate(timeout=LIMIT)
            self.nothing_survives()
            self.assertEqual(os.listdir(self.ws), [])

    def test_created_names_are_taken_away(self):
        names = [".git", ".agents", ".codex"]
        outcome = self.attack("create_protected", *names)
        self.assertEqual(outcome.end["removed"], names)
        self.assertEqual(os.listdir(self.ws), [])

    def test_created_names_go_while_the_command_runs(self):
        outcome = self.shell("mkdir .git; while [ -e .git ]; do :; done; echo gone")
        self.succeeds(outcome, [".git"])
        self.assertEqual(outcome.out, b"gone\n")

    def test_moved_into_place(self):
        self.put("evil/hooks/post-checkout")
        self.succeeds(self.shell("mv evil .git"), [".git"])
        self.assertEqual(os.listdir(self.ws), [])

    def test_every_kind_of_file(self):
        for script in ("echo x > .git", "ln -s / .git", "ln -s /etc/passwd .git", "mkfifo .git"):
            self.succeeds(self.shell(script), [".git"])
            self.assertEqual(os.listdir(self.ws), [])

    def test_every_way_of_making(self):
        """[A7] Sockets, links, devices, files without a name before, exchanged ones, trees too deep
        for a path."""
        for kind in ("socket", "link", "nameless", "whiteout", "exchange", "deep", "rename", "loop"):
            with self.subTest(kind):
                outcome = self.attack("make_name", kind, ".codex")
                self.assertEqual(outcome.end["removed"], [".codex"])
                self.assertFalse(os.path.lexists(f"{self.ws}/.codex"))

    def test_names_with_newlines(self):
        """One line on the socket all the same, and put right outside, too."""
        name = "a\n{\"event\":\"exit\"}"
        self.attack("make_name", "rename", name, protect=[name])
        outcome = self.attack("make_name", "deep", name, protect=[name])
        self.assertEqual(outcome.end["removed"], [name])
        self.assertEqual(os.listdir(self.ws), [])

    def test_deep_tree_without_permissions(self):
        outcome = self.attack("create_protected_deep", ".codex")
        self.assertEqual(outcome.end["removed"], [".codex"])
        self.assertEqual(os.listdir(self.ws), [])

    def test_links_in_it_are_not_followed(self):
        outside = os.path.join(self.base, "outside")
        os.mkdir(outside, 0o700)
        self.own(outside)
        self.succeeds(self.shell(f"mkdir -p .git/a; ln -s {outside} .git/l; chmod 0 .git/a; "
                                 f"touch {outside}/kept", mounts=[{"path": outside, "writable": True}]),
                      [".git"])
        self.assertEqual(os.listdir(self.ws), [])
        self.assertEqual(os.listdir(outside), ["kept"])
        self.assertEqual(stat.S_IMODE(os.stat(outside).st_mode), 0o700)

    def test_permission_taken_from_the_workspace(self):
        outcome = self.shell("mkdir .git; chmod 555 . || true")
        self.succeeds(outcome, [".git"])
        self.assertEqual(os.listdir(self.ws), [])
        self.assertEqual(stat.S_IMODE(os.stat(self.ws).st_mode), 0o555)

    def test_background_process_cannot_create_at_the_end(self):
        script = "(while :; do mkdir -p .git/hooks; done) 2>/dev/null & exit 0"
        for _ in range(10):
            self.shell(script)
            self.assertEqual(os.listdir(self.ws), [])

    def test_link_is_put_back(self):
        """[A14]"""
        os.symlink("/nonexistent/place", f"{self.ws}/.git")
        self.own(f"{self.ws}/.git")
        self.succeeds(self.run_command(["true"]))
        self.succeeds(self.shell("rm .git; mkdir .git || true"), [".git"])
        self.assertEqual(os.readlink(f"{self.ws}/.git"), "/nonexistent/place")
        self.attack("replace_link", ".git")
        self.assertEqual(os.readlink(f"{self.ws}/.git"), "/nonexistent/place")

    def test_target_of_a_link_is_protected(self):
        """[A14]"""
        self.put("deep/real/file")
        os.symlink("deep/real", f"{self.ws}/.codex")
        self.own(f"{self.ws}/.codex")
        self.attack("protected_directories", "deep/real")
        self.attack("cannot_rename", "deep")
        self.succeeds(self.shell("! touch .codex/file && ! touch .codex/new"))

    def test_other_names_by_request(self):
        self.put(".envrc")
        self.put("decoy")
        self.attack("protected_file", ".envrc", protect=[".envrc", ".vscode"])
        self.succeeds(self.shell("mkdir .git", protect=[]))
        self.assertIn(".git", os.listdir(self.ws))

    def test_a_repository_made_meanwhile_is_not_ours(self):
        """Between prepare and run a person makes one: nothing is touched, the run is refused."""
        plan = self.plan(["true"])
        self.put(".git/HEAD")
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["guard"]))
        self.assertIn(".git", outcome.end["message"])
        self.assertTrue(os.path.exists(f"{self.ws}/.git/HEAD"))

    def test_places_swapped_for_links(self):
        """What is mounted cannot be chosen after the plan was made."""
        self.put(".git/HEAD")
        plan = self.plan(["true"])
        os.rename(f"{self.ws}/.git", f"{self.ws}/g")
        os.symlink("/etc", f"{self.ws}/.git")
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["source"]))
        plan = self.plan(["true"], protect=[])
        os.rename(self.ws, f"{self.base}/moved")
        os.symlink("/etc", self.ws)
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["source"]))

    def test_two_at_once(self):
        plans = [self.plan(["sh", "-c", "mkdir .git; read x"]) for _ in range(2)]
        started = [self.start(plan, stdin=subprocess.PIPE) for plan in plans]
        for process, _ in started:
            process.stdin.close()
            process.stdin = None
        outcomes = [self.finish(*it) for it in started]
        for outcome in outcomes:
            self.assertIn(outcome.end["event"], ("exit", "failed"), outcome)
        self.assertEqual(os.listdir(self.ws), [])


class Inside(Sandbox):
    def test_process_one_cannot_be_looked_at(self):
        """[A28]"""
        self.attack("proc_one")

    def test_no_secret_in_proc(self):
        """[A28, E34] Neither the runner's environment nor the plan shows anywhere."""
        hostile = self.hostile_here()
        secret = f"secret{self.marker}"
        plan = self.plan([hostile, "no_word_in_proc", secret, self.tmp, "hidden-word"],
                         mounts=[{"path": hostile}], hidden=["/etc/hidden-word"],
                         env={"RUNNER_SECRET": secret})
        outcome = self.run_plan(plan, env={"RUNNER_SECRET": secret})
        self.assertEqual(outcome.end["code"], 0, outcome.out.decode())

    def test_environment(self):
        """[R21, B10, E21, E22]"""
        self.attack("exact_environment", "HOME=/tmp/home", "TMPDIR=/tmp", "TERM=dumb",
                    "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
                    "GIT_PAGER=cat", "CODESPACE_SANDBOX=linux-sandbox",
                    "CODESPACE_NETWORK=restricted", "GIT_CONFIG_KEY_0=safe.directory",
                    f"GIT_CONFIG_VALUE_0={self.ws}", f"PWD={self.ws}")

    def test_environment_of_the_request_wins(self):
        plan = self.ask(self.request(["env"], env=["LANG=x", "A=1", "A=2", "E="]),
                        {"RUNNER": "1"})["plan_path"]
        outcome = self.run_plan(plan, env={"RUNNER": "1"})
        got = dict(line.split("=", 1) for line in outcome.out.decode().splitlines())
        self.assertEqual((got["LANG"], got["A"], got["E"]), ("x", "2", ""))
        self.assertNotIn("RUNNER", got)
        self.assertEqual(set(got), {
            "PATH", "HOME", "TMPDIR", "TMPPREFIX", "LANG", "SHELL", "TERM", "PAGER", "GIT_PAGER",
            "GH_PAGER", "GIT_EDITOR", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND", "USER", "LOGNAME",
            "PWD", "CODESPACE_SANDBOX", "CODESPACE_NETWORK", "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "A", "E"})

    def test_privileges(self):
        """[H7]"""
        self.attack("privileges")

    def test_descriptors(self):
        """[E30] What the runner has open is not inherited."""
        extra = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(20)]
        for fd in extra:
            os.set_inheritable(fd, True)
            self.addCleanup(os.close, fd)
        hostile = self.hostile_here()
        plan = self.plan([hostile, "descriptors"], mounts=[{"path": hostile}])
        outcome = self.run_plan(plan, close_fds=False)
        self.assertEqual(outcome.end["code"], 0, outcome.out.decode())

    def test_kernel_files(self):
        self.attack("kernel_files")

    def test_kernel_files_with_whole_view(self):
        self.attack("kernel_files", read="all")

    def test_families(self):
        """[C20, R16]"""
        self.attack("families")

    def test_netlink(self):
        self.attack("netlink")

    def test_no_way_out(self):
        """[R16]"""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        self.attack("no_way_out", str(server.getsockname()[1]))

    def test_own_loopback(self):
        """[C7]"""
        self.attack("own_loopback")

    def test_unix_sockets(self):
        """[C15, C17]"""
        name = f"cs-test-{self.marker}"
        path = os.path.join(self.base, "socket")
        for address in ("\0" + name, path):
            server = socket.socket(socket.AF_UNIX)
            server.bind(address)
            server.listen()
            self.addCleanup(server.close)
        os.chmod(path, 0o777)
        self.attack("unix_sockets", name, path, "/run/docker.sock", "/var/run/docker.sock")

    def test_denied_calls(self):
        self.attack("denied_calls")

    def test_namespaces(self):
        self.attack("namespaces")

    def test_namespace_tool(self):
        self.succeeds(self.shell("! unshare -Ur true 2>/dev/null"))

    def test_ordinary_processes(self):
        self.attack("ordinary_processes")

    def test_terminal_injection(self):
        """[E24]"""
        self.attack("terminal_injection")

    def test_foreign_numbers(self):
        """[C21]"""
        self.attack("foreign_numbers")

    def test_signals(self):
        self.attack("signals", str(os.getpid()), str(os.getppid()))

    def test_kill_everything(self):
        """Killing all one can see ends the command, not the sandbox."""
        outcome = self.shell("kill -9 -1")
        self.assertEqual(outcome.end["event"], "exit", outcome)

    def test_set_user_id(self):
        """[B14] A set-user-ID program in the workspace or the system gains nothing."""
        uid = str(os.getuid() if self.uid is None else self.uid)
        self.attack("set_user_id", uid)
        tool = self.put("suid", "")
        shutil.copy(HOSTILE, tool)
        if os.getuid() == 0:
            os.chown(tool, 0, 0)
        os.chmod(tool, 0o6755)
        outcome = self.run_command([tool, "set_user_id", uid])
        self.assertEqual(outcome.end["code"], 0, outcome.out.decode())

    def test_own_namespaces(self):
        names = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
        outcome = self.shell("readlink " + " ".join(f"/proc/self/ns/{n}" for n in names))
        inside = outcome.out.decode().split()
        outside = [os.readlink(f"/proc/self/ns/{n}") for n in names]
        for one, other in zip(inside, outside, strict=True):
            self.assertNotEqual(one, other)

    def test_host_name(self):
        self.assertEqual(self.shell("uname -n").out, b"codespace\n")


class Ends(Sandbox):
    def test_codes(self):
        """[H8, E8]"""
        for code in (0, 1, 3, 126, 127, 137, 180, 187, 255):
            outcome = self.shell(f"exit {code}")
            self.assertEqual((outcome.end["event"], outcome.end["code"]), ("exit", code))
            self.assertEqual(outcome.status, code)
            self.assertEqual(outcome.err, b"")

    def test_signals_are_told_from_codes(self):
        """[E8]"""
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT):
            outcome = self.shell(f"kill -{int(number)} $$")
            self.assertEqual((outcome.end["event"], outcome.end["signal"]),
                             ("signal", int(number)))

    def test_program_is_looked_for(self):
        """As execvp: every directory of the command's own PATH, a script without "#!" for the
        shell, and what was found but may not be executed is told."""
        os.mkdir(f"{self.ws}/one")
        os.mkdir(f"{self.ws}/two")
        path = [f"PATH={self.ws}/none:{self.ws}/one:{self.ws}/two:/usr/bin:/bin"]
        self.put("one/forbidden", "echo no", 0o644)
        self.put("two/plain", 'echo "plain $1 $#"', 0o755)
        self.put("one/both", "echo no", 0o644)
        self.put("two/both", "#!/bin/sh\necho second", 0o755)
        for argv, out in ((["plain", "a b", "c"], b"plain a b 2\n"), (["both"], b"second\n"),
                          (["./two/plain"], b"plain  0\n")):
            outcome = self.run_plan(self.ask(self.request(argv, env=path))["plan_path"])
            self.succeeds(outcome)
            self.assertEqual(outcome.out, out)
        for argv, number in ((["forbidden"], errno.EACCES), (["absent"], errno.ENOENT),
                             (["./one"], errno.EACCES), (["./absent"], errno.ENOENT)):
            outcome = self.run_plan(self.ask(self.request(argv, env=path))["plan_path"])
            self.assertEqual((outcome.end["event"], outcome.end["errno"]),
                             ("exec_failed", number), argv)

    def test_signals_begin_as_by_default(self):
        """Neither what we block for ourselves nor what our caller ignores is the command's."""
        outcome = self.shell("grep -E '^Sig(Blk|Ign):' /proc/self/status",
                             popen={"restore_signals": False, "preexec_fn": ignore_some})
        self.assertEqual(outcome.out.split()[1::2], [b"0" * 16] * 2, outcome)

    def test_usage_is_told(self):
        outcome = self.shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        self.assertGreater(outcome.end["cpu_us"], 1000)
        self.assertGreater(outcome.end["max_rss_kib"], 500)

    def test_alone(self):
        """Without a control socket the helper ends as the command did (H13)."""
        done = self.alone(self.plan(["sh", "-c", "echo out; echo err >&2; exit 7"]))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"out\n", b"err\n"))
        done = self.alone(self.plan(["sh", "-c", "kill -9 $$"]))
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, b""))
        done = self.alone(self.plan(["sh", "-c", "exit 137"]))
        self.assertEqual(done.returncode, 137)
        done = self.alone(self.plan(["sh", "-c", "mkdir .git"]))
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stderr.decode().startswith(PREFIX + ".git"), done.stderr)

    def test_exec_failures(self):
        self.put("plain", "#!/bin/sh\n")
        self.put("bad", "#!/nonexistent/interpreter\n", 0o755)
        self.directory("dir")
        for name, errno_, code in (("no-such-program", 2, 127), ("./missing", 2, 127),
                                   ("./plain", 13, 126), ("./dir", 13, 126), ("./bad", 2, 127)):
            plan = self.plan([name])
            outcome = self.run_plan(plan)
            self.assertEqual((outcome.end["event"], outcome.end["errno"]),
                             ("exec_failed", errno_), name)
            self.assertEqual(outcome.status, code)
            self.assertEqual([e["event"] for e in outcome.events], ["exec_failed"])
            self.assertEqual(outcome.err, b"")
            done = self.alone(self.plan([name]))
            self.assertEqual(done.returncode, code)
            self.assertIn(name, done.stderr.decode())
            self.assertTrue(done.stderr.decode().startswith(PREFIX), done.stderr)

    def test_path_of_the_plan_is_searched(self):
        self.put("bin/tool", "#!/bin/sh\necho mine\n", 0o755)
        plan = self.ask(self.request(["tool"], env=[f"PATH={self.ws}/bin:/bin"]))["plan_path"]
        outcome = self.run_plan(plan)
        self.assertEqual(outcome.out, b"mine\n")

    def test_script_without_interpreter_line(self):
        self.put("script", "echo $1\n", 0o755)
        self.assertEqual(self.run_command(["./script", "word"]).out, b"word\n")

    def test_words_pass_unchanged(self):
        words = ["", " ", "a\nb", "--", "$HOME", "\\", "é", "x" * 100000]
        outcome = self.run_command(["printf", "%s\\0", *words])
        self.assertEqual(outcome.out.decode().split("\0")[:-1], words)

    def test_background_processes_are_killed_and_counted(self):
        """[E1, E2]"""
        outcome = self.shell(f"sleep {self.marker} & sleep {self.marker} & echo done; exit 5")
        self.assertEqual((outcome.end["code"], outcome.end["background"]), (5, 2))
        self.assertEqual(outcome.out, b"done\n")
        self.assertEqual(alive(self.marker), [])

    def test_sessions_and_double_forks_do_not_survive(self):
        """[E2]"""
        script = (f"setsid sh -c 'setsid sleep {self.marker} & setsid sleep {self.marker} &' & "
                  f"(trap '' TERM HUP INT; sleep {self.marker} &) & wait; "
                  f"while [ $(pgrep -fc '^sleep {self.marker}') -lt 3 ]; do :; done")
        outcome = self.shell(script)
        self.assertEqual(outcome.end["background"], 3, outcome)
        self.assertEqual(alive(self.marker), [])

    def test_orphans_are_reaped(self):
        """[E6]"""
        script = ("i=0; while [ $i -lt 300 ]; do (true &); i=$((i+1)); done; "
                  "while grep -qs '^State:.Z' /proc/[0-9]*/status; do :; done")
        self.succeeds(self.shell(script))

    def test_stopped_command_is_ended(self):
        process, control = self.start(self.plan(["sh", "-c", f"kill -STOP $$; sleep {self.marker}"]))
        self.wait_started(control)
        control.close()
        process.communicate(timeout=LIMIT)
        self.nothing_survives()

    def test_input(self):
        """[E29]"""
        self.assertEqual(self.run_command(["cat"]).out, b"")
        plan = self.plan(["cat"])
        process, control = self.start(plan, stdin=subprocess.PIPE)
        process.stdin.write(b"words")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process, control).out, b"words")

    def test_reader_sees_the_end_of_the_commands_pipes(self):
        """Only the command holds its pipes: when it closes them the reader sees it at once."""
        process, control = self.start(self.plan(["sh", "-c", "exec >&- 2>&-; read x"]),
                                      stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.stderr.read(), b"")
        self.assertIsNone(process.poll())
        process.stdin.write(b"x\n")
        process.stdin.flush()
        self.wait_started(control)
        self.finish(process, control)

    def test_closed_standard_descriptors(self):
        plan = self.plan(["sh", "-c", "echo x; exit 4"])
        def close_all():
            for fd in (0, 1, 2):
                os.close(fd)
        done = subprocess.run([self.helper, "run", "--plan", plan], timeout=LIMIT,
                              **self.as_user(preexec_fn=close_all))
        self.assertEqual(done.returncode, 4)

    def test_sixteen_at_once(self):
        plans = [self.plan(["sh", "-c", f"echo {i} > f{i}"]) for i in range(16)]
        started = [self.start(plan) for plan in plans]
        for it in started:
            self.succeeds(self.finish(*it))
        self.assertEqual(len(os.listdir(self.ws)), 16)


class KilledProcessOne(Sandbox):
    """[A7] Process 1 cannot sweep; whoever started the sandbox does."""

    def face(self):
        link = os.path.join(self.base, "codex-linux-sandbox")
        if not os.path.islink(link):
            os.symlink(self.helper, link)
        profile = {"type": "managed", "network": "restricted", "file_system": {
            "type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "path", "path": self.ws}, "access": "write"}]}}
        return [link, "--sandbox-policy-cwd", self.ws, "--permission-profile", json.dumps(profile),
                "--"]

    def process_one(self, process):
        """The one of ours that is process 1 of a namespace."""
        for pid in descendants(process.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read() == "codespace-init\n":
                        return pid
            except OSError:
                pass
        return None

    def churned(self, argv):
        """Kill process 1 while a name comes into being all the time: (status, words)."""
        if os.path.exists(f"{self.ws}/ready"):
            os.unlink(f"{self.ws}/ready")
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=self.ws, **self.as_user())
        wait_until(lambda: os.path.exists(f"{self.ws}/ready"), "the command makes names")
        os.kill(self.process_one(process), signal.SIGKILL)
        _, err = process.communicate(timeout=LIMIT)
        return process.returncode, err.decode()

    def swept(self, argv):
        for _ in range(5):
            code, err = self.churned(argv())
            self.assertEqual(code, EXIT["lost"], err)
            self.assertFalse(os.path.lexists(f"{self.ws}/.git"), err)
        self.assertIn(PREFIX, err)

    def test_run_for_a_person(self):
        shutil.copy(self.hostile_here(), f"{self.ws}/hostile")
        self.swept(lambda: [self.helper, "run", "--plan",
                            self.plan(["./hostile", "churn_names", ".git", "ready"])])

    def test_codex_face(self):
        shutil.copy(self.hostile_here(), f"{self.ws}/hostile")
        self.swept(lambda: [*self.face(), "./hostile", "churn_names", ".git", "ready"])

    def test_what_was_there_stays(self):
        """Only what is missing when the command begins is the guard's."""
        self.put(".git/HEAD")
        shutil.copy(self.hostile_here(), f"{self.ws}/hostile")
        code, err = self.churned([*self.face(), "./hostile", "churn_names", ".codex", "ready"])
        self.assertEqual(code, EXIT["lost"], err)
        self.assertTrue(os.path.exists(f"{self.ws}/.git/HEAD"))
        self.assertFalse(os.path.lexists(f"{self.ws}/.codex"))


class Control(Sandbox):
    def test_signals_reach_the_group(self):
        """[E27]"""
        script = "trap 'echo got; exit 9' INT; echo ready; while :; do sleep 1 & wait; done"
        process, control = self.start(self.plan(["sh", "-c", script]))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.wait_started(control)
        control.sendall(b'nonsense\n{"op":"signal","signal":2}\n')
        outcome = self.finish(process, control)
        self.assertEqual((outcome.end["event"], outcome.end["code"], outcome.out),
                         ("exit", 9, b"got\n"))

    def test_kill_by_request(self):
        process, control = self.start(self.plan(["sleep", self.marker]))
        self.wait_started(control)
        control.sendall(b'{"op":"signal","signal":9}\n')
        outcome = self.finish(process, control)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 9))

    def test_long_line_is_dropped(self):
        process, control = self.start(self.plan(["sleep", self.marker]))
        self.wait_started(control)
        control.sendall(b"x" * 100000 + b'\n{"op":"signal","signal":15}\n')
        outcome = self.finish(process, control)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 15))

    def test_end_of_the_socket_ends_the_sandbox(self):
        """[R7] Whatever the command does against it."""
        script = f"trap '' TERM INT HUP; setsid sleep {self.marker} & sleep {self.marker}"
        process, control = self.start(self.plan(["sh", "-c", script]))
        self.wait_started(control)
        control.close()
        process.communicate(timeout=LIMIT)
        self.nothing_survives()

    def test_end_of_the_helper_ends_the_sandbox(self):
        """[E4, E5] Killed at any moment of its start, and when the command runs."""
        for _ in range(15):
            process, control = self.start(self.plan(["sleep", self.marker]))
            process.kill()
            process.wait()
            self.end(process, control)
        self.nothing_survives()
        for entry in os.listdir(self.tmp):  # a helper killed before it took its plan
            shutil.rmtree(os.path.join(self.tmp, entry))
        process, control = self.start(self.plan(["sleep", self.marker]))
        self.wait_started(control)
        process.kill()
        process.communicate(timeout=LIMIT)
        self.nothing_survives()
        self.assertEqual(os.listdir(self.ws), [])

    def test_helper_is_replaced_in_place(self):
        """[R12] The process the runner started becomes the sandbox."""
        process, control = self.start(self.plan(["sleep", self.marker]))
        self.wait_started(control)
        self.assertEqual(os.path.basename(os.readlink(f"/proc/{process.pid}/exe")), "bwrap")
        with open(f"/proc/{process.pid}/environ", "rb") as f:
            self.assertEqual(f.read(), b"")
        control.close()
        process.communicate(timeout=LIMIT)

    def test_nothing_of_the_plan_in_host_process_lists(self):
        """[E34]"""
        secret = f"secret{self.marker}"
        plan = self.ask(self.request(["sleep", self.marker], env=[f"SECRET={secret}"]))["plan_path"]
        process, control = self.start(plan)
        self.wait_started(control)
        self.assertEqual(alive(secret), [])
        self.assertNotIn(process.pid, alive(self.ws))
        control.close()
        process.communicate(timeout=LIMIT)
        self.nothing_survives()

    def test_person_ends_it(self):
        """Signals to a helper without a control socket reach the command."""
        script = "trap 'exit 3' TERM; echo ready; while :; do sleep 1 & wait; done"
        process = subprocess.Popen([self.helper, "run", "--plan", self.plan(["sh", "-c", script])],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   **self.as_user())
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 3)

    def test_killed_person_leaves_nothing(self):
        process = subprocess.Popen(
            [self.helper, "run", "--plan",
             self.plan(["sh", "-c", f"mkdir .git; echo ready; sleep {self.marker}"])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **self.as_user())
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.kill()
        process.communicate(timeout=LIMIT)
        self.nothing_survives()
        wait_until(lambda: os.listdir(self.ws) == [], "the workspace is as it was")


class Terminal(Sandbox):
    def run_tty(self, argv, talk=None, rows=24, cols=80, **options):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        termios.tcsetwinsize(theirs, (rows, cols))
        plan = self.plan(argv, tty=True, **options)
        process, control = self.start(plan, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        if talk:
            self.wait_started(control)
            talk(ours)
        text = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            text += data
        outcome = self.finish(process, control)
        outcome.out = text
        return outcome

    def test_session_and_injection(self):
        """[E24] The command leads a session with the terminal, and cannot type into it."""
        hostile = self.hostile_here()
        outcome = self.run_tty([hostile, "terminal_injection", "tty"],
                               mounts=[{"path": hostile}])
        self.assertEqual(outcome.end.get("code"), 0, outcome)

    def test_size(self):
        """[E17]"""
        outcome = self.run_tty(["stty", "size"], rows=33, cols=77)
        self.assertEqual(outcome.out, b"33 77\r\n")

    def test_resize_is_told(self):
        script = "trap 'stty size; exit 6' WINCH; echo ready; while :; do sleep 1 & wait; done"

        def talk(master):
            text = b""
            while b"ready" not in text:
                text += os.read(master, 4096)
            termios.tcsetwinsize(master, (50, 132))

        outcome = self.run_tty(["sh", "-c", script], talk)
        self.assertIn(b"50 132", outcome.out)
        self.assertEqual(outcome.end["code"], 6)

    def test_interrupt_key(self):
        def talk(master):
            text = b""
            while b"ready" not in text:
                text += os.read(master, 4096)
            os.write(master, b"\x03")

        outcome = self.run_tty(["sh", "-c", f"echo ready; exec sleep {self.marker}"], talk)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 2))

    def test_term(self):
        self.assertEqual(self.run_tty(["sh", "-c", "echo $TERM"]).out, b"xterm\r\n")

    def test_no_terminal(self):
        outcome = self.run_command(["true"], tty=True)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["terminal"]))


class PlanFile(Sandbox):
    def denied(self, plan, code, word=""):
        done = self.alone(plan)
        self.assertEqual(done.returncode, EXIT[code], done.stderr)
        self.assertTrue(done.stderr.decode().startswith(PREFIX), done.stderr)
        self.assertIn(word, done.stderr.decode())

    def test_private_and_gone(self):
        """[R11]"""
        plan = self.plan(["true"])
        parent = os.path.dirname(plan)
        self.assertEqual(stat.S_IMODE(os.stat(plan).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(parent).st_mode), 0o700)
        self.assertEqual(os.path.dirname(parent), self.tmp)
        self.assertEqual(self.alone(plan).returncode, 0)
        self.assertFalse(os.path.exists(parent))
        self.denied(plan, "plan_file")

    def test_removed_before_it_is_looked_at(self):
        for text in (b"", b"garbage", b"CSPL" + b"\xff" * 200):
            plan = self.plan(["true"])
            with open(plan, "wb") as f:
                f.write(text)
            self.denied(plan, "plan_form", "plan")
            self.assertFalse(os.path.exists(os.path.dirname(plan)))

    def test_never_where_a_command_can_write(self):
        """It could exchange the plan of the next command."""
        self.directory("tmp")
        for options in ({}, {"writable_workspace": False, "mounts": [
                {"path": f"{self.ws}/tmp", "writable": True}]}):
            answer = self.ask(self.request(["true"], **options), {"TMPDIR": f"{self.ws}/tmp"})
            self.assertEqual(answer["type"], "error")
            self.assertIn("TMPDIR", answer["message"])
        self.assertEqual(os.listdir(f"{self.ws}/tmp"), [])

    def test_relative_path(self):
        self.denied("plan", "plan_file", "absolute")

    def spoil(self, word, change):
        plan = self.plan(["true"])
        change(plan)
        self.denied(plan, "plan_file", word)
        shutil.rmtree(os.path.dirname(plan))

    def test_links_modes_and_kinds(self):
        def link(plan):
            os.rename(plan, plan + ".real")
            os.symlink(plan + ".real", plan)

        def fifo(plan):
            os.unlink(plan)
            os.mkfifo(plan, 0o600)
            self.own(plan)

        self.spoil("symbolic", link)
        self.spoil("private", fifo)
        self.spoil("private", lambda plan: os.chmod(plan, 0o640))
        self.spoil("private", lambda plan: os.chmod(os.path.dirname(plan), 0o755))
        self.spoil("private", lambda plan: os.link(plan, plan + ".other"))

    def test_linked_directory(self):
        plan = self.plan(["true"])
        other = os.path.join(self.base, "other")
        os.symlink(os.path.dirname(plan), other)
        self.denied(os.path.join(other, "plan"), "plan_file")
        self.assertEqual(self.alone(plan).returncode, 0)

    def test_somebody_elses(self):
        if os.getuid() != 0:
            return  # one needs to be root to give a file away
        plan = self.plan(["true"])
        os.chown(plan, 12345, 12345)
        if self.uid is None:
            self.denied(plan, "plan_file", "private")
        else:
            self.denied(plan, "plan_file")
        shutil.rmtree(os.path.dirname(plan))

    def test_flipped_bytes_never_crash(self):
        plan = self.plan(["true"])
        with open(plan, "rb") as f:
            good = f.read()
        self.assertEqual(self.alone(plan).returncode, 0)
        for at in range(0, 12 + 4 * 9):
            plan = self.plan(["true"])
            spoiled = bytearray(good)
            spoiled[at] ^= 0x5a
            with open(plan, "wb") as f:
                f.write(spoiled)
            self.denied(plan, "plan_form")


class Failures(Sandbox):
    """[H13, D1, D2, D5] Which layer failed is told, and nothing runs instead."""

    def fake(self, script):
        path = os.path.join(self.base, "bwrap")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return {"CODESPACE_BWRAP_BIN": path}

    MESSAGES = (
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "apparmor"),
        ("bwrap: setting up uid map: Permission denied", "apparmor"),
        ("bwrap: No permissions to create new namespace, likely because the kernel does not "
         "allow non-privileged user namespaces.", "no_userns"),
        ("bwrap: Creating new namespace failed: No space left on device", "no_userns"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "no_proc"),
        ("bwrap: Can't mount proc on /proc: Invalid argument", "no_proc"),
        ("bwrap: Unknown option --bind-fd", "old_bwrap"),
        ("bwrap: Can't create file at /x: Is a directory", "other"),
    )

    def test_bubblewrap_fails(self):
        for message, _ in self.MESSAGES:
            env = self.fake(f'echo "{message}" >&2; exit 1\n')
            outcome = self.run_plan(self.plan(["touch", "ran"], env=env))
            self.assertEqual((outcome.words, outcome.events), ([message], []))
            self.assertEqual((outcome.out, outcome.err, outcome.status), (b"", b"", 1))
            done = self.alone(self.plan(["touch", "ran"], env=env))
            self.assertEqual(done.returncode, EXIT["bwrap"])
            self.assertTrue(done.stderr.decode().startswith(PREFIX))
            self.assertIn(message, done.stderr.decode())
        self.assertEqual(os.listdir(self.ws), [])

    def test_probe_names_the_cause(self):
        """[H12, H14]"""
        for message, cause in self.MESSAGES:
            env = self.fake(f'[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\n'
                            f'echo "{message}" >&2; exit 1\n')
            code, found = self.probe(env)
            self.assertEqual((code, found["works"], found["cause"]), (1, False, cause), message)
            self.assertIn(message, found["detail"])
            self.assertEqual(found["bwrap_version"], "0.8.0")
            if cause != "other":
                self.assertNotEqual(found["remedy"], "")

    def probe(self, env, *options):
        done = subprocess.run([self.helper, "probe", "--json", *options], timeout=LIMIT,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              **self.as_user(env=env))
        self.assertEqual(done.stderr, b"")
        return done.returncode, json.loads(done.stdout)

    def test_probe(self):
        code, found = self.probe({})
        self.assertEqual((code, found["works"], found["cause"]), (0, True, "none"), found)
        for fact in ("user", "mount", "pid", "network", "ipc", "uts", "cgroup"):
            self.assertTrue(found[f"{fact}_namespace"], fact)
        for fact in ("fresh_proc", "no_new_privs", "seccomp", "pid1"):
            self.assertTrue(found[fact], fact)
        self.assertRegex(found["bwrap_version"], r"^\d+\.\d+")

    def test_probe_for_people(self):
        done = subprocess.run([self.helper, "probe", "--explain"], capture_output=True,
                              timeout=LIMIT, **self.as_user())
        self.assertEqual(done.returncode, 0)
        self.assertIn("sandbox: works", done.stdout.decode())
        env = self.fake("echo 'bwrap: Can'\"'\"'t mount proc' >&2; exit 1\n")
        done = subprocess.run([self.helper, "probe", "--explain"], capture_output=True,
                              timeout=LIMIT, **self.as_user(env=env))
        self.assertEqual(done.returncode, 1)
        self.assertIn("remedy: run the container", done.stdout.decode())
        done = subprocess.run([self.helper, "probe"], capture_output=True, timeout=LIMIT,
                              **self.as_user(env=env))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, b"", b""))

    def test_asks_the_processor_nothing(self):
        """On musl; a constructor of libgcc that does would cost more than the rest of a start."""
        with open(HELPER, "rb") as f:
            program = f.read()
        if b"musl_strerror" in program:
            self.assertNotIn(b"__cpu_indicator_init", program)

    def test_no_bubblewrap(self):
        """[D5]"""
        env = {"CODESPACE_BWRAP_BIN": "/nonexistent/bwrap"}
        answer = self.ask(self.request(["true"]), env)
        self.assertEqual(answer["type"], "error")
        self.assertIn("CODESPACE_BWRAP_BIN", answer["message"])
        code, found = self.probe(env)
        self.assertEqual((code, found["cause"]), (1, "no_bwrap"))

    def test_bubblewrap_in_the_workspace_is_passed_over(self):
        self.put("bwrap", "#!/bin/sh\nexit 0\n", 0o755)
        plan = self.plan(["sh", "-c", "exit 9"], env={"PATH": f"{self.ws}:/usr/bin:/bin"})
        self.assertEqual(self.alone(plan).returncode, 9)

    def test_hanging_bubblewrap(self):
        code, found = self.probe(self.fake('[ "$1" = --version ] && exit\nexec sleep 1000\n'))
        self.assertEqual((code, found["cause"]), (1, "other"))

    def test_silent_end(self):
        """A wrapper that ends without a verdict is never a success."""
        done = self.alone(self.plan(["true"], env=self.fake("exit 0\n")))
        self.assertEqual(done.returncode, EXIT["lost"])
        code, found = self.probe(self.fake("exit 0\n"))
        self.assertEqual((code, found["works"]), (1, False))

    def test_bubblewrap_vanishes(self):
        plan = self.plan(["true"], env=self.fake("exit 0\n"))
        os.unlink(os.path.join(self.base, "bwrap"))
        done = self.alone(plan)
        self.assertEqual(done.returncode, EXIT["bwrap_start"])

    def test_inner_stage_alone(self):
        """[H7, S10] Started by hand it refuses: capabilities, or not process 1."""
        plan = self.plan(["touch", "ran"])
        with open(plan, "rb") as f:
            ours, theirs = socket.socketpair()
            self.addCleanup(ours.close)
            fds = {3: f.fileno(), 5: 0, 6: 1, 7: 2}

            def arrange():
                high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in (theirs.fileno(), f.fileno())]
                for number, source in fds.items():
                    if number != 3:
                        os.dup2(source, number)
                os.dup2(high[1], 3)
                os.dup2(high[0], 2)

            done = subprocess.run([self.helper, "inner", "--plan-fd", "3"], close_fds=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  timeout=LIMIT, **self.as_user(preexec_fn=arrange))
            theirs.close()
        self.assertIn(done.returncode, (188, 189))
        event = json.loads(ours.recv(4096))
        self.assertEqual((event["event"], event["code"]), ("failed", done.returncode))
        self.assertEqual(os.listdir(self.ws), [])
        shutil.rmtree(os.path.dirname(plan))

    def test_large_arguments(self):
        """[E33] Told before anything starts."""
        self.succeeds(self.run_command(["true", "x" * 131000]))
        self.refused("argv", "131071", argv=["sh", "-c", "x" * 200 * 1024])
        self.refused("argv", "bytes", argv=["true"] + ["x" * 100000] * 25)
        self.refused("env", "131071", env=["A=" + "x" * 200 * 1024])
        self.refused("HELPER_REQUEST_MAX", argv=["x" * 5 * 1024 * 1024])

    def test_bad_requests(self):
        for text, word in (("", "request"), ("{}", "protocol"), ("[]", "object"),
                           (self.request([]), "argv"),
                           (self.request(["true"], protocol=2), "protocol"),
                           (self.request(["true"], workspace_root="x"), "workspace_root"),
                           (self.request(["true"], widen=True), "widen")):
            answer = self.ask(text)
            self.assertEqual(answer["type"], "error")
            self.assertIn(word, answer["message"])

    def test_command_line(self):
        for words, code in ((["--version"], 0), (["--help"], 0), ([], 180), (["jump"], 180),
                            (["run"], 180), (["run", "--plan"], 180), (["run", "--x"], 180),
                            (["run", "--plan", "/p", "--control-fd", "x"], 180),
                            (["run", "--plan", "/p", "--control-fd", "777"], 180),
                            (["probe", "--plan", "x"], 180)):
            done = subprocess.run([self.helper, *words], capture_output=True, timeout=LIMIT,
                                  stdin=subprocess.DEVNULL, **self.as_user())
            self.assertEqual(done.returncode, code, words)

    def test_set_user_id_helper(self):
        if os.getuid() != 0 or self.uid is None:
            return  # needs a helper of another user, which is the other class
        os.chown(self.helper, 0, 0)
        os.chmod(self.helper, 0o4755)
        done = subprocess.run([self.helper, "prepare"], input=b"{}", capture_output=True,
                              timeout=LIMIT, **self.as_user())
        self.assertEqual(done.returncode, EXIT["setuid"])
        self.assertTrue(done.stderr.decode().startswith(PREFIX))
        code, found = self.probe({})
        self.assertEqual((code, found["cause"]), (1, "setuid"))


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for case in (View, WholeView, Protected, Inside, Ends, KilledProcessOne, Control, Terminal,
                 PlanFile, Failures):
        suite.addTests(loader.loadTestsFromTestCase(case))
        if os.getuid() == 0:
            other = type(case.__name__ + "AsUser", (case,), {"uid": 1000})
            suite.addTests(loader.loadTestsFromTestCase(other))
    return suite


if __name__ == "__main__":
    HELPER, HOSTILE = (os.path.abspath(path) for path in sys.argv[1:3])
    os.umask(0o022)
    program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, exit=False)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"codespace-tests: {program.result.testsRun - bad} passed, {bad} failed, 0 skipped")
    sys.exit(bad != 0)
