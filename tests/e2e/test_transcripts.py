"""The rules of the protocol, one after the other, as exchanges on the wire.

Theory. RULES is the list of what the specification asks of a server like this one, in both eras and
on both transports: a rule in a few words, and how it is kept. A rule is one of

  - steps: what is sent and what must come back, played over stdio, over HTTP, or over both;
  - the name of a function of this file, where an exchange needs more than that;
  - kept(): the tests of another file that are about it; they must exist;
  - not_followed(): the reason.

Nothing is waited for but an answer. That a message is not answered is seen by asking something
afterwards: answers that are due at once come in order.
"""

import importlib
import json
import re
import unittest

from http_support import META, MODERN, HttpCase, HttpServer, parse_events
from support import SERVER, TOOLS, needs_sandbox, patch_text

NEWEST, OLDER, OLD, OLDEST = "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
PREFIX = "io.modelcontextprotocol/"
VERSION, ABILITIES = PREFIX + "protocolVersion", PREFIX + "clientCapabilities"
ASKED = {**META, ABILITIES: {"elicitation": {}}}
ADD = patch_text("*** Add File: a.txt", "+one")
LINES = "codespace://workspaces/ws/files/lines.txt"
FENCE = {"jsonrpc": "2.0", "id": "fence", "method": "server/discover", "params": {"_meta": META}}


# ---- patterns: a dict is a part, a function judges, anything else is equal ----


def misfit(pattern, value, where="answer"):
    """Why `value` is not of the pattern; None when it is."""
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return "%s is no object: %r" % (where, value)
        for key, part in pattern.items():
            if key not in value:
                return "%s lacks %s: %r" % (where, key, value)
            why = misfit(part, value[key], where + "." + key)
            if why:
                return why
        return None
    if callable(pattern):
        return None if pattern(value) else "%s: %r" % (where, value)
    same = type(pattern) is type(value) and pattern == value
    return None if same else "%s is %r and not %r" % (where, value, pattern)


def whole(pattern):
    """The object has these members and no other."""
    return lambda value: sorted(value) == sorted(pattern) and misfit(pattern, value) is None


def lacks(*names):
    return lambda value: not any(name in value for name in names)


def text(value):
    return isinstance(value, str) and value != ""


def an_object(value):
    return isinstance(value, dict)


def a_list(value):
    return isinstance(value, list)


def number(value):
    return type(value) is int and value >= 0


def says(part):
    return lambda value: part in json.dumps(value)


# ---- steps ----


class Step:
    def __init__(self, message, headers=None, modern=False, method="POST", **want):
        self.message, self.headers, self.want = message, headers or {}, want
        self.modern, self.method = modern, method


def request(method, params=None, id=1, headers=None, **want):
    """A request of the older revisions."""
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return Step(message, headers, **want)


def modern(method, params=None, id=1, meta=META, headers=None, **want):
    """The same of 2026-07-28, with the headers that HTTP wants."""
    params = dict(params or {})
    own = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    name = params.get("name") or params.get("uri") or params.get("taskId")
    if name and method.split("/")[0] in ("tools", "prompts", "resources", "tasks"):
        own["Mcp-Name"] = name
    if meta is not None:
        params["_meta"] = meta
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return Step(message, {**own, **(headers or {})}, True, **want)


def notice(method, params=None, **want):
    message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return Step(message, silent=True, status=202, **want)


def raw(data, **want):
    """Bytes that are no message, or none that a program would send."""
    return Step(data if isinstance(data, bytes) else data.encode(), **want)


def http(method, status, headers=None, body=b"", **want):
    return Step(body, headers, method=method, status=status, **want)


def call(name, arguments=None, **want):
    params = {"name": name}
    if arguments is not None:
        params["arguments"] = arguments
    return request("tools/call", params, **want)


def failed(code):
    """A tool's error: its text first and whole, and nothing beside it."""
    return lambda result: (result.get("isError") is True and "structuredContent" not in result
                           and json.loads(result["content"][0]["text"])["code"] == code)


def both_ways(result):
    """The same answer as structure and as text."""
    return json.loads(result["content"][0]["text"]) == result["structuredContent"]


# ---- the two transports ----


class Reply:
    def __init__(self, message=None, status=None, headers=None, body=b""):
        self.message, self.status, self.headers, self.body = message, status, headers or {}, body


class Pipe:
    name = "stdio"

    def __init__(self, case, arguments):
        self.client = case.launch(*arguments)

    def open(self, version):
        self.client.initialize(version)

    def say(self, step):
        message = step.message
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.client.send_bytes(data + b"\n")
        if step.want.get("silent"):
            return Reply(self.after_fence())
        if isinstance(message, dict):
            return Reply(self.client.message_for(message["id"]))
        many = step.want.get("answers")
        if many is not None:
            return Reply([self.client.message_for(ident) for ident in many])
        return Reply(self.client.stray())

    def after_fence(self):
        """What came although nothing was due."""
        self.client.send(FENCE)
        self.client.message_for("fence")
        return (self.client.unclaimed() or [None])[0]


class Web:
    name = "http"

    def __init__(self, case, arguments):
        self.case = case
        self.server = arguments if isinstance(arguments, HttpServer) else case.serve(*arguments)
        self.session = {}

    def open(self, version):
        self.session = self.case.session(self.server, version)

    def say(self, step):
        message = step.message
        body = message if isinstance(message, bytes) else json.dumps(message)
        headers = {**({} if step.modern else self.session), **step.headers}
        got = self.case.ask(self.server, step.method, body or None, headers)
        kind = got.headers.get("content-type", "")
        found = None
        if kind.startswith("application/json") and got.body:
            found = got.json
        elif kind.startswith("text/event-stream"):
            found = [m for _, m in parse_events(got.body.decode()) if m is not None]
            if not isinstance(message, bytes):
                found = next((m for m in found if m.get("id") == message["id"]), None)
        return Reply(found, got.status, got.headers, got.body)


