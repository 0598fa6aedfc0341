// Codes of the log and of providers in words; what has none is shown as it is.

/** How a session or a turn stands. */
export const STATUSES = {
  running: "running", completed: "completed", failed: "failed", capped: "cut off", aborted: "stopped",
};

export const statusWords = (name) => STATUSES[name] ?? (name || "new");

const CARRIERS = {
  item: "a reasoning item", block: "a thinking block", part: "a thought part", chunk: "a thinking chunk",
  think: "<think> tags in the text", signature: "a thought signature", extra_content: "a signature in extra_content",
  reference: "a reference to an item", placeholder: "the shortest value that is accepted",
};

/** In which shape a thought travels; the others are names of keys, and people know those. */
export const carrierWords = (carrier) => CARRIERS[carrier] ?? carrier;

const VERDICTS = { allow: "given", always: "given for good", deny: "refused" };

export const verdictWords = (verdict) => VERDICTS[verdict] ?? verdict;

const LIMIT = "the answer was as long as the request allows";
const FILTER = "the provider's filter stopped it";
const ENDINGS = {
  length: LIMIT, max_tokens: LIMIT, MAX_TOKENS: LIMIT, max_output_tokens: LIMIT, incomplete: "the provider says that it is incomplete",
  model_context_window_exceeded: "the model's context window is full", pause_turn: "the provider paused the turn",
  content_filter: FILTER, SAFETY: FILTER, PROHIBITED_CONTENT: FILTER, BLOCKLIST: FILTER, SPII: FILTER, IMAGE_SAFETY: FILTER,
  RECITATION: "it would have repeated a text that it was trained on", LANGUAGE: "the model does not speak that language",
  MALFORMED_FUNCTION_CALL: "the model's call of a tool could not be read", UNEXPECTED_TOOL_CALL: "the model called a tool that it was not given",
  MISSING_THOUGHT_SIGNATURE: "a thought signature was missing", OTHER: "the provider does not say why",
  refusal: "the model refused", error: "the provider reported an error", insufficient_system_resource: "the provider had too little capacity", cancelled: "it was cancelled", failed: "the provider does not say why",
};

/** Why a turn ended as it did. */
export const endingWords = (reason) => ENDINGS[reason] ?? reason;
