// The AI SDK at work: one job a line in, one outcome a line out; see `workers.py`.

import { createInterface } from "node:readline";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;

const enough = isStepCount(8);
const say = async (given) => `done: ${JSON.stringify(given)}\n`;
const tools = {
  read_file: tool({
    description: "Read the first lines of a file.",
    inputSchema: z.object({ path: z.string(), n: z.number() }),
    execute: say,
  }),
  run: tool({
    description: "Run a command.",
    inputSchema: z.object({ cwd: z.string(), command: z.string() }),
    execute: say,
  }),
  search: tool({
    description: "Search in all files.",
    inputSchema: z.object({ limit: z.number(), all: z.boolean(), query: z.string() }),
    execute: say,
  }),
};

function model({ kind, url, root, key, model: id }) {
  switch (kind) {
    case "openai-chat":
      return createOpenAI({ baseURL: url, apiKey: key }).chat(id);
    case "openai-responses":
      return createOpenAI({ baseURL: url, apiKey: key }).responses(id);
    case "openai-compatible":
      return createOpenAICompatible({ name: "kept", baseURL: url, apiKey: key })(id);
    case "deepseek":
      return createDeepSeek({ baseURL: url, apiKey: key })(id);
    case "anthropic":
      return createAnthropic({ baseURL: `${root}/v1`, apiKey: key })(id);
    case "google":
      return createGoogleGenerativeAI({ baseURL: `${root}/v1beta`, apiKey: key })(id);
    case "mistral":
      return createMistral({ baseURL: url, apiKey: key })(id);
    default:
      throw new Error(`no such kind: ${kind}`);
  }
}

async function converse(job) {
  const messages = [];
  for (const question of job.questions) {
    messages.push({ role: "user", content: question });
    const asked = {
      model: model(job),
      instructions: "Be brief.",
      messages,
      tools,
      stopWhen: enough,
      maxRetries: 0,
      providerOptions: job.options,
    };
    let result;
    if (job.stream) {
      let failure;
      result = streamText({ ...asked, onError: ({ error }) => (failure = error) });
      await result.consumeStream();
      if (failure) throw failure;
    } else {
      result = await generateText(asked);
    }
    messages.push(...(await result.responseMessages));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let outcome = { ok: true };
  try {
    await converse(JSON.parse(line));
  } catch (error) {
    console.error(error);
    outcome = { ok: false, error: `${error.message} ${error.responseBody ?? ""}`.slice(0, 2000) };
  }
  console.log(JSON.stringify(outcome));
}