# ---- the rules ----


class Rule:
    def __init__(self, section, words, *how, on="both", open=None):
        self.section, self.words, self.how, self.on, self.open = section, words, how, on, open


class kept:
    def __init__(self, *names):
        self.names = names


class not_followed:
    def __init__(self, reason):
        self.reason = reason


def legacy(section, words, *how, **more):
    """A rule of a conversation that was opened before."""
    more.setdefault("open", NEWEST)
    return Rule(section, words, *how, **more)


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
OLD_META = {**META, VERSION: NEWEST}
FUTURE = {**META, VERSION: "2999-01-01"}
FUTURE_HEADER = {"MCP-Protocol-Version": "2999-01-01"}
EVIL = "http://evil.example.com"
INITIALIZE = {"protocolVersion": NEWEST, "capabilities": {},
              "clientInfo": {"name": "t", "version": "1"}}
OPENED = {"protocolVersion": NEWEST, "serverInfo": {"name": text, "version": text},
          "capabilities": {"tools": an_object}, "instructions": text}


def listed_at(version):
    return [request("tools/list", id="x", result={"tools": lambda tools: len(tools) == len(TOOLS)}),
            request("ping", id=2, result=whole({}))]


CACHED = {"ttlMs": number, "cacheScope": lambda v: v in ("public", "private")}
COMPLETE = {"resultType": "complete",
            "_meta": {PREFIX + "serverInfo": {"name": text, "version": text}}}

