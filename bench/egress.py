#!/usr/bin/env python3
"""The egress proxy beside the direct connection and each installed proxy, in one run.

    bench/egress.py PATH-OF-codespace-egress-proxy [--seconds N] [--rounds N]

An nginx with one worker is the origin; wrk makes the small requests, curl the large ones. The
contenders take turns in each round, and the best round of each counts, since a busy machine only
takes away. A ratio is to `direct` in this run. Needs nginx-light, wrk and curl (Debian's names);
squid and tinyproxy are measured when they are installed. Nothing here passes or fails.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

CONNECTIONS = (1, 16, 64)
BIG_MIB = 100
TUNNELS = 1000


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit("nothing listens on port %d" % port)


class Origin:
    def __init__(self, folder):
        self.port = free_port()
        for name, size in (("small", 1024), ("big", BIG_MIB << 20)):
            with open(os.path.join(folder, name), "wb") as out:
                out.truncate(size)
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w") as out:
            out.write(
                "worker_processes 1; daemon off; pid %s/pid; error_log /dev/null;\n"
                "events { worker_connections 4096; }\n"
                "http { access_log off; keepalive_requests 1000000000; sendfile on;\n"
                "server { listen 127.0.0.1:%d; root %s; } }\n" % (folder, self.port, folder))
        os.chmod(folder, 0o755)
        self.process = subprocess.Popen(["nginx", "-c", config], stderr=subprocess.DEVNULL)
        wait_for(self.port)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Direct:
    name, port, pid = "direct", None, None

    def stop(self):
        pass


class Ours:
    name = "codespace"

    def __init__(self, program):
        door = socket.socket()
        door.bind(("127.0.0.1", 0))
        door.listen(4096)
        self.port = door.getsockname()[1]
        policy_r, policy_w = os.pipe()
        status_r, status_w = os.pipe()
        life_r, self.life = os.pipe()
        os.write(policy_w, json.dumps({"allow": ["*.example.com", "127.0.0.1"]}).encode())
        os.close(policy_w)
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [program, "--policy-fd", str(policy_r), "--listen-fd", str(door.fileno()),
             "--status-fd", str(status_w), "--life-fd", str(life_r)],
            pass_fds=(policy_r, status_w, life_r, door.fileno()))
        for fd in (policy_r, status_w, life_r):
            os.close(fd)
        door.close()
        self.status = os.fdopen(status_r, "rb")
        if b"ready" not in self.status.readline():
            sys.exit("the proxy did not start")
        self.start_ms = (time.monotonic() - begin) * 1000
        self.pid = self.process.pid

    def stop(self):
        os.close(self.life)
        self.process.wait()
        self.status.close()


class Daemon:
    """A proxy that is started with a configuration file."""

    def __init__(self, folder):
        self.port = free_port()
        path = os.path.join(folder, self.name + ".conf")
        with open(path, "w") as out:
            out.write(self.CONFIG % self.port)
        self.process = subprocess.Popen(self.ARGV + [path], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for(self.port)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:  # tinyproxy waits for connections that stay open
            self.process.kill()
            self.process.wait()


class Tinyproxy(Daemon):
    name = "tinyproxy"
    ARGV = ["tinyproxy", "-d", "-c"]
    CONFIG = "Port %d\nListen 127.0.0.1\nMaxClients 500\nTimeout 60\n"


class Squid(Daemon):
    name = "squid"
    ARGV = ["squid", "-N", "-f"]
    CONFIG = ("http_port 127.0.0.1:%d\nhttp_access allow all\ncache deny all\naccess_log none\n"
              "pid_filename none\ncache_log /dev/null\n")


def small(contender, origin, folder, connections, seconds):
    """Requests a second and the 99th percentile in ms."""
    url = "http://127.0.0.1:%d/small" % origin.port
    argv = ["wrk", "-t1", "-c%d" % connections, "-d%ds" % seconds, "--latency"]
    if contender.port:
        script = os.path.join(folder, "proxy.lua")
        with open(script, "w") as out:
            out.write('wrk.path = "%s"\nwrk.headers["Host"] = "127.0.0.1:%d"\n'
                      % (url, origin.port))
        argv += ["-s", script, "http://127.0.0.1:%d/" % contender.port]
    else:
        argv.append(url)
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        sys.exit("%s: answers other than 2xx:\n%s" % (contender.name, out))
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    scale = {"us": 0.001, "ms": 1, "s": 1000}[unit]
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), float(value) * scale


def big(contender, origin, tunnel):
    argv = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{speed_download}"]
    if contender.port:
        argv += ["-x", "http://127.0.0.1:%d" % contender.port] + (["-p"] if tunnel else [])
    out = subprocess.run(argv + ["http://127.0.0.1:%d/big" % origin.port], capture_output=True,
                         text=True, check=True, env={**os.environ, "no_proxy": ""}).stdout
    status, speed = out.split()
    if status != "200":
        sys.exit("%s: status %s" % (contender.name, status))
    return float(speed) / 1e9


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def tunnels(contender, origin):
    """KiB a tunnel, over TUNNELS of them through which a little has gone."""
    before = resident_kib(contender.pid)
    socks = []
    for _ in range(TUNNELS):
        sock = socket.create_connection(("127.0.0.1", contender.port), 20)
        sock.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % origin.port)
        sock.recv(4096)
        sock.sendall(b"GET /small HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        sock.recv(4096)
        socks.append(sock)
    after = resident_kib(contender.pid)
    for sock in socks:
        sock.close()
    return (after - before) / TUNNELS


def measure(contenders, origin, folder, options):
    best = {c.name: {} for c in contenders}
    for _ in range(options.rounds):
        for contender in contenders:
            row = best[contender.name]
            for n in CONNECTIONS:
                rps, p99 = small(contender, origin, folder, n, options.seconds)
                row["rps%d" % n] = max(rps, row.get("rps%d" % n, 0))
                row["p99_%d" % n] = min(p99, row.get("p99_%d" % n, 1e9))
            for key, tunnel in (("get", False), ("connect", True)):
                row[key] = max(big(contender, origin, tunnel), row.get(key, 0))
    return best


def print_table(contenders, best):
    print("%-12s" % "contender" + "".join("%16s" % t for t in (
        "req/s c=1", "c=16", "c=64", "p99 ms c=16", "GB/s GET", "GB/s CONNECT")))
    floor = best["direct"]
    for contender in contenders:
        row = best[contender.name]
        cells = ["%.0f (%.2f)" % (row["rps%d" % n], row["rps%d" % n] / floor["rps%d" % n])
                 for n in CONNECTIONS]
        cells.append("%.2f" % row["p99_16"])
        cells += ["%.2f (%.2f)" % (row[key], row[key] / floor[key]) for key in ("get", "connect")]
        print("%-12s" % contender.name + "".join("%16s" % cell for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proxy")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for program in ("nginx", "wrk", "curl"):
        if not shutil.which(program):
            sys.exit("%s is not installed; apt-get install nginx-light wrk curl" % program)
    with tempfile.TemporaryDirectory(prefix="egress-bench-") as folder:
        origin = Origin(folder)
        ours = Ours(options.proxy)
        contenders = [Direct(), ours]
        contenders += [kind(folder) for kind in (Squid, Tinyproxy) if shutil.which(kind.name)]
        idle = resident_kib(ours.pid)
        try:
            print_table(contenders, measure(contenders, origin, folder, options))
            print("codespace: %.1f ms from spawn to ready, %d KiB at rest, %.1f KiB a tunnel" % (
                ours.start_ms, idle, tunnels(ours, origin)))
        finally:
            for thing in (*contenders, origin):
                thing.stop()


if __name__ == "__main__":
    main()
