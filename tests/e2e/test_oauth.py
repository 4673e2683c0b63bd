"""The server as an OAuth resource server: tokens of an issuer whose keys are made here."""

import base64
import json
import os
import random
import time
import unittest

from http_support import HttpCase, call
from support import needs_sandbox

ISSUER = "https://id.example.com/realms/code"
RESOURCE = "https://mcp.example.com/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")
EXPONENT = 65537


def is_prime(n):
    if any(n % small == 0 for small in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(16):
        x = pow(random.randrange(2, n - 1), odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits):
    while True:
        n = random.getrandbits(bits) | 3 << (bits - 2) | 1
        if n % EXPONENT != 1 and is_prime(n):
            return n


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """RSA, 2048 bits; for tests only."""

    def __init__(self, kid):
        p, q = prime(1024), prime(1024)
        self.kid, self.n = kid, p * q
        self.d = pow(EXPONENT, -1, (p - 1) * (q - 1))

    @property
    def public(self):
        return {"kty": "RSA", "use": "sig", "kid": self.kid, "n": encode(self.n.to_bytes(256)),
                "e": encode(EXPONENT.to_bytes(3))}

    def token(self, header=None, **claims):
        import hashlib

        head = {"alg": "RS256", "typ": "at+jwt", "kid": self.kid, **(header or {})}
        now = int(time.time())
        body = {"iss": ISSUER, "aud": RESOURCE, "sub": "someone", "exp": now + 600,
                "scope": "code:run", **claims}
        text = "%s.%s" % tuple(encode(json.dumps(part).encode()) for part in (head, body))
        digest = SHA256_PREFIX + hashlib.sha256(text.encode()).digest()
        padded = b"\0\1" + b"\xff" * (256 - 3 - len(digest)) + b"\0" + digest
        number = pow(int.from_bytes(padded), self.d, self.n)
        return "%s.%s" % (text, encode(number.to_bytes(256)))


def bearer(token):
    return {"Authorization": "Bearer " + token}


class OauthCase(HttpCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.key = Key("first")

    def keys(self, *keys):
        path = os.path.join(self.dir, "keys.json")
        with open(path + ".new", "w") as f:
            json.dump({"keys": [key.public for key in keys]}, f)
        os.rename(path + ".new", path)
        return path

    def resource_server(self, *more, **options):
        return self.serve("--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE,
                          "--oauth-keys", self.keys(self.key), *more, **options)


class Metadata(OauthCase):
    def test_where_clients_look(self):
        server = self.resource_server("--oauth-scope", "code:run code:read")
        for path in (WELL_KNOWN, WELL_KNOWN + "/mcp"):
            answer = self.ask(server, method="GET", path=path)
            self.assertEqual(answer.status, 200, path)
            self.assertEqual(answer.headers["content-type"], "application/json")
            self.assertEqual(answer.json["resource"], RESOURCE)
            self.assertEqual(answer.json["authorization_servers"], [ISSUER])
            self.assertEqual(answer.json["scopes_supported"], ["code:run", "code:read"])

    def test_nothing_else_is_open(self):
        server = self.resource_server()
        for path in (WELL_KNOWN + "/other", "/mcp" + WELL_KNOWN,
                     "/.well-known/oauth-authorization-server"):
            self.assertEqual(self.ask(server, method="GET", path=path).status, 404, path)
        self.assertEqual(self.ask(server, body=LIST, path=WELL_KNOWN).status, 405)
        evil = {"Host": "evil.example.com"}
        self.assertEqual(self.ask(server, method="GET", path=WELL_KNOWN, headers=evil).status, 403)

    def test_a_server_without_an_issuer_has_none(self):
        server = self.serve()
        for path in (WELL_KNOWN, WELL_KNOWN + "/mcp"):
            self.assertEqual(self.ask(server, method="GET", path=path).status, 404)

    def test_the_name_of_the_resource_is_a_host_of_ours(self):
        server = self.resource_server()
        headers = {"Host": "mcp.example.com", **bearer(self.key.token())}
        self.assertEqual(self.session(server, headers=headers)["Host"], "mcp.example.com")


class Tokens(OauthCase):
    def test_a_good_one_is_served(self):
        server = self.resource_server()
        self.write("a.txt", "alpha\n")
        own = self.session(server, headers=bearer(self.key.token()))
        answer = self.ask(server, headers=own, body=call("read", workspace_id="ws", path="a.txt"))
        self.assertEqual(answer.json["result"]["structuredContent"]["content"], "alpha\n")
        modern = self.modern(server, "tools/list", headers=bearer(self.key.token()))
        self.assertEqual(modern.status, 200)

    def test_without_one_the_client_is_told_where_to_go(self):
        server = self.resource_server("--oauth-scope", "code:run")
        for headers in (None, bearer(self.key.token(exp=1))):
            answer = self.ask(server, body=LIST, headers=headers)
            self.assertEqual(answer.status, 401)
            self.assertIn('resource_metadata="https://mcp.example.com%s/mcp"' % WELL_KNOWN,
                          answer.headers["www-authenticate"])
            self.assertIn('scope="code:run"', answer.headers["www-authenticate"])
        self.assertIn('error="invalid_token"', answer.headers["www-authenticate"])
        self.assertIn("expired", answer.json["error_description"])

    def test_what_is_refused(self):
        server = self.resource_server("--oauth-scope", "code:run")
        now = int(time.time())
        other = Key(self.key.kid)
        rows = (
            (401, self.key.token(aud="https://other.example.com/mcp")),
            (401, self.key.token(aud="https://mcp.example.com/mcp/")),
            (401, self.key.token(iss=ISSUER + "/")),
            (401, self.key.token(exp=now - 100)),
            (401, self.key.token(exp=None)),
            (401, self.key.token(nbf=now + 300)),
            (401, self.key.token(header={"alg": "none"})),
            (401, self.key.token(header={"alg": "HS256"})),
            (401, self.key.token(header={"kid": "unknown"})),
            (401, other.token()),
            (401, "x" * 40),
            (403, self.key.token(scope="code:read")),
            (400, self.key.token() + " x"),
        )
        for status, token in rows:
            answer = self.ask(server, body=LIST, headers=bearer(token))
            self.assertEqual(answer.status, status, answer.body)
            self.assertNotIn(token, answer.body.decode())
        answer = self.ask(server, body=LIST, path="/mcp?access_token=" + self.key.token())
        self.assertEqual(answer.status, 401, "a token in the address is none")
        self.assertEqual(self.session(server, headers=bearer(
            self.key.token(aud=["x", RESOURCE], nbf=now + 30)))["MCP-Protocol-Version"],
            "2025-11-25")
        log = "\n".join(server.lines)
        for _, token in rows:
            self.assertNotIn(token, log)

    def test_a_session_is_no_token(self):
        server = self.resource_server()
        own = self.session(server, headers=bearer(self.key.token()))
        del own["Authorization"]
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 401)

    def test_new_keys_are_taken_up(self):
        server = self.resource_server()
        second = Key("second")
        self.assertEqual(self.ask(server, body=LIST, headers=bearer(second.token())).status, 401)
        self.keys(second)
        self.session(server, headers=bearer(second.token()))
        self.assertEqual(self.ask(server, body=LIST, headers=bearer(self.key.token())).status, 401)

    def test_a_fixed_token_goes_beside_it(self):
        fixed = "0123456789abcdef0123"
        server = self.resource_server(env={"CODESPACE_HTTP_TOKEN": fixed})
        for token in (fixed, self.key.token()):
            self.session(server, headers=bearer(token))
        self.assertEqual(self.ask(server, body=LIST, headers=bearer(fixed + "x")).status, 401)

    @needs_sandbox
    def test_a_command_is_not_shown_the_token(self):
        server = self.resource_server()
        token = self.key.token()
        own = self.session(server, headers=bearer(token))
        done = self.ask(server, headers=own, body=call(
            "exec_command", workspace_id="ws", command=["env"], wait_ms=60000)).json["result"]
        self.assertNotIn(token, json.dumps(done))


class Whose(OauthCase):
    """A session belongs to the issuer's subject that opened it."""

    def test_another_subject_finds_no_session(self):
        server = self.resource_server()
        own = self.session(server, headers=bearer(self.key.token(sub="ada")))
        other = {**own, **bearer(self.key.token(sub="eve"))}
        unknown = {**other, "Mcp-Session-Id": "0" * 36}
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None),
                             ("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})):
            asked = self.ask(server, method=method, headers=other, body=body)
            none = self.ask(server, method=method, headers=unknown, body=body)
            self.assertEqual((asked.status, asked.body), (404, none.body), method)
        self.assertEqual(self.ask(server, headers=own, body=LIST).status, 200)
        # A new token of the same subject goes on.
        fresh = {**own, **bearer(self.key.token(sub="ada", jti="another"))}
        self.assertEqual(self.ask(server, headers=fresh, body=LIST).status, 200)

    def test_who_a_token_without_a_subject_speaks_for(self):
        server = self.resource_server()
        first = {"sub": None, "client_id": "x"}
        own = self.session(server, headers=bearer(self.key.token(**first)))
        for claims, status in ((first, 200), ({"sub": "x"}, 404), ({"sub": None}, 404),
                               ({"sub": None, "client_id": "y"}, 404)):
            answer = self.ask(server, body=LIST,
                              headers={**own, **bearer(self.key.token(jti="2", **claims))})
            self.assertEqual(answer.status, status, claims)

    def test_a_shared_token_is_one_client(self):
        secret = "0123456789abcdef0123456789abcdef"
        server = self.resource_server(env={"CODESPACE_HTTP_TOKEN": secret})
        own = self.session(server, headers=bearer(secret))
        self.assertEqual(self.ask(server, headers=own, body=LIST).status, 200)
        subject = {**own, **bearer(self.key.token())}
        self.assertEqual(self.ask(server, headers=subject, body=LIST).status, 404)

    @needs_sandbox
    def test_a_task_is_its_clients(self):
        server = self.resource_server()
        params = {"name": "exec_command", "task": {}, "arguments": {
            "workspace_id": "ws", "command": ["true"]}}
        own = self.session(server, headers=bearer(self.key.token(sub="ada")))
        eve = self.session(server, headers=bearer(self.key.token(sub="eve")))
        again = self.session(server, headers=bearer(self.key.token(sub="ada", jti="2")))

        def ask(headers, method, **params):
            return self.ask(server, headers=headers, body={
                "jsonrpc": "2.0", "id": 5, "method": method, "params": params}).json

        ident = ask(own, "tools/call", **params)["result"]["task"]["taskId"]
        self.assertEqual(
            ask(own, "tasks/result", taskId=ident)["result"]["structuredContent"]["exit_code"], 0)
        self.assertEqual(ask(eve, "tasks/get", taskId=ident)["error"],
                         ask(eve, "tasks/get", taskId="task-none")["error"])
        self.assertEqual(ask(eve, "tasks/list")["result"]["tasks"], [])
        listed = ask(again, "tasks/list")["result"]["tasks"]
        self.assertEqual([task["taskId"] for task in listed], [ident])
        self.assertEqual(ask(again, "tasks/get", taskId=ident)["result"]["taskId"], ident)


class Start(OauthCase):
    def test_the_options_belong_together(self):
        keys = self.keys(self.key)
        for given in (["--oauth-issuer", ISSUER], ["--oauth-keys", keys],
                      ["--oauth-scope", "code:run"],
                      ["--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE]):
            status, said = self.refused("--http", "--port", "0", *given)
            self.assertEqual(status, 64)
            self.assertIn("belong together", said)

    def test_keys_that_are_none(self):
        self.write("../keys.json", '{"keys":[{"kty":"oct","k":"AAAA"}]}')
        for path in (os.path.join(self.dir, "keys.json"), self.dir, "/nonexistent"):
            status, said = self.refused("--http", "--port", "0", "--oauth-issuer", ISSUER,
                                        "--oauth-resource", RESOURCE, "--oauth-keys", path)
            self.assertEqual(status, 78, said)
            self.assertIn("--oauth-keys", said)

    def test_an_issuer_is_enough_to_listen_to_all(self):
        server = self.resource_server("--host", "0.0.0.0")
        self.assertEqual(self.ask(server, body=LIST).status, 401)


class Pages(HttpCase):
    """Web pages: the ones that were named may ask and read, others may not read."""

    APP = "https://app.example.com"
    ASKING = {"Access-Control-Request-Method": "POST",
              "Access-Control-Request-Headers": "authorization,content-type,mcp-session-id"}

    def test_a_named_page(self):
        server = self.serve("--allow-origin", self.APP,
                            env={"CODESPACE_HTTP_TOKEN": "0123456789abcdef0123"})
        asked = self.ask(server, method="OPTIONS", headers={"Origin": self.APP, **self.ASKING})
        self.assertEqual((asked.status, asked.body), (204, b""))
        self.assertEqual(asked.headers["access-control-allow-origin"], self.APP)
        self.assertIn("authorization", asked.headers["access-control-allow-headers"].lower())
        self.assertNotIn("access-control-allow-credentials", asked.headers)
        refused = self.ask(server, body=LIST, headers={"Origin": self.APP})
        self.assertEqual(refused.status, 401)
        self.assertEqual(refused.headers["access-control-allow-origin"], self.APP)
        own = self.session(server, headers={"Origin": self.APP,
                                            **bearer("0123456789abcdef0123")})
        answer = self.ask(server, body=LIST, headers=own)
        self.assertEqual(answer.headers["access-control-allow-origin"], self.APP)
        self.assertIn("Mcp-Session-Id", answer.headers["access-control-expose-headers"])
        self.assertEqual(answer.headers["vary"], "Origin")
        with_stream = self.ask(server, method="GET", headers=own, stream=True)
        self.assertEqual(with_stream.response.getheader("access-control-allow-origin"), self.APP)

    def test_other_pages(self):
        server = self.serve("--allow-origin", self.APP)
        asked = self.ask(server, method="OPTIONS",
                         headers={"Origin": "https://evil.example.com", **self.ASKING})
        self.assertEqual(asked.status, 403)
        for origin in ("http://localhost:3000", "http://127.0.0.1:%d" % server.port):
            asked = self.ask(server, method="OPTIONS", headers={"Origin": origin, **self.ASKING})
            self.assertEqual(asked.status, 405, origin)
            self.assertNotIn("access-control-allow-origin", asked.headers)
        plain = self.ask(server, body=LIST, headers=self.session(server))
        self.assertNotIn("access-control-allow-origin", plain.headers)


if __name__ == "__main__":
    unittest.main()
