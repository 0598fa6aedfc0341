// Charts of numbers over time: stacked bars, or overlaid areas. Each has a table beside it for those
// who would rather read, or hear, the numbers.
import { h, s, setChildren } from "./dom.js";
import { compact, count, dateTime, day, hour } from "./words.js";

const HEIGHT = 190;
const EDGE = { left: 44, right: 8, top: 10, bottom: 22 };

/** `series` = [[field, label], …]; `kind` is "bars" (stacked) or "areas" (one behind the other). */
export function chart({ title, summary, buckets, series, kind, format }) {
  const canvas = h("div.canvas");
  const tip = h("div.tip", { hidden: true });
  const draw = () => setChildren(canvas, drawing({ title, summary, buckets, series, kind, format, width: canvas.clientWidth || 600, tip }), tip);
  const sizes = new ResizeObserver(draw);
  sizes.observe(canvas);
  return h("figure.chart.card", {},
    h("figcaption", {}, h("h2", {}, title), h("ul.legend", { "aria-label": "Colours" },
      series.map(([field, label]) => h(`li.${field}`, {}, h("i", { "aria-hidden": "true" }), label)))),
    canvas,
    h("details.as-table", {}, h("summary", {}, "As a table"), table({ title, buckets, series, format })));
}

function drawing({ title, summary, buckets, series, kind, format = null, width, tip }) {
  const inner = width - EDGE.left - EDGE.right;
  const high = HEIGHT - EDGE.top - EDGE.bottom;
  const top = roundUp(Math.max(format ? 0.0001 : 1, ...buckets.map((bucket) => height(bucket, series, kind))));
  const y = (value) => EDGE.top + high - (value / top) * high;
  const step = inner / Math.max(1, buckets.length);
  const x = (index) => EDGE.left + index * step;
  const svg = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}. ${summary}` });
  for (const share of [0, 0.5, 1]) {
    svg.append(s("line.grid", { x1: EDGE.left, x2: width - EDGE.right, y1: y(top * share), y2: y(top * share) }),
      s("text.axis", { x: EDGE.left - 8, y: y(top * share) + 4, "text-anchor": "end" }, axisLabel(format, top * share)));
  }
  svg.append(...(kind === "bars" ? bars({ buckets, series, x, y, step }) : areas({ buckets, series, x, y, step })));
  svg.append(...timeLabels({ buckets, x, step }));
  svg.append(...hoverColumns({ buckets, series, x, step, tip, width, format }));
  return svg;
}

function axisLabel(format, value) {
  const label = (format ?? compact)(value);
  return label.includes(".") ? label.replace(/\.?0+$/, "") : label;
}

function height(bucket, series, kind) {
  const values = series.map(([field]) => bucket[field] ?? 0);
  return kind === "bars" ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
}

/** The next round number above a value. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((factor) => factor * power).find((round) => round >= value);
}

function bars({ buckets, series, x, y, step }) {
  const gap = Math.min(3, step * 0.25);
  return buckets.flatMap((bucket, index) => {
    let from = 0;
    return series.map(([field]) => {
      const value = bucket[field] ?? 0;
      if (!value) return "";
      const place = { x: x(index) + gap / 2, y: y(from + value), width: Math.max(1, step - gap), height: Math.max(1, y(from) - y(from + value)), rx: Math.min(2, step / 4) };
      from += value;
      return s(`rect.mark.${field}`, place);
    });
  }).filter(Boolean);
}

function areas({ buckets, series, x, y, step }) {
  if (!buckets.length) return [];
  return series.flatMap(([field]) => {
    const points = buckets.map((bucket, index) => `${(x(index) + step / 2).toFixed(1)} ${y(bucket[field] ?? 0).toFixed(1)}`);
    const [first, last] = [x(0) + step / 2, x(buckets.length - 1) + step / 2];
    return [s(`path.area.${field}`, { d: `M${first} ${y(0)}L${points.join("L")}L${last} ${y(0)}Z` }), s(`path.curve.${field}`, { d: `M${points.join("L")}` })];
  });
}

const labelFormat = (buckets) => (buckets.length > 1 && buckets.at(-1).at - buckets[0].at > 2 * 86400 ? day : hour);

function timeLabels({ buckets, x, step }) {
  const every = Math.max(1, Math.ceil(70 / step));
  const label = labelFormat(buckets);
  return buckets.map((bucket, index) => index % every === 0 && index * step < step * buckets.length - 30 &&
    s("text.axis", { x: x(index), y: HEIGHT - 6 }, label(bucket.at))).filter(Boolean);
}

function hoverColumns({ buckets, series, x, step, tip, width, format }) {
  const show = (bucket, index) => () => {
    setChildren(tip, h("strong", {}, dateTime(bucket.at)), series.map(([field, label]) => h(`span.${field}`, {}, h("i"), `${label}: ${(format ?? count)(bucket[field])}`)));
    tip.hidden = false;
    tip.style.left = `${Math.min(width - 190, Math.max(0, x(index) + step / 2 - 95))}px`;
  };
  return buckets.map((bucket, index) => s("rect.slot", {
    x: x(index), y: EDGE.top, width: step, height: HEIGHT - EDGE.top - EDGE.bottom,
    onpointerenter: show(bucket, index), onpointerleave: () => (tip.hidden = true),
  }));
}

function table({ title, buckets, series, format }) {
  const rows = buckets.filter((bucket) => series.some(([field]) => bucket[field]));
  return h("div.table-scroll", { tabindex: "0", role: "group", "aria-label": `${title}, as a table` },
    h("table", {}, h("caption.unseen", {}, title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"), series.map(([, label]) => h("th.number", { scope: "col" }, label)))),
      h("tbody", {}, rows.map((bucket) => h("tr", {}, h("th", { scope: "row" }, dateTime(bucket.at)),
        series.map(([field]) => h("td.number", {}, (format ?? count)(bucket[field]))))))));
}
