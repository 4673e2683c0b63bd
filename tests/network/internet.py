#!/usr/bin/env python3
"""The internet: a network namespace with a name server and servers, which records all that comes.

    internet.py FD FOLDER

Moves into a namespace, says so on the socket FD, waits for its link, and answers one JSON line for
each of {"op":"link"|"log"|"clear"|"stop"}. FOLDER has cert.pem, key.pem and www/, which HTTP and
HTTPS serve. "log" gives the names that were asked for, [protocol, destination, port] of every packet
that came from outside, the first bytes that each plain server got, and of each HTTP request [host,
path, Authorization]. The path /away leads to registry.test; TRACE shows the request.
"""

import ctypes
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading

CLONE_NEWNET = 0x40000000
HOST = "45.33.10.1"
SERVERS = "45.33.10.10"
ADDRESSES = ("45.33.10.2", "45.33.10.53", SERVERS, "45.33.10.66")
NAMES = {
    "example.test": [[SERVERS]],
    "registry.test": [[SERVERS]],
    "evil.test": [["45.33.10.66"]],
    "wrong.test": [[SERVERS]],  # which its certificate does not name
    "private.test": [["10.0.0.5"]],
    "meta.test": [["169.254.169.254"]],
    "loop.test": [["127.0.0.1"]],
    "mixed.test": [[SERVERS, "10.0.0.5"]],
    "rebind.test": [[SERVERS], ["10.0.0.5"]],
    "six.test": [["::ffff:10.0.0.5"]],
}


class Records:
    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        with self.lock:
            self.names, self.packets, self.hellos, self.requests = [], set(), [], []

    def add(self, kind, value):
        with self.lock:
            if kind == "packet":
                self.packets.add(value)
            else:
                getattr(self, kind).append(value)

    def read(self):
        with self.lock:
            return {"names": self.names, "packets": sorted(self.packets), "hellos": self.hellos,
                    "requests": self.requests}


records = Records()


def capture(link):
    """Everything that comes in over the link."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.bind((link, 0))

    def loop():
        while True:
            data, (_, kind, direction, _, _) = sock.recvfrom(2048)
            if direction == socket.PACKET_OUTGOING:
                continue
            if kind != 0x0800:
                if kind not in (0x0806, 0x86dd):  # ARP; IPv6's own chatter is looked at by address
                    records.add("packet", ("ether%04x" % kind, "", 0))
                if kind == 0x86dd and data[20] in (6, 17):
                    records.add("packet", ("ipv6", socket.inet_ntop(socket.AF_INET6, data[38:54]), 0))
                continue
            head = 14 + (data[14] & 15) * 4
            protocol = {6: "tcp", 17: "udp", 1: "icmp"}.get(data[23], str(data[23]))
            port = struct.unpack("!H", data[head + 2:head + 4])[0] if data[23] in (6, 17) else 0
            # Of TCP what begins a connection: the rest of an older one may come late.
            if protocol != "tcp" or data[head + 13] & 0x12 == 0x02:
                records.add("packet", (protocol, socket.inet_ntoa(data[30:34]), port))

    threading.Thread(target=loop, daemon=True).start()


def name_of(data, at=12):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels).lower(), at + 1


def answer(data, table):
    name, end = name_of(data)
    kind = struct.unpack("!H", data[end:end + 2])[0]
    records.add("names", name)
    lists, rows, rcode = table.get(name), [], 3
    if lists is not None:
        now = lists[0] if len(lists) == 1 or kind != 1 else lists.pop(0)
        rows, rcode = [a for a in now if (":" in a) == (kind == 28) and kind in (1, 28)], 0
    out = data[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, len(rows), 0, 0) + data[12:end + 4]
    for row in rows:
        value = socket.inet_pton(socket.AF_INET6 if ":" in row else socket.AF_INET, row)
        # A time to live of 0: each connection asks again, as rebinding wants it.
        out += b"\xc0\x0c" + struct.pack("!HHIH", 28 if ":" in row else 1, 1, 0, len(value)) + value
    return out


def serve_names():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("45.33.10.53", 53))
    table = {name: list(lists) for name, lists in NAMES.items()}

    def loop():
        while True:
            data, peer = sock.recvfrom(4096)
            sock.sendto(answer(data, table), peer)

    threading.Thread(target=loop, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def parse_request(self):
        if not super().parse_request():
            return False
        records.add("requests", [self.headers["Host"], self.path, self.headers["Authorization"]])
        return True

    def do_GET(self):
        if self.path != "/away":
            super().do_GET()
            return
        self.send_response(302)
        self.send_header("Location", "http://registry.test/file.txt")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_TRACE(self):
        body = str(self.headers).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_http(folder):
    class Rooted(Handler):
        def __init__(self, *args):
            super().__init__(*args, directory=os.path.join(folder, "www"))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
    for address, port in ((SERVERS, 80), (SERVERS, 443), (SERVERS, 8443), ("45.33.10.66", 80)):
        server = http.server.ThreadingHTTPServer((address, port), Rooted)
        if port in (443, 8443):
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_plain(port, greeting, reply, close=False):
    """A stand-in: greets, notes the first bytes, replies, closes at once or when the client does."""
    listener = socket.create_server((SERVERS, port), backlog=1024)

    def one(sock):
        with sock:
            sock.sendall(greeting)
            data = sock.recv(4096)
            records.add("hellos", [port, data.decode("latin-1")[:64]])
            sock.sendall(reply)
            while not close and sock.recv(4096):
                pass

    def loop():
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=one, args=(sock,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def link(name):
    for argv in (["link", "set", "lo", "up"], ["link", "set", name, "up"],
                 *(["addr", "add", a + "/24", "dev", name] for a in ADDRESSES),
                 ["addr", "add", "10.0.0.5/32", "dev", "lo"],
                 ["addr", "add", "169.254.169.254/32", "dev", "lo"]):
        subprocess.run(["ip"] + argv, check=True)


def main():
    control, folder = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) < 0:
        sys.exit("unshare: %s" % os.strerror(ctypes.get_errno()))
    control.sendall(b"{}\n")
    daemon = None
    for line in control.makefile("rb"):
        request, reply = json.loads(line), {}
        if request["op"] == "link":
            link(request["name"])
            capture(request["name"])
            serve_names()
            serve_http(folder)
            serve_plain(22, b"SSH-2.0-standin\r\n", b"")
            serve_plain(2222, b"SSH-2.0-standin\r\n", b"", close=True)
            serve_plain(5432, b"", b"database says hello\n")
            daemon = subprocess.Popen(
                ["git", "daemon", "--export-all", "--reuseaddr", "--listen=" + SERVERS,
                 "--base-path=" + os.path.join(folder, "www"), folder + "/www"],
                stderr=subprocess.DEVNULL)
        elif request["op"] == "log":
            reply = records.read()
        elif request["op"] == "clear":
            records.clear()
        elif request["op"] == "stop":
            break
        control.sendall(json.dumps(reply).encode() + b"\n")
    if daemon:
        daemon.terminate()
        daemon.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
