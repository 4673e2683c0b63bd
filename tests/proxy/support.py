"""A proxy of one's own for each test: started as the helper will start it, everything by descriptor.

Origins listen on loopback addresses, which the policy has to grant. Nothing here waits by time: events
come over the status descriptor, bytes over sockets, and every socket has a deadline that fails the
test.
"""

import json
import os
import socket
import struct
import subprocess
import threading
import unittest

PROXY = os.environ.get("CODESPACE_TEST_PROXY", "")
DEADLINE_S = 90
LOOPBACK = ["127.0.0.0/8", "::1"]


def listener(kind=socket.SOCK_STREAM, host="127.0.0.1", port=0, backlog=512):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    if kind == socket.SOCK_STREAM:
        sock.listen(backlog)
    return sock


class Proxy:
    """One running program. `policy` is the policy document."""

    def __init__(self, policy, nameserver=None, listeners=None, prepare=None, inject=None,
                 trust=None, limits=()):
        """`listeners`: pairs of option and socket, which are taken; one door if there are none.
        `inject`: the credentials, as the text that the helper hands over. `trust`: the system's
        certificates; then `bundle` is what the proxy gives to the sandbox. `limits`: time limits
        that are shorter than the program's."""
        if listeners is None:
            listeners = [("--listen-fd", listener())]
        self.port = listeners[0][1].getsockname()[1]
        status_r, status_w = os.pipe()
        life_r, self.life = os.pipe()
        policy_r, policy_w = os.pipe()
        self.control, control = socket.socketpair()
        fds = [("--policy-fd", policy_r), ("--status-fd", status_w), ("--life-fd", life_r),
               ("--control-fd", control.fileno())]
        fds += [(name, sock.fileno()) for name, sock in listeners]
        if inject is not None:
            inject_r, inject_w = os.pipe()
            fds.append(("--inject-fd", inject_r))
        if trust is not None:
            trust_r, trust_w = os.pipe()
            ca_r, ca_w = os.pipe()
            fds += [("--trust-fd", trust_r), ("--ca-fd", ca_w)]
        argv = [PROXY]
        for name, fd in fds:
            argv += [name, str(fd)]
        for address in [nameserver] if isinstance(nameserver, str) else nameserver or []:
            argv += ["--nameserver", address]
        for limit in limits:
            argv += ["--limit", limit]
        writer = threading.Thread(target=self._write, args=(policy_w, json.dumps(policy).encode()))
        writer.start()
        if inject is not None:  # fits into the pipe
            self._write(inject_w, inject.encode())
        self.process = subprocess.Popen(
            argv, pass_fds=[fd for _, fd in fds], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, preexec_fn=prepare)
        for fd in (status_w, life_r, policy_r):
            os.close(fd)
        if trust is not None:
            os.close(trust_r)
            os.close(ca_w)
            self._write(trust_w, trust)
            with os.fdopen(ca_r) as bundle:
                self.bundle = bundle.read()
        control.close()
        if inject is not None:
            os.close(inject_r)
        for _, sock in listeners:
            sock.close()
        writer.join()
        self.events = []
        self.status = os.fdopen(status_r, "rb")
        self.ready = self.event()

    @staticmethod
    def _write(fd, data):
        with os.fdopen(fd, "wb") as out:
            out.write(data)

    def event(self):
        """The next event; None when the proxy has ended."""
        line = self.status.readline()
        return json.loads(line) if line else None

    def expect_event(self, name):
        while (event := self.event()) is not None:
            if event["event"] == name:
                return event
        raise AssertionError("the proxy ended without the event " + name)

    def set_policy(self, policy):
        self.control.sendall(json.dumps({"op": "policy", "policy": policy}).encode() + b"\n")

    def connect(self, port=None):
        return Client(socket.create_connection(("127.0.0.1", port or self.port), DEADLINE_S))

    def stop(self):
        """End it the way the helper does: its life descriptor closes. The exit status."""
        os.close(self.life)
        code = self.process.wait(DEADLINE_S)
        self.control.close()
        self.status.close()
        self.errors = self.process.stderr.read().decode()
        self.process.stderr.close()
        return code


class Response:
    def __init__(self, status, headers, body, raw_head):
        self.status, self.headers, self.body, self.raw_head = status, headers, body, raw_head

    def json(self):
        return json.loads(self.body)


class Client:
    """A raw connection: what is sent is exactly what the test says."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(DEADLINE_S)
        self.buffer = b""

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return self

    def more(self):
        data = self.sock.recv(65536)
        self.buffer += data
        return bool(data)

    def read(self, n):
        while len(self.buffer) < n:
            if not self.more():
                raise EOFError("closed after %r" % self.buffer[:200])
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def read_until(self, mark):
        while mark not in self.buffer:
            if not self.more():
                raise EOFError("closed after %r" % self.buffer[:200])
        at = self.buffer.index(mark) + len(mark)
        data, self.buffer = self.buffer[:at], self.buffer[at:]
        return data

    def read_all(self):
        """Everything up to the end; a reset counts as the end."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        data, self.buffer = self.buffer, b""
        return data

    def closed(self):
        """The other side has closed, without another byte."""
        return self.read_all() == b""

    def head(self):
        raw = self.read_until(b"\r\n\r\n").decode("latin-1")
        lines = raw.split("\r\n")
        headers = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(lines[0].split(" ")[1]), headers, raw

    def response(self, bodiless=False):
        status, headers, raw = self.head()
        body = b""
        if bodiless or status in (204, 304) or 100 <= status < 200:
            pass
        elif "content-length" in headers:
            body = self.read(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = self.chunks()
        elif status != 200 or "connection" in headers:
            body = self.read_all()
        return Response(status, headers, body, raw)

    def chunks(self):
        body = b""
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self.read_until(b"\r\n") != b"\r\n":
                    pass
                return body
            body += self.read(size)
            assert self.read(2) == b"\r\n"

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)
        return self

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


