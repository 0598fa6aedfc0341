"""LiteLLM's SDK at work, in an environment of its own; see `workers`."""

import gc
import json
import os
import sys
import traceback

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network

import litellm

litellm.suppress_debug_info = True

TYPES = {
    "read_file": {"path": "string", "n": "number"},
    "run": {"command": "string", "cwd": "string"},
    "search": {"query": "string", "limit": "integer", "all": "boolean"},
}
SCHEMAS = {
    name: {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in types.items()},
        "required": list(types),
    }
    for name, types in TYPES.items()
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


def result(name, arguments):
    return f"{name} says: {json.dumps(json.loads(arguments), ensure_ascii=False)}\n"


def chat(job):
    messages = [{"role": "system", "content": "Be brief."}]
    for question in job["questions"]:
        messages.append({"role": "user", "content": question})
        while True:
            message = completed(job, messages)
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                content = result(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def completed(job, messages):
    asked = {
        "model": job["model"],
        "api_base": job["base"],
        "api_key": job["key"],
        "messages": messages,
        "tools": TOOLS,
        "max_retries": 0,
        **job.get("more", {}),
    }
    if not job.get("stream"):
        return litellm.completion(**asked).choices[0].message
    chunks = list(litellm.completion(stream=True, **asked))
    return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message


def responses(job):
    tools = [{"type": "function", "name": n, "parameters": s} for n, s in SCHEMAS.items()]
    history = []
    for question in job["questions"]:
        history.append({"role": "user", "content": question})
        while True:
            response = responded(job, input=history, tools=tools)
            history += [item.model_dump() for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            history += [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": result(call.name, call.arguments),
                }
                for call in calls
            ]


def responded(job, **asked):
    stream = job.get("stream", False)
    made = litellm.responses(
        model=job["model"],
        api_base=job["base"],
        api_key=job["key"],
        stream=stream,
        **asked,
        **job.get("more", {}),
    )
    if not stream:
        return made
    return next(event.response for event in list(made) if event.type == "response.completed")


def main():
    # LiteLLM lets go of streams before their end. When the collector finds one of them while
    # httpcore holds the lock of its pool, the stream wants that lock, too, and both wait for ever.
    gc.disable()
    for line in sys.stdin:
        gc.collect()  # here nobody holds it
        job = json.loads(line)
        try:
            {"chat": chat, "responses": responses}[job["kind"]](job)
            outcome = {"ok": True}
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the outcome)
            traceback.print_exc()
            outcome = {"ok": False, "error": str(error)[:2000]}
        print(json.dumps(outcome), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
