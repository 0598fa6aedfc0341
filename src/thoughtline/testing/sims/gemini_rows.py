"""The two doors to Gemini, its models and its words: data, no behaviour.

AI Studio and Vertex enforce the same and say it differently
(ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model."""

    name: str
    required: bool = True
    """Signatures must come back; before Gemini 3 they may."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one door does differently."""

    summary: str
    missing: str
    """What it says when a signature is not there."""
    corrupted: str
    invalid: str
    bypass: tuple[str, ...]
    """What it accepts in place of a signature."""


MODELS = (
    Model(name="gemini-3-pro-preview"),
    Model(name="gemini-3.1-pro-preview"),
    Model(name="gemini-3-flash-preview"),
    Model(name="gemini-2.5-flash", required=False),
    Model(name="gemini-2.5-pro", required=False),
)

SKIP = "skip_thought_signature_validator"
ENGINEERING = "context_engineering_is_the_way_to_go"

ROWS: dict[str, Row] = {
    # lbjlaq/Antigravity-Manager#938 (missing) and #3342 (invalid), sst/opencode#4832 (corrupted).
    "gemini": Row(
        summary="The first call of each step of the current turn keeps its thoughtSignature.",
        missing=(
            "Function call is missing a thought_signature in functionCall parts. This is required"
            " for tools to work correctly, and missing thought_signature may lead to degraded model"
            " performance. Additional data, function call `default_api:{name}` , position"
            " {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures"
            " for more details."
        ),
        corrupted="Corrupted thought signature.",
        invalid="Invalid thought signature.",
        bypass=(SKIP, ENGINEERING),
    ),
    # pydantic/pydantic-ai#3881 (missing, bypass), RooCodeInc/Roo-Code#11716 (not valid).
    "gemini-vertex": Row(
        summary="As gemini, in the words of Vertex AI.",
        missing=(
            "Unable to submit request because function call `default_api:{name}` in the {position}."
            " content block is missing a `thought_signature`."
        ),
        corrupted="Unable to submit request because Thought signature is not valid",
        invalid="Unable to submit request because Thought signature is not valid",
        bypass=(SKIP,),
    ),
}

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
NO_CREDENTIAL = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login"
    " cookie or other valid authentication credential."
)
NO_MODEL = (
    "models/{name} is not found for API version {version}, or is not supported for {method}. Call"
    " ListModels to see the list of available models and their supported methods."
)
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function"
    " call parts of the function call turn."
)
AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function"
    " response turn."
)
AFTER_CALL = (
    "Please ensure that function response turn comes immediately after a function call turn."
)
ROLE = "Please use a valid role: user, model."