class Origin:
    """A server whose behaviour is a function of one connection. Counts its connections."""

    def __init__(self, serve, host="127.0.0.1", port=0):
        self.serve = serve
        self.sock = listener(host=host, port=port)
        self.port = self.sock.getsockname()[1]
        self.count = 0
        self.faults = []
        self.threads = []
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.count += 1
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, sock):
        client = Client(sock)
        try:
            self.serve(client)
        except (OSError, EOFError):
            pass
        finally:
            sock.close()

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.acceptor.join(DEADLINE_S)
        for thread in self.threads:
            thread.join(DEADLINE_S)


def echo_head(client):
    """Answer each request with its own head and body as the answer's body."""
    while True:
        raw = client.read_until(b"\r\n\r\n")
        text = raw.decode("latin-1")
        headers = {
            line.partition(":")[0].lower(): line.partition(":")[2].strip()
            for line in text.split("\r\n")[1:-2]
        }
        body = b""
        if "content-length" in headers:
            body = client.read(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = client.chunks()
        answer = raw + body
        head = "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)
        client.send(head.encode() + (b"" if text.startswith("HEAD ") else answer))


class NameServer:
    """Answers A and AAAA from a table of lists; each question takes the next list. Records all.

    `cut`: over UDP every answer is cut, and the same port answers over TCP."""

    def __init__(self, table, cut=False):
        self.cut = cut
        self.table = {name: list(answers) for name, answers in table.items()}
        self.asked = []
        self.tcp = None
        self.sock = listener(socket.SOCK_DGRAM)
        while cut and self.tcp is None:
            try:
                self.tcp = Origin(self._serve, port=self.sock.getsockname()[1])
            except OSError:  # the number is taken over TCP
                self.sock.close()
                self.sock = listener(socket.SOCK_DGRAM)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @staticmethod
    def name_of(data, at=12):
        labels = []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
            at += 1 + data[at]
        return ".".join(labels), at + 1

    def _run(self):
        while True:
            data, peer = self.sock.recvfrom(4096)
            if data == b"stop":
                return
            name, end = self.name_of(data)
            self.asked.append((name, struct.unpack("!H", data[end:end + 2])[0]))
            if self.cut:
                out = data[:2] + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + data[12:end + 4]
            else:
                out = self._answer(data)
            self.sock.sendto(out, peer)

    def _serve(self, client):
        out = self._answer(client.read(struct.unpack("!H", client.read(2))[0]))
        out = struct.pack("!H", len(out)) + out
        for byte in out:  # in pieces, as a stream may come
            client.send(bytes([byte]))

    def _answer(self, data):
        name, end = self.name_of(data)
        kind = struct.unpack("!H", data[end:end + 2])[0]
        answers = self.table.get(name.lower())
        records, rcode = [], 3
        if answers is not None:
            now = answers[0] if len(answers) == 1 or kind != 1 else answers.pop(0)
            records = [a for a in now if (":" in a) == (kind == 28) and kind in (1, 28)]
            rcode = 0
        out = data[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, len(records), 0, 0)
        out += data[12:end + 4]
        for record in records:
            family = socket.AF_INET6 if ":" in record else socket.AF_INET
            value = socket.inet_pton(family, record)
            out += b"\xc0\x0c" + struct.pack("!HHIH", 28 if ":" in record else 1, 1, 0, len(value))
            out += value
        return out

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"stop", self.sock.getsockname())
        self.thread.join(DEADLINE_S)
        self.sock.close()
        if self.tcp:
            self.tcp.stop()


class ProxyTest(unittest.TestCase):
    def proxy(self, policy=None, **kwargs):
        proxy = Proxy(policy or {}, **kwargs)
        self.addCleanup(self._stop, proxy)
        self.assertEqual(proxy.ready and proxy.ready["event"], "ready")
        return proxy

    def _stop(self, proxy):
        code = proxy.stop()
        self.assertEqual((code, proxy.errors), (0, ""))

    def origin(self, serve=echo_head, **kwargs):
        origin = Origin(serve, **kwargs)
        self.addCleanup(origin.stop)
        return origin

    def nameserver(self, table, **kwargs):
        server = NameServer(table, **kwargs)
        self.addCleanup(server.stop)
        return server

    def client(self, proxy, port=None):
        client = proxy.connect(port)
        self.addCleanup(client.close)
        return client
