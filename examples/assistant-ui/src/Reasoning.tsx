// A thought, folded to "Thought for 23 seconds"; while it goes on it is open, and the time runs.
import type { ReasoningMessagePart } from "@assistant-ui/react";
import { useId, useState } from "react";
import { useThought } from "./durations";

export function Reasoning({ part }: { part: ReasoningMessagePart }) {
  const key = String(part.providerMetadata?.thoughtline?.key ?? "");
  const { state, words } = useThought(key);
  const [chosen, choose] = useState<boolean>();
  const open = chosen ?? state === "thinking";
  const id = useId();
  return (
    <section className="thought" data-state={state ?? "done"} data-key={key}>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        disabled={!part.text}
        onClick={() => choose(!open)}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M6 3.5 10.5 8 6 12.5" />
        </svg>
        <span className="words">{words}</span>
      </button>
      <div id={id} className="text" hidden={!open}>
        {part.text}
      </div>
    </section>
  );
}
