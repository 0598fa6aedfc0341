// Branches of a session: which one is shown, and two of them side by side.
import { h, icon, plain } from "./dom.js";
import { ago, plural } from "./format.js";
import { link } from "./router.js";
import { article } from "./turn.js";

const MOST = 100;
const LONGEST = 40; // characters of what a branch is called by

/** A choice of heads; null where there is nothing to choose. */
export function picker(tree, head, { label, choose, id }) {
  const heads = tree.heads();
  if (heads.length < 2) return null;
  const select = h("select.field.small", { id, "data-focus": id, onchange: () => choose(select.value) },
    heads.map((one, index) => h("option", { value: one, selected: one === head },
      `${index + 1} of ${heads.length} · ${named(tree, one)} · ${plural(tree.path(one).length, "turn")} · ${ago(tree.turns.get(one).started)}`)));
  return h("span.picker", {}, h("label.unseen", { for: id }, label), icon("branch"), select);
}

/** What was asked where a branch parted from the others, in a few words. */
function named(tree, head) {
  const own = tree.path(head).findLast((turn) => tree.siblings(turn.id).length > 1) ?? tree.turns.get(head);
  const said = own.input.find((part) => part.type === "text" && part.text) ?? own.output.find((part) => part.type === "text" && part.text);
  const words = plain((said?.text ?? "").trim().replace(/\s+/g, " "));
  return words.length > LONGEST ? `${words.slice(0, LONGEST).trimEnd()}…` : words || "without words";
}

/** Which other branch to hold against this one: the newest that is not it. */
export function rival(tree, head) {
  return tree.heads().filter((one) => one !== head).at(-1);
}

/** Two branches next to each other from where they part. */
export function comparison(tree, session, { left, right, shelf, request }) {
  const parted = tree.split(left, right);
  const choose = (side) => (head) => {
    location.hash = link(["sessions", session, "compare"], { left, right, [side]: head });
  };
  const column = (side, turns, head) =>
    h("section.column", { "aria-label": side === "left" ? "First branch" : "Second branch" },
      h("header.column-head", {}, picker(tree, head, { label: `The ${side} branch`, choose: choose(side), id: `pick-${side}` })),
      turns.length ? turns.slice(0, MOST).map((turn, index) => article(turn, {
        shelf, request, number: parted.common.length + index + 1, siblings: [], choose: () => {},
        permalink: (id) => link(["sessions", session], { head, turn: id }),
      })) : h("p.fine.pad", {}, "This branch ends where the other one goes on."),
      turns.length > MOST && h("p.fine.pad", {}, `${plural(turns.length - MOST, "more turn")}: `,
        h("a", { href: link(["sessions", session], { head, turn: turns[MOST].id }) }, "read on in this branch")));
  return h("div.comparison", {},
    h("p.common", {}, icon("branch"), parted.common.length
      ? `${plural(parted.common.length, "turn")} in common, then they part.`
      : "They have no turn in common.",
    parted.common.length > 0 && h("a", { href: link(["sessions", session], { head: left, turn: parted.common.at(-1).id }) }, "Show where")),
    h("div.columns", {}, column("left", parted.left, left), column("right", parted.right, right)));
}
