// Reads one message with the real `ai` package, as `useChat` does, and prints what it became.
import { DefaultChatTransport, readUIMessageStream } from "ai";

const [api, words] = process.argv.slice(2);
const transport = new DefaultChatTransport({ api });
const stream = await transport.sendMessages({
  trigger: "submit-message",
  chatId: "chat-1",
  messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: words }] }],
  abortSignal: undefined,
});
const [shown, raw] = stream.tee();
const types = [];
const listening = (async () => {
  for await (const chunk of raw) types.push(chunk.type);
})();
const errors = [];
const live = [];
let message;
for await (message of readUIMessageStream({ stream: shown, onError: (e) => errors.push(String(e)) })) {
  live.push(JSON.stringify(message.metadata?.reasoningStates ?? {}));
}
await listening;
console.log(JSON.stringify({ message, types, errors, live: [...new Set(live)] }));
