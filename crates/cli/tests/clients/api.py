"""Drives a turn with a client that is made from the API document: an approval, a tool, the end."""

import json
import os

from bindery_api import AuthenticatedClient
from bindery_api.api.interrupts import answer_interrupt, list_interrupts
from bindery_api.api.threads import create_thread, list_threads
from bindery_api.api.turns import create_turn, get_turn
from bindery_api.models import (
    DecisionAnswer,
    EndEvent,
    FileChangeAsk,
    InputTextContent,
    Interrupt,
    InterruptEvent,
    NewPrompt,
    NewThread,
    PartEvent,
    PlainDecision,
    Problem,
    Settings,
    TextDeltaPart,
    TextInput,
    Thread,
    Tool,
    ToolCallAsk,
    ToolInputSchema,
    ToolResultAnswer,
    Turn,
    TurnEnd,
    TurnState,
)

client = AuthenticatedClient(base_url=os.environ["BASE"], token=os.environ["TOKEN"])


def given(kind, result):
    assert isinstance(result, kind), result
    return result


schema = ToolInputSchema.from_dict({"type": "object"})
settings = Settings.from_dict(
    {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
)
tool = Tool(type_="function", name="weather", input_schema=schema)
new = NewThread(title="made by a client", settings=settings, tools=[tool])
thread = given(
    Thread, create_thread.sync(client=client, body=new, idempotency_key="a thread")
)
prompt = NewPrompt(input_=[TextInput(type_="text", text="go")])
turn = given(Turn, create_turn.sync(thread.id, client=client, body=prompt))


def frames(turn):
    """The events of a turn, each of its own type."""
    kinds = {"part": PartEvent, "interrupt": InterruptEvent, "end": EndEvent}
    path = f"/v1/turns/{turn}/events"
    with client.get_httpx_client().stream("GET", path, timeout=None) as response:
        fields = {}
        for line in response.iter_lines():
            if not line:
                if fields:
                    yield kinds[fields["event"]].from_dict(fields)
                fields = {}
            elif not line.startswith(":"):
                name, value = line.split(": ", 1)
                fields[name] = value


def answer_to(ask):
    if isinstance(ask, ToolCallAsk):
        content = [InputTextContent(type_="inputText", text="sunny")]
        return ToolResultAnswer(kind="toolResult", content=content, success=True)
    assert isinstance(ask, FileChangeAsk), ask
    return DecisionAnswer(kind="decision", decision=PlainDecision.ACCEPT)


asked, text, end = [], "", None
for event in frames(turn.id):
    data = json.loads(event.data)
    if isinstance(event, PartEvent) and data["type"] == "text-delta":
        text += TextDeltaPart.from_dict(data).delta
    elif isinstance(event, InterruptEvent):
        question = Interrupt.from_dict(data)
        asked.append(question.ask.kind)
        answered = answer_interrupt.sync(
            question.token, client=client, body=answer_to(question.ask)
        )
        given(Interrupt, answered)
    elif isinstance(event, EndEvent):
        end = TurnEnd.from_dict(data)
read = given(Turn, get_turn.sync(turn.id, client=client))
assert read.state == TurnState.COMPLETED
open_now = list_interrupts.sync(client=client)
assert open_now.data == [], open_now
problem = given(Problem, list_threads.sync(client=client, limit=0))
print(
    json.dumps(
        {
            "asked": asked,
            "text": text,
            "state": end.state.value,
            "read": {
                "state": read.state.value,
                "text": read.text,
                "paths": [change.path for change in read.changes],
            },
            "problem": problem.code,
        }
    )
)
