// How long the model thought, where the AI SDK asks it through the gateway: for one message.
const SHOWN = new Set(["reasoning-start", "text-start", "tool-input-start"]); // parts of a message

/** `gateway` is its address, `headers` what names the client: the credential of the provider. */
export function thoughts(gateway, headers) {
  const turns = []; // a message takes one for each round of tool calls
  let session, shown = 0;
  return {
    /** The `fetch` of the provider. */
    async fetch(url, options) {
      const answer = await fetch(url, options);
      session = answer.headers.get("x-thoughtline-session") ?? session;
      const turn = answer.headers.get("x-thoughtline-turn");
      if (answer.ok && turn) turns.push(turn);
      return answer;
    },
    /** For `result.toUIMessageStream({ sendFinish: false })`: adds keys, and at the end durations. */
    stream: () => new TransformStream({
      transform(chunk, out) {
        const place = SHOWN.has(chunk.type) ? shown++ : undefined;
        if (chunk.type !== "reasoning-start") return out.enqueue(chunk);
        const item = Object.values(chunk.providerMetadata ?? {}).find((one) => one?.itemId);
        const thoughtline = { key: item?.itemId ?? `part-${place}` };
        out.enqueue({ ...chunk, providerMetadata: { ...chunk.providerMetadata, thoughtline } });
      },
      async flush(out) {
        const asked = `${gateway}/own/sessions/${session}/turns?ids=${turns}`;
        const answer = turns.length ? await fetch(asked, { headers }) : undefined;
        const { reasoningDurations, reasoningTotal, reasoningClocks } = answer?.ok ? await answer.json() : {};
        out.enqueue({ type: "finish", messageMetadata: { reasoningDurations, reasoningTotal, reasoningClocks } });
      },
    }),
  };
}
