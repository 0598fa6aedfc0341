// The difference between two texts, word by word.

const MAX_WORDS = 1500; // of each text, after what is the same at both ends

/** Pieces of two texts: `[kind, text]`, where kind is `same`, `left` or `right`. */
export function textDiff(left, right) {
  const [a, b] = [words(left), words(right)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [mineA, mineB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const middle = mineA.length > MAX_WORDS || mineB.length > MAX_WORDS ? [["left", mineA.join("")], ["right", mineB.join("")]] : between(mineA, mineB);
  return joined([["same", a.slice(0, start).join("")], ...middle, ["same", a.slice(a.length - end).join("")]]);
}

const words = (text) => text.match(/\w+|\s+|[^\w\s]/gu) ?? [];

/** By the longest common subsequence. */
function between(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pieces = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      pieces.push(["same", a[i]]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1])) {
      pieces.push(["left", a[i]]);
      i += 1;
    } else {
      pieces.push(["right", b[j]]);
      j += 1;
    }
  }
  return pieces;
}

/** Neighbours of one kind as one piece; a space between two changes belongs to them. */
function joined(pieces) {
  const result = [];
  for (const [kind, text] of pieces) {
    if (!text) continue;
    if (result.at(-1)?.[0] === kind) result.at(-1)[1] += text;
    else result.push([kind, text]);
  }
  return result;
}