RULES = [
    # ---- 1.2 which era ----
    Rule("1.2", "a request whose _meta names a revision is served without anything before it",
         modern("tools/list", result=COMPLETE),
         modern("tools/call", {"name": "workspace_info", "arguments": {}}, id="a",
                result={**COMPLETE, "structuredContent": an_object})),
    Rule("1.2", "initialize opens a legacy conversation, and both go on beside each other",
         modern("server/discover", result=COMPLETE),
         request("initialize", INITIALIZE, id=2, result=OPENED), on="stdio"),
    legacy("1.2", "no era is pinned by what came first",
           request("tools/list", result=lacks("resultType", "ttlMs")),
           modern("tools/list", id=2, result=COMPLETE),
           request("tools/list", id=3, result=lacks("resultType", "ttlMs"))),
    Rule("1.2", "a client that probes, gives up and falls back is served",
         kept("test_eras.Stdio.test_discover_then_initialize")),
    Rule("1.2", "HTTP: the header of the newer revision alone makes a request modern",
         modern("tools/list", meta=None, error=-32602, status=400), on="http"),
    Rule("1.2", "HTTP: header and _meta that name different eras are a mismatch",
         modern("tools/list", headers={"MCP-Protocol-Version": NEWEST}, error=-32020, status=400),
         modern("tools/list", headers={"MCP-Protocol-Version": None}, error=-32020, status=400),
         modern("tools/list", meta=OLD_META, error=-32020, status=400), on="http"),
    Rule("1.2", "methods of the older era do not exist in the newer",
         *[modern(m, {"uri": "x:y", "level": "info"}, id=m, headers={"Mcp-Name": None},
                  error=-32601, status=404)
           for m in ("initialize", "ping", "logging/setLevel", "resources/subscribe",
                     "resources/unsubscribe")]),
    Rule("1.2", "a legacy peer is never left silent: an unknown method is answered, always",
         request("tasks/none", error=-32601), request("tools/list", id=2, error=-32600),
         on="stdio"),
    # ---- 1.3 stdio ----
    legacy("1.3", "one message a line: no line break inside one",
           call("read", {"workspace_id": "ws", "path": "lines.txt"},
                result={"structuredContent": {"content": "a\nb\r\n\u2028c\n"}}),
           on="stdio"),
    legacy("1.3", "a blank line is no message", raw(b"", silent=True), raw(b"  \r", silent=True),
           request("ping", result=whole({})), on="stdio"),
    Rule("1.3", "nothing but messages on stdout, the log on stderr", "stdout_and_stderr"),
    Rule("1.3", "newer: the server sends no requests",
         kept("test_approvals.Elicitation.test_modern_allowed")),
    Rule("1.3", "older: it may send requests, to a client that declared that it takes them",
         kept("test_approvals.Elicitation.test_allowed_runs_in_the_same_call",
              "test_approvals.Elicitation.test_forms_only")),
    Rule("1.3", "it ends on EOF and on SIGTERM",
         kept("test_lifecycle.End.test_eof_ends_it",
              "test_lifecycle.End.test_eof_before_initialize_ends_it",
              "test_lifecycle.End.test_termination_signals_end_it",
              "test_lifecycle.End.test_everything_asked_before_eof_is_answered")),
    Rule("1.3", "newer: nothing more is sent for a request that was cancelled", "cancelled_modern"),
    Rule("1.3", "older: a cancelled request is stopped and not answered", "cancelled_legacy"),
    legacy("1.3", "cancelling what is not there is ignored",
           notice("notifications/cancelled", {"requestId": 77}),
           notice("notifications/cancelled", {"requestId": "x", "reason": "y"}),
           notice("notifications/cancelled", {}),
           request("ping", result=whole({}))),
    Rule("1.3", "initialize is not cancelled: it is answered at once",
         request("initialize", INITIALIZE, result=OPENED),
         notice("notifications/cancelled", {"requestId": 1}),
         request("tools/list", id=2, result={"tools": a_list}), on="stdio"),
    legacy("1.3", "a line that is no JSON is answered -32700 without an id",
           raw(b"{nonsense", error=-32700, id=None), raw(b'{"a":1}}', error=-32700, id=None),
           raw(b'"\xff\xfe"', error=-32700, id=None), request("ping", id=3, result=whole({})),
           on="stdio"),
    legacy("1.3", "JSON that is no message is answered -32600",
           raw("5", error=-32600, id=None),
           raw('{"id":null,"method":"ping"}', error=-32600, id=None),
           raw('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', error=-32600, id=None),
           raw('{"jsonrpc":"2.0","id":{},"method":"ping"}', error=-32600, id=None), on="stdio"),
    legacy("1.3", "an array is no message",
           raw("[%s]" % json.dumps(LIST), error=-32600, status=400)),
    legacy("1.3", "2025-03-26: an array of requests is answered, each of it",
           raw(json.dumps([{**LIST, "id": 5}, {"jsonrpc": "2.0", "id": "p", "method": "ping"},
                           {"jsonrpc": "2.0", "method": "notifications/initialized"}]),
               answers=(5, "p")), open=OLD),
    # ---- 1.4 Streamable HTTP, older ----
    Rule("1.4", "a wrong Origin or Host is refused with 403",
         Step({**LIST}, {"Origin": EVIL}, status=403), Step({**LIST}, {"Host": "evil.example.com"},
                                                            status=403),
         http("GET", 403, {"Origin": EVIL}), http("DELETE", 403, {"Origin": EVIL}),
         modern("tools/list", headers={"Origin": "null"}, status=403),
         modern("tools/list", headers={"Origin": "http://localhost:1"}, status=200), on="http"),
    Rule("1.4", "only loopback without a token, and a token where there is one",
         kept("test_http.WhoMayAsk.test_refuses_to_start", "test_http.WhoMayAsk.test_token")),
    legacy("1.4", "Accept: absent and */* take anything, a list without both kinds is refused",
           *[request("ping", id=i, headers={"Accept": accept}, status=status,
                     **({"result": whole({})} if status == 200 else {}))
             for i, (accept, status) in enumerate((
                 (None, 200), ("*/*", 200), ("application/json", 200), ("application/*", 200),
                 ("text/event-stream, application/json;q=0.5", 200), ("text/html", 406),
                 ("image/png, text/plain", 406)))], on="http"),
    legacy("1.4", "a body that is not JSON is refused",
           request("ping", headers={"Content-Type": "text/plain"}, status=415),
           request("ping", headers={"Content-Type": None}, status=415),
           request("ping", headers={"Content-Type": "application/json; charset=utf-8"}, status=200),
           raw(b"{nonsense", error=-32700, status=400), raw(b"", status=400), on="http"),
    legacy("1.4", "notifications and responses alone are accepted with 202 and no body",
           notice("notifications/initialized"), notice("notifications/none"),
           raw('{"jsonrpc":"2.0","id":1,"result":{}}', silent=True, status=202),
           raw('{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"m"}}', silent=True,
               status=202)),
    legacy("1.4", "2025-03-26: an array without requests is accepted with 202",
           raw(json.dumps([{"jsonrpc": "2.0", "id": 9, "result": {}},
                           {"jsonrpc": "2.0", "method": "notifications/initialized"}]),
               silent=True, status=202), raw(b"[]", error=-32600, status=400), open=OLD),
    legacy("1.4", "a request is answered with one JSON object or an event stream",
           request("ping", status=200, header={"content-type": "application/json"},
                   result=whole({})), on="http"),
    Rule("1.4", "a stream carries what belongs to the request, then the response, then ends",
         kept("test_http.Legacy.test_progress_of_a_long_command",
              "test_http.Legacy.test_a_client_that_takes_no_stream_gets_only_the_answer")),
    Rule("1.4", "2025-11-25: a stream begins with an id and no data; before it does not",
         "priming"),
    Rule("1.4", "a connection that breaks cancels nothing, and its stream can be taken up",
         kept("test_http.Legacy.test_a_broken_stream_is_taken_up_again")),
    Rule("1.4", "no response on the stream of GET, and no message on two streams", "streams_apart"),
    Rule("1.4", "event ids are of one stream; what resumes is told only what came after on it",
         kept("test_http.Legacy.test_a_broken_stream_is_taken_up_again",
              "test_http.Legacy.test_resume_ids_that_are_none",
              "test_http.Legacy.test_the_stream_of_get")),
    Rule("1.4", "a session id is visible ASCII and cannot be guessed",
         kept("test_http.Legacy.test_session_ids_are_visible_ascii_and_differ")),
    Rule("1.4", "a request without a session is 400, of one that is not there 404",
         request("tools/list", error=-32600, status=400),
         request("tools/list", headers={"Mcp-Session-Id": "0" * 36}, error=lambda code: True,
                 status=404),
         http("GET", 400, {"Accept": "text/event-stream"}), http("DELETE", 400),
         http("DELETE", 404, {"Mcp-Session-Id": "none"}),
         http("GET", 404, {"Accept": "text/event-stream", "Mcp-Session-Id": "none"}), on="http"),
    legacy("1.4", "DELETE ends a session; then it is not there",
           http("DELETE", 200), http("DELETE", 404), request("ping", status=404), on="http"),
    Rule("1.4", "a session is of whom it was opened by", kept(
        "test_oauth.Whose.test_another_subject_finds_no_session",
        "test_oauth.Whose.test_who_a_token_without_a_subject_speaks_for",
        "test_oauth.Whose.test_a_shared_token_is_one_client")),
    legacy("1.4", "a revision that is not served is 400; none is taken for the session's own",
           request("ping", headers={"MCP-Protocol-Version": "1999-01-01"}, status=400,
                   error=-32600),
           request("ping", headers={"MCP-Protocol-Version": None}, result=whole({}), status=200),
           request("ping", headers={"MCP-Protocol-Version": OLDEST}, result=whole({}), status=200),
           on="http"),
    Rule("1.4", "HTTP with two endpoints (2024-11-05): GET tells where to post",
         not_followed("deprecated by the specification; every client that is known here speaks "
                      "Streamable HTTP, and GET without a session says 400")),
    # ---- 1.5 Streamable HTTP, newer ----
    Rule("1.5", "only POST: GET and DELETE are 405",
         http("GET", 405, {"MCP-Protocol-Version": MODERN}, header={"allow": "POST"}),
         http("DELETE", 405, {"MCP-Protocol-Version": MODERN}, header={"allow": "POST"}),
         on="http"),
    Rule("1.5", "Mcp-Session-Id and Last-Event-ID are ignored, and no session is made",
         modern("tools/list", headers={"Mcp-Session-Id": "none", "Last-Event-ID": "1-1"},
                result=COMPLETE, status=200, no_header="mcp-session-id"), on="http"),
    Rule("1.5", "Mcp-Method and Mcp-Name are there and say what the body says",
         *[modern(m, p, headers=h, error=-32020, status=400) for m, p, h in (
             ("tools/list", {}, {"Mcp-Method": None}),
             ("tools/list", {}, {"Mcp-Method": "tools/call"}),
             ("tools/list", {}, {"Mcp-Method": "TOOLS/LIST"}),
             ("tools/call", {"name": "read"}, {"Mcp-Name": None}),
             ("tools/call", {"name": "read"}, {"Mcp-Name": "Read"}),
             ("prompts/get", {"name": "work"}, {"Mcp-Name": None}),
             ("resources/read", {"uri": "codespace://doctor"}, {"Mcp-Name": "codespace://x"}),
             ("tools/call", {"name": "read"}, {"Mcp-Name": "=?base64?cmVhZA=?="}),
             ("tools/call", {"name": "read"}, {"Mcp-Name": "=?base64?c m?="}))],
         on="http"),
    Rule("1.5", "names of headers in any case, blanks around values, base64 values",
         modern("tools/call", {"name": "workspace_info", "arguments": {}}, headers={
             "mcp-protocol-version": MODERN, "MCP-Protocol-Version": None, "Mcp-Method": None,
             "MCP-METHOD": " tools/call ", "Mcp-Name": "=?base64?d29ya3NwYWNlX2luZm8=?="},
             result=COMPLETE, status=200), on="http"),
    Rule("1.5", "calls about a task name it in Mcp-Name",
         kept("test_tasks.OverHttp.test_the_newer_revision")),
    Rule("1.5", "a revision that is not known: -32022, and which are; 400",
         modern("tools/list", meta=FUTURE, headers=FUTURE_HEADER, error=-32022, status=400,
                data={"supported": lambda v: v == [MODERN], "requested": "2999-01-01"})),
    Rule("1.5", "known in neither and not the same: a mismatch",
         modern("tools/list", meta=FUTURE, error=-32020, status=400), on="http"),
    Rule("1.5", "_meta, revision and capabilities are all wanted",
         modern("tools/list", meta={VERSION: MODERN}, error=-32602, status=400),
         modern("tools/list", meta={VERSION: MODERN, ABILITIES: "x"}, error=-32602, status=400)),
    Rule("1.5", "without a revision in _meta",
         modern("tools/list", meta={ABILITIES: {}}, error=-32602, status=400), on="http"),
    Rule("1.5", "what the client would have to declare: -32021 with an object; 400",
         modern("tasks/get", {"taskId": "task-x"}, error=-32021, status=400,
                data={"requiredCapabilities": {"extensions": {PREFIX + "tasks": {}}}})),
    Rule("1.5", "an unknown method is 404; what is wrong inside a known one is 200",
         modern("tools/none", error=-32601, status=404),
         modern("tools/call", {"name": "none"}, error=-32602, status=200),
         modern("tools/list", {"cursor": "x"}, error=-32602, status=200),
         modern("tools/call", {"name": "read", "arguments": {}}, status=200,
                result=failed("INVALID_ARGUMENT"))),
    Rule("1.5", "the order of the checks: origin, type, JSON, revision, method, _meta, the rest",
         Step(b"{nonsense", {"Origin": EVIL, "Content-Type": "text/plain"}, status=403),
         Step(b"{nonsense", {"Content-Type": "text/plain"}, status=415),
         Step(b"{nonsense", FUTURE_HEADER, status=400, error=-32700),
         modern("tools/none", meta=FUTURE, headers={**FUTURE_HEADER, "Mcp-Method": None},
                error=-32022, status=400),
         modern("tools/none", meta={VERSION: MODERN}, headers={"Mcp-Method": "x"}, error=-32020,
                status=400),
         modern("tools/none", meta={VERSION: MODERN}, error=-32602, status=400), on="http"),
    Rule("1.5", "x-mcp-header: a parameter as a header",
         not_followed("no tool of the product has one; the check is there for the conformance "
                      "fixtures and tested in tests/unit/mcp/test_http_modern.c")),
    Rule("1.5", "an event stream: not buffered by proxies, without ids", "listen_stream"),
    Rule("1.5", "closing the stream cancels", kept("test_http.Modern.test_closing_cancels")),
    Rule("1.5", "a notification is accepted with 202",
         Step({"jsonrpc": "2.0", "method": "notifications/cancelled",
               "params": {"_meta": META, "requestId": 4}},
              {"MCP-Protocol-Version": MODERN, "Mcp-Method": "notifications/cancelled"}, True,
              silent=True, status=202), on="http"),
    Rule("1.5", "bad JSON has no id",
         Step(b"{", {"MCP-Protocol-Version": MODERN}, True, error=-32700, status=400, id=None),
         on="http"),
    Rule("1.5", "a listening stream holds up nothing else", "listen_beside_others"),
    # ---- 1.6 lifecycle ----
    *[Rule("1.6", "%s is answered in kind" % version, *listed_at(version), open=version)
      for version in (NEWEST, OLDER, OLD, OLDEST)],
    Rule("1.6", "initialize: a revision that is not known is answered with the newest of the era",
         request("initialize", {**INITIALIZE, "protocolVersion": "1999-01-01"},
                 result={"protocolVersion": NEWEST}),
         request("initialize", {"capabilities": {}}, id=2, error=-32602)),
    Rule("1.6", "initialize says who the server is and what it can do; others are ignored",
         request("initialize", {**INITIALIZE, "capabilities": {
             "none": 1, "extensions": {"a/b": {}}, "roots": {"listChanged": True}}},
             result=OPENED)),
    Rule("1.6", "before initialize only ping", request("ping", result=whole({})),
         request("prompts/list", id=2, error=-32600), on="stdio"),
    legacy("1.6", "ping is answered {}", request("ping", result=whole({})),
           request("ping", {}, id="long-" * 20, result=whole({}))),
    Rule("1.6", "a client that does not say its name is served",
         modern("tools/list", result=COMPLETE),
         modern("tools/list", meta={**META, PREFIX + "clientInfo": {"name": "n", "version": "1"}},
                id=2, result=COMPLETE)),
    Rule("1.6", "traceparent and other members of _meta are ignored",
         modern("tools/list", meta={**META, "traceparent": "00-0-0-01", "x.y/z": [1]},
                result=COMPLETE)),
    Rule("1.6", "discover: what is served, for how long it is good, to whom",
         modern("server/discover", result={
             **COMPLETE, **CACHED, "supportedVersions": lambda v: v == [MODERN],
             "capabilities": {"tools": an_object, "resources": an_object, "prompts": an_object,
                              "completions": an_object}, "instructions": text})),
    Rule("1.6", "state is named by what a call gave: an id that is none is a tool's error",
         modern("tools/call", {"name": "process_status", "arguments": {"process_id": "proc-none"}},
                result=failed("PROCESS_NOT_FOUND"))),
    Rule("1.6", "lists are the same each time and for everybody", "lists_are_the_same"),
    # ---- 1.7 tools ----
    Rule("1.7", "every tool has a name, a description and the schema of an object",
         "tools_are_whole"),
    legacy("1.7", "the answer is the same as structure and as text",
           call("workspace_info", {}, result=both_ways),
           call("find", {"workspace_id": "ws"}, id=2, result=both_ways)),
    Rule("1.7", "the structure is of the output schema", "of_the_schema"),
    legacy("1.7", "an unknown tool and a malformed call are errors of the protocol",
           call("none", {}, error=-32602), request("tools/call", {}, id=2, error=-32602),
           request("tools/call", {"name": 5}, id=3, error=-32602),
           request("tools/call", id=4, error=-32602)),
    legacy("1.7", "wrong arguments, a file that is not there, an old handle: errors of the tool",
           call("read", {"workspace_id": "ws"}, result=failed("INVALID_ARGUMENT")),
           call("read", {"workspace_id": "ws", "pth": "x"}, id=2, result=says("path")),
           call("read", {"workspace_id": "ws", "path": "none"}, id=3,
                result=failed("FILE_NOT_FOUND")),
           call("read", {"workspace_id": "none", "path": "x"}, id=4,
                result=failed("WORKSPACE_NOT_FOUND")),
           call("read_process", {"process_id": "proc-x"}, id=5, result=failed("PROCESS_NOT_FOUND")),
           call("workspace_info", id=6, result=both_ways),
           call("read", [], id=7, result=failed("INVALID_ARGUMENT"))),
    Rule("1.7", "what was asked for cannot leave the workspace",
         modern("tools/call", {"name": "read", "arguments": {"workspace_id": "ws",
                                                             "path": "../secret"}},
                result=failed("PATH_ESCAPE"))),
    Rule("1.7", "list_changed is told", not_followed(
        "the tools of a server never change while it runs, so it declares that nothing will be "
        "told; the mechanism is there for the conformance fixtures")),
    Rule("1.7", "rate limits", kept(
        "test_http_hostile.Floods.test_one_session_too_many_takes_the_place_of_the_most_silent",
        "test_http_hostile.Floods.test_a_client_that_does_not_read")),
    # ---- 1.8 input in the middle of a call ----
    Rule("1.8", "a client that declared it is asked, and the answer is taken",
         "asked_and_answered"),
    Rule("1.8", "one that did not is not asked", "not_asked"),
    Rule("1.8", "a state that was changed, or is another's, is an error",
         "state_is_sealed",
         kept("test_approvals.Elicitation.test_modern_an_answer_is_of_its_own_call")),
    Rule("1.8", "a wrong key or a value that is none asks again; more keys are ignored",
         "wrong_keys"),
    Rule("1.8", "only some methods may ask",
         *[modern(m, {"inputResponses": {"x": {}}}, id=m, result=COMPLETE)
           for m in ("tools/list", "prompts/list", "resources/list")]),
    Rule("1.8", "no secret is asked for in a form", not_followed(
        "there is nothing to follow: the only question is whether a call may run")),
    # ---- 1.9 the rest ----
    Rule("1.9", "progress only with a token, and growing", kept(
        "test_eras.Stdio.test_progress_only_with_a_token",
        "test_http.Legacy.test_progress_of_a_long_command",
        "test_http.Legacy.test_a_progress_token_alone_makes_no_stream",
        "test_tasks.OverHttp.test_progress_finds_the_client")),
    legacy("1.9", "a token alone makes no stream",
           request("tools/list", {"_meta": {"progressToken": 0}}, status=200,
                   header={"content-type": "application/json"}, result={"tools": a_list}),
           on="http"),
    legacy("1.9", "logging/setLevel takes the eight levels and no other",
           *[request("logging/setLevel", {"level": level}, id=level, result=whole({}))
             for level in ("debug", "info", "notice", "warning", "error", "critical", "alert",
                           "emergency")],
           request("logging/setLevel", {"level": "loud"}, error=-32602),
           request("logging/setLevel", {}, id=2, error=-32602)),
    Rule("1.9", "log messages come at the level that was set", kept(
        "test_resources.Logging.test_refusals_are_logged_on_request")),
    Rule("1.9", "newer: log messages only for a request that asked for them", "log_on_request"),
    Rule("1.9", "listening: acknowledged first, marked with the id, of its type", "acknowledged"),
    Rule("1.9", "what ends a subscription from the server's side is its result", kept(
        "test_http.Modern.test_listen_is_acknowledged_and_ends_with_the_server")),
    legacy("1.9", "older: resources are subscribed to",
           request("resources/subscribe", {"uri": LINES}, result=whole({})),
           request("resources/unsubscribe", {"uri": LINES}, id=2, result=whole({})),
           request("resources/subscribe", {}, id=3, error=-32602)),
    Rule("1.9", "newer: how long a list is good, and for whom",
         *[modern(m, p, id=m, result={**COMPLETE, **CACHED}) for m, p in (
             ("server/discover", {}), ("tools/list", {}), ("prompts/list", {}),
             ("resources/list", {}), ("resources/templates/list", {}),
             ("resources/read", {"uri": "codespace://doctor"}))],
         modern("tools/call", {"name": "workspace_info", "arguments": {}}, result=lacks("ttlMs"))),
    legacy("1.9", "a cursor that was not given is an error",
           *[request(m, {"cursor": "x"}, id=m, error=-32602)
             for m in ("tools/list", "prompts/list", "resources/list",
                       "resources/templates/list")]),
    legacy("1.9", "an empty cursor is one, and was not given",
           request("tools/list", {"cursor": ""}, error=-32602)),
    legacy("1.9", "completion: at most 100 values; an unknown reference is an error",
           request("completion/complete", {
               "ref": {"type": "ref/prompt", "name": "work"},
               "argument": {"name": "workspace_id", "value": "w"}},
               result={"completion": {"values": lambda v: v == ["ws"]}}),
           request("completion/complete", {
               "ref": {"type": "ref/prompt", "name": "none"},
               "argument": {"name": "a", "value": ""}}, id=2, error=-32602),
           request("completion/complete", {}, id=3, error=-32602)),
    Rule("1.9", "a page of completions is bounded",
         kept("test_resources.Prompts.test_a_page_is_bounded")),
    legacy("1.9", "older: a resource that is not there is -32002",
           request("resources/read", {"uri": "codespace://none"}, error=-32002)),
    Rule("1.9", "newer: it is -32602 and names it",
         modern("resources/read", {"uri": "codespace://none"}, error=-32602, status=200,
                data={"uri": "codespace://none"})),
    Rule("1.9", "paths of resources are those of the workspace", kept(
        "test_resources.Files.test_what_a_tool_refuses_is_refused",
        "test_resources.Files.test_text_and_blob")),
    legacy("1.9", "an unknown prompt and a missing argument are -32602",
           request("prompts/get", {"name": "none"}, error=-32602),
           request("prompts/get", {"name": "make_pass"}, id=2, error=-32602),
           request("prompts/get", {"name": "work", "arguments": {"workspace_id": "ws"}}, id=3,
                   result={"messages": a_list})),
    Rule("1.9", "roots of the client", not_followed(
        "what may be touched is what the operator registered; a client cannot widen it, so it is "
        "not asked for its roots")),
]


