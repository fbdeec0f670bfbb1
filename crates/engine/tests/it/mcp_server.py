"""A small MCP server over stdio. What it is called with says what it does."""

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


def main():
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
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "toy", "version": "1"},
            }
            send({"id": message["id"], "result": result})
        elif method == "tools/list":
            send({"id": message["id"], "result": {"tools": listed()}})
        elif method == "tools/call":
            send({"id": message["id"], "result": call(message["params"])})
        elif "id" in message and method:
            error = {"code": -32601, "message": "no such method"}
            send({"id": message["id"], "error": error})


main()
