"""What a person can do about a request that failed: by the gateway's code, else by the answer."""

import re

_BY_CODE = {
    "invalid_api_key": "Give the client one of the keys under `access.clients` as its API key.",
    "upstream_key_missing": "Set that provider's key where the gateway runs, or point the client "
    "at `/u/NAME` with a key of its own.",
    "foreign_page": "If you trust that page, list it under `access.origins`, or set client keys.",
    "host_not_allowed": "Use 127.0.0.1 or localhost, or list the name under `access.hosts`.",
    "unknown_upstream": "Look at the client's base URL: it ends in /v1 for OpenAI's SDKs, and in "
    "the port for Anthropic's. `thoughtline doctor` lists the upstreams.",
    "model_not_found": "Ask for a model that an upstream serves, or map the name under `[models]`. "
    "`thoughtline models` lists them.",
    "not_found": "Look at the client's base URL and path.",
    "invalid_json": "The client sent a body that is not JSON: its words say where it goes wrong.",
    "invalid_path": "Write the path without `..`.",
    "unsupported_encoding": "Send the body plain, or install `zstandard` beside Thoughtline.",
    "request_too_large": "Shorten the conversation, or raise `server.max_body_bytes`.",
    "thought_missing": "Start a new conversation, or do without strict mode for this one.",
    "previous_response_not_found": "Send the whole conversation: what the request goes on from is "
    "not in the log, or is somebody else's.",
    "untranslatable": "Leave that out of the request, or ask an upstream that speaks this API.",
    "ambiguous_body": "Write each key of the JSON body once.",
    "upstream_unreachable": "Is the upstream up, and is its address right? `thoughtline doctor` "
    "tries it.",
    "upstream_broke_off": "The provider ended its answer early: ask again.",
    "going_down": "The gateway was being stopped: ask again.",
    "internal_error": "This is a fault of Thoughtline: please report it with the log lines.",
}
_BY_WORDS = {
    r"thought_signature|signature in thinking|encrypted_content|reasoning_content|thinking block": (
        "The provider did not accept a thought. It is not sent again: ask once more, and report it "
        "if that does not help."
    ),
    r"broke off": "The provider ended its answer early: ask again.",
    r"quota|insufficient|balance|billing|credit": (
        "The provider's account has run out: look at its billing page."
    ),
    r"context.{0,12}(length|window)|too many tokens|maximum context": (
        "The conversation is too long for this model: compact it, or choose another model."
    ),
    r"not a valid model|model.{0,40}(not (found|exist)|unknown|deprecated|retired)": (
        "The provider does not know that model: look at its list of models."
    ),
}
_BY_STATUS = {
    400: "The provider did not like the request; its words say what.",
    401: "The provider does not accept the API key: look at what the client sends, or at "
    "`upstreams.NAME.env_key`.",
    402: "The provider's account has run out: look at its billing page.",
    403: "The API key may not do this: look at its permissions and its region.",
    404: "The provider has no such path or model: look at the base URL and the model's name.",
    408: "It took too long: ask again, or raise the timeouts under `[server]`.",
    413: "Shorten the conversation.",
    422: "The provider did not like the request; its words say what.",
    429: "Too many requests or tokens for this account: wait a little, then ask again.",
    499: "The client left before the answer was complete.",
    502: "The upstream did not answer: `thoughtline doctor` tries it.",
    503: "The provider has too much to do: ask again in a moment.",
    529: "The provider has too much to do: ask again in a moment.",
}


def advice(status: int, code: str, words: str) -> str:
    """What to do; empty where nobody can say."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status < 400:
        return ""
    for pattern, text in _BY_WORDS.items():
        if status != 401 and re.search(pattern, words[:1000], re.IGNORECASE):
            return text
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "The provider has a fault: ask again in a moment." if status >= 500 else ""
