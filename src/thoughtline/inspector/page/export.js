// A session as a file: Markdown for people, JSON for programs. Thoughts are in it only if they were asked for.
import * as api from "./api.js";
import { announce, h } from "./dom.js";
import { dateTime, elapsed, moneyOf } from "./words.js";

/** Asks in which form, then downloads the session. */
export function exportDialog(id, facts) {
  const format = h("select.field", { id: "export-format" }, h("option", { value: "md" }, "Markdown, to read"), h("option", { value: "json" }, "JSON, as the API has it"));
  const thoughts = h("input", { type: "checkbox" });
  const wrong = h("p.wrong", { role: "alert", hidden: true });
  const download = h("button.primary", { type: "button", onclick: async () => {
    download.disabled = true;
    try {
      const session = await wholeSession(id, thoughts.checked);
      const text = format.value === "json" ? JSON.stringify(session, null, 2) : markdown(session);
      save(text, `${fileName(facts.title || id)}.${format.value}`, format.value === "json" ? "application/json" : "text/markdown");
      announce("Exported");
      dialog.close();
    } catch (error) {
      wrong.textContent = `That did not work: ${error.message}`;
      wrong.hidden = false;
      download.disabled = false;
    }
  } }, "Download");
  const dialog = h("dialog.card", { "aria-labelledby": "export-title" },
    h("h2", { id: "export-title" }, "Export this session"),
    h("label.choice", { for: "export-format" }, h("span", {}, "Format"), format),
    h("label.check.plain", {}, thoughts, "With the text of its thoughts (this is logged)"), wrong,
    h("div.row.end", {}, h("button.secondary", { type: "button", onclick: () => dialog.close() }, "Cancel"), download));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

async function wholeSession(id, thoughts) {
  const turns = [];
  let page;
  for (let after; after !== null; after = page.nextAfter ?? null) {
    page = await api.session(id, { after, limit: 200, thoughts: thoughts ? 1 : undefined });
    turns.push(...page.turns);
  }
  return { session: page.session, turns };
}

const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "session";

function save(text, name, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The session as Markdown: its turns in the order they started. */
export function markdown({ session, turns }) {
  const lines = [`# ${session.title || "Session"}`, "", `${session.models.join(", ")} · ${dateTime(session.created)} · session ${session.id}`, ""];
  turns.forEach((turn, index) => {
    lines.push(`## Turn ${index + 1}`, "");
    for (const part of [...turn.input, ...turn.output]) lines.push(...partLines(part, turn.input.includes(part)), "");
    const facts = [turn.target?.model, turn.usage?.input && `${turn.usage.input} tokens in, ${turn.usage.output} out`, turn.cost !== null && moneyOf(turn),
      turn.ended && elapsed(turn.started, turn.ended), turn.outcome !== "completed" && turn.outcome, turn.reason].filter(Boolean);
    if (facts.length) lines.push(`_${facts.join(" · ")}_`, "");
  });
  return lines.join("\n");
}

function partLines(part, asked) {
  const fenced = (text) => {
    const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)));
    return [fence, text, fence];
  };
  switch (part.type) {
    case "text": return asked ? part.text.split("\n").map((line) => `> ${line}`) : [part.text];
    case "thought": return [`**${part.duration.label}**`, ...(part.text ? ["", ...part.text.split("\n").map((line) => `> ${line}`)] : [])];
    case "call": return [`Call \`${part.name}\``, ...fenced(part.arguments)];
    case "result": return [`Result \`${part.name || part.call}\``, ...fenced(typeof part.content === "string" ? part.content : JSON.stringify(part.content))];
    default: return [`[${part.kind ?? part.type}]`];
  }
}
