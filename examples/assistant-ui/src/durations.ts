// How long the model thought, from the metadata that Thoughtline sends with each message.
// Numbers are filed by the key of a thought, never by the id of a message: ids may change.
import { useAuiState } from "@assistant-ui/react";
import { createContext, useContext, useEffect, useState } from "react";

export type Metadata = {
  reasoningDurations?: Record<string, number>; // seconds, from the moment a thought ends
  reasoningStartedAt?: Record<string, number>; // milliseconds, by the server's clock
  reasoningStates?: Record<string, "thinking" | "done" | "aborted">;
  outcome?: "completed" | "failed" | "capped" | "aborted" | "interrupted";
};

/** How far the server's clock is ahead of the browser's, in milliseconds. */
export const Ahead = createContext(0);

const whole = (milliseconds: number) => Math.max(1, Math.ceil(milliseconds / 1000));

const length = (seconds: number) =>
  seconds >= 60
    ? `${Math.floor(seconds / 60)}m ${seconds % 60}s`
    : `${seconds} second${seconds === 1 ? "" : "s"}`;

/** The words of `thoughtline.durations.words`, and those of a thought that goes on. */
export function words(state: string | undefined, seconds: number | undefined): string {
  const said = { thinking: "Thinking", aborted: "Stopped thinking" }[state ?? ""] ?? "Thought";
  if (seconds === undefined) return said;
  return `${said} ${state === "aborted" ? "after" : "for"} ${length(seconds)}`;
}

/** A thought of this message: while it goes on it counts from its start, then the server says. */
export function useThought(key: string) {
  const known = useAuiState((s) => s.message.metadata.custom) as Metadata;
  const state = known.reasoningStates?.[key];
  const started = known.reasoningStartedAt?.[key];
  const now = useNow(state === "thinking");
  const live = state === "thinking" && started ? whole(now - started) : undefined;
  return { state, words: words(state, known.reasoningDurations?.[key] ?? live) };
}

function useNow(ticking: boolean): number {
  const ahead = useContext(Ahead);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!ticking) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 200);
    return () => clearInterval(timer);
  }, [ticking]);
  return now + ahead;
}
