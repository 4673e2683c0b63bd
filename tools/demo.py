#!/usr/bin/env python3
"""What `./dev run` shows: the walls that are really on, the main job once, and how to connect.

  demo.py BUILD-OR-PREFIX DIR

Everything happens in a scratch workspace that is removed at the end; DIR is only named in the lines
for clients. It talks to the real server over stdio with the tests' client, so what it shows is what a
client gets. Must not: decide anything by itself; each line printed is an answer of the server.
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))
from mcp_client import Client, ToolError  # noqa: E402

SOURCE = """int add(int a, int b)
{
    return a - b;
}
"""
TEST = """#include <stdio.h>
int add(int, int);
int main(void)
{
    int got = add(2, 3);
    printf("add(2, 3) = %d, want 5: %s\\n", got, got == 5 ? "ok" : "FAILED");
    return got != 5;
}
"""
MAKEFILE = "test: t\n\t./t\nt: add.c t.c\n\tcc -o t add.c t.c\n"
PATCH = """*** Begin Patch
*** Update File: add.c
@@
-    return a - b;
+    return a + b;
*** End Patch
"""
HOSTILE = r"""
try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "NOT REFUSED: $what"; else echo "refused: $what"; fi; }
try "read a private key of the home directory" sh -c 'cat /root/.ssh/* /home/*/.ssh/*'
try "read the password hashes"                 grep -q '[$]' /etc/shadow
try "plant a git hook"                         sh -c 'echo x > .git/hooks/post-checkout'
try "write outside the workspace"              sh -c 'echo x > /usr/codespace-was-here'
try "reach the network"                        timeout 5 python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80), 2)'
try "see a process of the host"                sh -c 'test $(ls -d /proc/[0-9]* | wc -l) -gt 12'
try "become more than it is"                   sh -c 'unshare -Ur true || mount -t tmpfs none /mnt'
"""


def programs(place):
    for folder in (place / "bin", place / "src" / "gateway"):
        if (folder / "codespace-mcp").exists():
            return folder / "codespace-mcp"
    sys.exit(f"demo: no codespace-mcp below {place}; run ./dev build")


def helper_of(server, place):
    beside = server.parent / "codespace-linux-sandbox"
    return beside if beside.exists() else place / "src" / "sandbox" / "codespace-linux-sandbox"


def make_workspace(folder):
    for name, text in (("add.c", SOURCE), ("t.c", TEST), ("Makefile", MAKEFILE)):
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def show(title, text):
    print(f"\n== {title}")
    print("\n".join("   " + line for line in text.rstrip("\n").splitlines()))


def run_command(client, title, argv):
    answer = client.call("exec_command", workspace_id="demo", command=argv, wait_ms=60000)
    end = answer.get("exit_code", answer.get("termination"))
    show(f"exec_command {title}  ->  exit {end}, sandbox: {answer['sandbox']}, "
         f"{answer['duration_ms']} ms", answer["output"])
    return answer


def main_job(client):
    read = client.call("read", workspace_id="demo", path="add.c")
    show("read add.c", read["content"])
    run_command(client, "make test", ["make", "-s", "test"])
    done = client.call("apply_patch", workspace_id="demo", patch=PATCH)
    show("apply_patch", f"{done['status']}: " + ", ".join(c["path"] for c in done["changes"]))
    run_command(client, "make test", ["make", "-s", "test"])
    try:
        client.call("read", workspace_id="demo", path="../../etc/passwd")
    except ToolError as error:
        show("read ../../etc/passwd", f"refused: {error.message}")
    run_command(client, "a hostile script", ["sh", "-c", HOSTILE])


def connect_lines(server, directory):
    command = shlex.join([str(server), "--workspace", directory])
    show("connect a client to " + directory,
         f"Claude Code:  claude mcp add codespace -- {command}\n"
         f"Codex:        codex mcp add codespace -- {command}\n"
         f"any client:   {command}\n"
         f"              (MCP on stdin and stdout; ./dev install PREFIX puts the programs into PREFIX/bin)")


def main():
    place = pathlib.Path(sys.argv[1]).resolve()
    server = programs(place)
    env = dict(os.environ)
    env.setdefault("CODESPACE_LINUX_SANDBOX_BIN", str(helper_of(server, place)))
    subprocess.run([str(server), "--doctor"], env=env, check=False)
    with tempfile.TemporaryDirectory(prefix="codespace-demo-") as scratch:
        folder = pathlib.Path(scratch)
        make_workspace(folder)
        with Client([str(server), "--workspace", f"demo={folder}"], env=env) as client:
            client.initialize()
            main_job(client)
    connect_lines(server, os.path.realpath(sys.argv[2]))


if __name__ == "__main__":
    main()
