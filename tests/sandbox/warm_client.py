"""A runner's side of a zygote, small: start one, hand it commands, read what a command tells.

See src/wire/warm.h for the message and src/wire/helper.h for the lines.
"""

import array
import json
import os
import socket
import struct
import subprocess

MAGIC = 0x52575343


def texts(words):
    return b"".join(word.encode() + b"\0" for word in words)


def message(argv, cwd, env=(), tty=False, keep=False):
    parts = [texts([cwd]), texts(argv), texts(env)]
    head = struct.pack("<5I", MAGIC, bool(tty) | bool(keep) << 1, *map(len, parts))
    return head + b"".join(parts)


class Zygote:
    """One that runs. `helper` with the arguments of `popen`, for the plan of a zygote request."""

    def __init__(self, helper, plan, limit, popen):
        self.limit = limit
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(limit)
        self.process = subprocess.Popen(
            [helper, "run", "--plan", plan, "--control-fd", str(theirs.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()], start_new_session=True, **popen)
        theirs.close()

    def event(self):
        """The next line it tells about itself; {} at its end."""
        line = self.control.recv(65536)
        return json.loads(line) if line.startswith(b"{") else {"words": line.decode()} if line else {}

    def send(self, data, fds):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        self.control.sendmsg([data], rights)

    def command(self, data, stdin, stdout, stderr):
        """Hand one over; our end of its control socket."""
        ours, theirs = socket.socketpair()
        ours.settimeout(self.limit)
        self.send(data, [stdin, stdout, stderr, theirs.fileno()])
        theirs.close()
        return ours

    def pid(self):
        """Of the zygote itself, as seen from here."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as f:
            return int(f.read().split()[0])

    def close(self):
        self.control.close()
        return self.process.wait(self.limit)


def open_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
