"""A small MCP server over stdio. What it is called with says what it does."""

import http.server
import json
import os
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else ""


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name, **hints):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    told = {"name": name, "description": name, "inputSchema": schema}
    return {**told, "annotations": hints} if hints else told


TOOLS = ["add", "look", "structured", "huge", "hang", "crash", "ask", "wrong", "picture", "secret"]


def listed():
    return [tool(name, readOnlyHint=True) if name == "look" else tool(name) for name in TOOLS]


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def ask():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": "Who are you?", "requestedSchema": schema}
    send({"id": "q1", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q1":
            return text(json.dumps(message.get("result")))
    sys.exit(0)


def call(params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "add":
        token = params.get("_meta", {}).get("progressToken")
        progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        send({"method": "notifications/progress", "params": progress})
        return text(str(arguments["a"] + arguments["b"]))
    if name == "look":
        return text(os.environ.get("SHOWN", "nothing"))
    if name == "structured":
        return {**text("shown to people"), "structuredContent": {"sum": 5}}
    if name == "huge":
        return text("x" * arguments["a"])
    if name == "hang":
        time.sleep(100000)
    if name == "crash":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "ask":
        return ask()
    if name == "wrong":
        return {**text("no such thing"), "isError": True}
    if name == "picture":
        picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": "see"}, picture]}
    return text("?")


def answer(message):
    method = message.get("method")
    if method == "initialize":
        return {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "toy", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": listed()}
    if method == "resources/list":
        return {"resources": [{"uri": "toy://a", "name": "a", "mimeType": "text/plain"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "toy://{name}", "name": "any"}]}
    if method == "resources/read" and message["params"]["uri"] == "toy://a":
        return {"contents": [{"uri": "toy://a", "mimeType": "text/plain", "text": "held"}]}
    if method == "tools/call":
        return text("over HTTP")
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != "Bearer token":
            return self.reply(401, b"")
        if "id" not in message:
            return self.reply(202, b"")
        result = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message) or {}}
        self.reply(200, json.dumps(result).encode())

    def do_GET(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def main():
    if MODE == "http":
        serve()
    if MODE == "silent":
        time.sleep(100000)
    if MODE == "broken":
        sys.stderr.write("no cheese at all\n")
        sys.exit(4)
    if MODE == "family":
        # A child that leaves its group and keeps the pipes open.
        child = subprocess.Popen(["sleep", "100000"], start_new_session=True)
        with open(sys.argv[2], "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
    if MODE == "rubbish":
        sys.stdout.write("Starting up...\n{}\n[1,2\n")
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if "id" not in message or not method:
            continue
        result = call(message["params"]) if method == "tools/call" else answer(message)
        if result is not None:
            send({"id": message["id"], "result": result})
        else:
            error = {"code": -32601, "message": "no such method"}
            send({"id": message["id"], "error": error})


main()
