#!/usr/bin/env python3
"""A network namespace like a sandbox's: its own loopback, to which the stand-in range is local.

    world.py FD

Lives as long as the other end of the socket FD. Answers one JSON line for each: {"op":"listen"|
"connect", "kind":"tcp"|"udp", "host":..., "port":...} with {"errno":0} and the socket, or an errno.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
RTM_NEWROUTE, NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 24, 1, 4, 0x400
RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, RTA_DST, RTA_OIF = 255, 4, 254, 2, 1, 4


def enter():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "unshare: user namespaces are needed for this test")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def route_stand_ins():
    message = struct.pack("BBBBBBBBI", socket.AF_INET, 15, 0, 0, RT_TABLE_LOCAL, RTPROT_STATIC,
                          RT_SCOPE_HOST, RTN_LOCAL, 0)
    message += struct.pack("HH4s", 8, RTA_DST, socket.inet_aton("198.18.0.0"))
    message += struct.pack("HHI", 8, RTA_OIF, socket.if_nametoindex("lo"))
    header = struct.pack("IHHII", 16 + len(message), RTM_NEWROUTE,
                         NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.send(header + message)
        error = struct.unpack("i", sock.recv(4096)[16:20])[0]
        if error:
            raise OSError(-error, "the stand-in range cannot be made local")


def make(request):
    sock = socket.socket(
        socket.AF_INET, socket.SOCK_STREAM if request["kind"] == "tcp" else socket.SOCK_DGRAM)
    sock.settimeout(90)
    where = (request["host"], request["port"])
    if request["op"] == "connect":
        sock.connect(where)
    else:
        sock.bind(where)
        if request["kind"] == "tcp":
            sock.listen(128)
    return sock


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    enter()
    route_stand_ins()
    control.sendall(b"ready\n")
    for line in control.makefile("rb"):
        try:
            with make(json.loads(line)) as sock:
                socket.send_fds(control, [b'{"errno":0}\n'], [sock.fileno()])
        except OSError as error:
            control.sendall(json.dumps({"errno": error.errno or -1}).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