def name_of(index, rule):
    words = re.sub(r"[^a-z0-9]+", "_", rule.words.lower()).strip("_")
    return "test_%02d_%s_%s" % (index, rule.section.replace(".", "_"), words[:60])


class Transcripts(HttpCase):
    def setUp(self):
        super().setUp()
        self.write("lines.txt", "a\nb\r\n\u2028c\n")

    def talks(self, on="both", arguments=None, open=None):
        """A conversation over each transport."""
        for kind in (Pipe, Web):
            if on not in ("both", kind.name):
                continue
            given = arguments
            if given is None:
                given = ("--workspace", "ws=" + self.ws) if kind is Pipe else ()
            talk = kind(self, given)
            if open is not None:
                talk.open(open)
            yield talk

    def play(self, talk, step):
        reply = talk.say(step)
        want = step.want
        shown = "%s: %r -> %s %r" % (talk.name, step.message, reply.status, reply.message)
        if talk.name == "http":
            if "status" in want:
                self.assertEqual(reply.status, want["status"], shown)
            for key, value in want.get("header", {}).items():
                self.assertEqual(reply.headers.get(key), value, shown)
            if "no_header" in want:
                self.assertNotIn(want["no_header"], reply.headers)
        if want.get("silent"):
            self.assertIsNone(reply.message, shown)
            self.assertEqual(reply.body, b"", shown)
            return None
        if "answers" in want:
            self.assertEqual(sorted(str(m["id"]) for m in reply.message),
                             sorted(str(i) for i in want["answers"]), shown)
            return reply.message
        if "error" in want or "result" in want:
            self.check(reply.message, step, shown)
        return reply.message

    def check(self, message, step, shown):
        want = step.want
        self.assertEqual(message["jsonrpc"], "2.0", shown)
        self.assertNotEqual("result" in message, "error" in message, shown)
        if isinstance(step.message, dict) and message.get("id") is not None:
            # The same id, of the same type.
            self.assertIs(misfit(step.message["id"], message["id"]), None, shown)
        if "id" in want:
            self.assertIsNone(message.get("id"), shown)
        if "error" in want:
            self.assertIn("error", message, shown)
            self.assertTrue(text(message["error"]["message"]), shown)
            self.assertIsNone(misfit(want["error"], message["error"]["code"]), shown)
        else:
            self.assertIn("result", message, shown)
            self.assertIsNone(misfit(want["result"], message["result"]), shown)
        if "data" in want:
            self.assertIsNone(misfit(want["data"], message["error"].get("data")), shown)

    def run_rule(self, rule):
        steps = [part for part in rule.how if isinstance(part, Step)]
        if steps:
            for talk in self.talks(rule.on, open=rule.open):
                for step in steps:
                    self.play(talk, step)
        for part in rule.how:
            if isinstance(part, str):
                getattr(self, part)()

    def test_what_other_files_keep_is_there(self):
        names = [n for rule in RULES for part in rule.how if isinstance(part, kept)
                 for n in part.names]
        for name in names:
            module, case, test = name.split(".")
            found = getattr(getattr(importlib.import_module(module), case), test, None)
            self.assertTrue(callable(found), name)

    def test_every_rule_says_how(self):
        for rule in RULES:
            self.assertTrue(rule.how, rule.words)
            for part in rule.how:
                self.assertIsInstance(part, (Step, str, kept, not_followed), rule.words)
                if isinstance(part, not_followed):
                    self.assertEqual((len(rule.how), text(part.reason)), (1, True), rule.words)

    # ---- exchanges that need more ----

    def stdout_and_stderr(self):
        client = self.launch()  # without a workspace, which it warns about
        client.initialize()
        client.call("workspace_info")
        client.send_bytes(b"nonsense\n")
        client.stray()
        client.stderr_line("warn codespace-mcp: no workspace")
        self.assertEqual(client.junk, [])

    def cancelled_modern(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        client.send(modern("subscriptions/listen", {"notifications": {}}, id="l").message)
        client.send(notice("notifications/cancelled", {"requestId": "l"}).message)
        client.send(FENCE)
        client.message_for("fence")
        self.assertFalse(client.answered("l"))

    @needs_sandbox
    def cancelled_legacy(self):
        for talk in self.talks("stdio", open=NEWEST):
            client = talk.client
            client.send(request("tools/call", {"name": "exec_command", "arguments": {
                "workspace_id": "ws", "command": ["sleep", "60"], "wait_ms": 25000}}, id=9).message)
            client.send(notice("notifications/cancelled", {"requestId": 9}).message)
            # Calls begin in order, so this one comes to its end after the other one's.
            done = client.call("exec_command", workspace_id="ws", command=["true"], wait_ms=25000)
            self.assertEqual(done["exit_code"], 0)
            self.assertFalse(client.answered(9))

    def priming(self):
        server = self.serve()
        for version, first in ((NEWEST, ("0-0", None)), (OLDER, None)):
            own = self.session(server, version)
            stream = self.ask(server, "GET", headers=own, stream=True)
            self.ask(server, "DELETE", headers=own)
            self.assertEqual(stream.event(), first, version)

    def streams_apart(self):
        server = self.serve()
        own = self.session(server)
        stream = self.ask(server, "GET", headers=own, stream=True)
        for ident in (1, 2):
            answer = self.ask(server, headers=own, body={**LIST, "id": ident})
            self.assertEqual(answer.json["id"], ident)
        self.ask(server, "DELETE", headers=own)
        self.assertEqual(stream.event(), ("0-0", None))
        self.assertIsNone(stream.event(), "a response on the stream of GET")

    def listen_stream(self):
        server = self.serve()
        stream = self.modern(server, "subscriptions/listen",
                             {"notifications": {"toolsListChanged": True}}, stream=True)
        self.assertEqual(stream.response.status, 200)
        self.assertEqual(stream.response.getheader("Content-Type"), "text/event-stream")
        self.assertEqual(stream.response.getheader("X-Accel-Buffering"), "no")
        self.assertIsNone(stream.event()[0], "an id")

    def listen_beside_others(self):
        server = self.serve()
        stream = self.modern(server, "subscriptions/listen", {"notifications": {}}, id="listen:0",
                             stream=True)
        first = stream.event()[1]["params"]
        self.assertEqual(first["_meta"][PREFIX + "subscriptionId"], "listen:0")
        self.assertEqual(self.modern(server, "tools/list", id="after").json["id"], "after")

    def lists_are_the_same(self):
        found = []
        for talk in self.talks(open=NEWEST):
            for step in (request("tools/list", id=2), modern("tools/list", id=3)):
                tools = talk.say(step).message["result"]["tools"]
                found.append(json.dumps([{k: v for k, v in tool.items() if k != "execution"}
                                         for tool in tools]))
        self.assertEqual(len(found), 4)
        self.assertEqual(len(set(found)), 1)

    def tools_are_whole(self):
        for talk in self.talks():
            tools = talk.say(modern("tools/list")).message["result"]["tools"]
            self.assertEqual([tool["name"] for tool in tools], list(TOOLS))
            for tool in tools:
                self.assertRegex(tool["name"], r"^[A-Za-z0-9_.-]{1,64}$")
                self.assertTrue(text(tool["description"]) and text(tool["title"]))
                schema = tool["inputSchema"]
                self.assertEqual((schema["type"], schema["additionalProperties"]),
                                 ("object", False), tool["name"])
                self.assertEqual(
                    sorted(tool["annotations"]),
                    ["destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"]
                    if "title" not in tool["annotations"] else sorted(tool["annotations"]))
                self.assertNotRegex(json.dumps(tool), r'"\$ref": "[^#]')

    def of_the_schema(self):
        client = self.start()  # a client that checks every answer
        client.load_schemas()
        for name in ("workspace_info", "list_processes", "list_operations"):
            self.assertIsNotNone(client.schemas[name])
            client.call(name, **({} if name == "workspace_info" else {"workspace_id": "ws"}))

    # ---- 1.8 ----

    def asking(self):
        config = self.config({"approvals": {"elicitation": True}, "workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "approvals": "confirm"}}})
        for talk in self.talks("stdio", ("--config", config)):
            yield talk
        # The workspace comes from the file alone.
        server = HttpServer(
            [SERVER, "--http", "--log-level", "info", "--port", "0", "--config", config],
            self.environment(), self.dir)
        self.addCleanup(self.stopped, server)
        yield Web(self, server)

    def patch(self, talk, meta=ASKED, **params):
        self.ids = getattr(self, "ids", 0) + 1
        return talk.say(modern("tools/call", {
            "name": "apply_patch", "arguments": {"workspace_id": "ws", "patch": ADD}, **params},
            id=self.ids, meta=meta)).message

    def asked_and_answered(self):
        for talk in self.asking():
            asked = self.patch(talk)["result"]
            question = {"method": "elicitation/create",
                        "params": {"message": text, "requestedSchema": an_object}}
            wanted = {"resultType": "input_required", "requestState": text,
                      "inputRequests": whole({"approval": question})}
            self.assertIsNone(misfit(wanted, asked))
            done = self.patch(talk, requestState=asked["requestState"], inputResponses={
                "approval": {"action": "accept", "content": {"decision": "deny"}}})["result"]
            self.assertTrue(failed("APPROVAL_CONFLICT")(done), done)

    def not_asked(self):
        for talk in self.asking():
            self.assertTrue(failed("APPROVAL_REQUIRED")(self.patch(talk, META)["result"]))
            sampling = {**META, ABILITIES: {"sampling": {}, "roots": {}}}
            self.assertTrue(failed("APPROVAL_REQUIRED")(self.patch(talk, sampling)["result"]))

    def state_is_sealed(self):
        for talk in self.asking():
            state = self.patch(talk)["result"]["requestState"]
            for wrong in ("x", state[:-1], ("1" if state[0] == "0" else "0") + state[1:], 5):
                error = self.patch(talk, requestState=wrong)["error"]
                self.assertEqual(error["code"], -32602)

    def wrong_keys(self):
        for talk in self.asking():
            state = self.patch(talk)["result"]["requestState"]
            accept = {"action": "accept", "content": {"decision": "deny"}}
            for answers in ({"other": accept}, {"approval": 5}, {"approval": None}, {}, 5, None):
                again = self.patch(talk, requestState=state, inputResponses=answers)
                if "error" in again:
                    self.assertEqual(again["error"]["code"], -32602)
                else:
                    self.assertEqual(again["result"]["resultType"], "input_required", answers)
            done = self.patch(talk, requestState=state,
                              inputResponses={"approval": accept, "more": {"a": 1}})
            self.assertTrue(failed("APPROVAL_CONFLICT")(done["result"]))

    # ---- 1.9 ----

    def log_on_request(self):
        read = {"name": "read", "arguments": {"workspace_id": "ws", "path": "none"}}
        for meta, wanted in ((META, 0), ({**META, PREFIX + "logLevel": "debug"}, 1)):
            client = self.launch("--workspace", "ws=" + self.ws)
            client.request("tools/call", {**read, "_meta": meta})
            told = [n for n in client.notifications if n["method"] == "notifications/message"]
            self.assertEqual(len(told), wanted)
        server = self.serve()
        plain = self.modern(server, "tools/call", read)
        self.assertEqual(plain.headers["content-type"], "application/json")
        logged = self.modern(server, "tools/call", read,
                             meta={**META, PREFIX + "logLevel": "debug"})
        self.assertEqual([m.get("method") for _, m in logged.events],
                         ["notifications/message", None])

    def acknowledged(self):
        # The lists of the product never change, so that is not among what will be told.
        asks = {"notifications": {"toolsListChanged": True, "none": True,
                                  "resourceSubscriptions": [LINES]}}
        server = self.serve()
        client = self.launch("--workspace", "ws=" + self.ws)
        for ident in (7, "7"):
            client.send(modern("subscriptions/listen", asks, id=ident).message)
            client.send({**FENCE, "id": "f%r" % ident})
            client.message_for("f%r" % ident)
            stream = self.modern(server, "subscriptions/listen", asks, id=ident, stream=True)
            for first in (client.notifications.pop(0), stream.event()[1]):
                self.assertEqual(first["method"], "notifications/subscriptions/acknowledged")
                params = first["params"]
                self.assertIsNone(misfit(ident, params["_meta"][PREFIX + "subscriptionId"]))
                self.assertEqual(params["notifications"], {"resourceSubscriptions": [LINES]})
            stream.close()
            client.send(notice("notifications/cancelled", {"requestId": ident}).message)


def add(index, rule):
    def test(self):
        self.run_rule(rule)

    test.__doc__ = "%s: %s" % (rule.section, rule.words)
    setattr(Transcripts, name_of(index, rule), test)


for place, one in enumerate(RULES):
    if any(isinstance(part, (Step, str)) for part in one.how):
        add(place, one)

if __name__ == "__main__":
    unittest.main()
