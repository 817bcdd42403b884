import { colourOf, h, meter, saves } from "./dom.js";
import { copyLink } from "./main.js";
import { say } from "./sayings.js";

const EXAMPLE = { en: "Ada Lovelace met Charles Babbage in London.\nMarie Curie was born in Warsaw in 1867.", zh: "他在北京大学学习物理。" };

export default function tasks({ state, served, model, remember, run }) {
  if (!served.tasks.length) return h("p", { className: "empty card" }, say("no_tasks"));
  const choice = h("select", {}, served.tasks.map((task) => h("option", { value: task.id, selected: task.id === state.task }, `${task.id} (${task.task})`)));
  const text = h("textarea", { rows: 6, value: state.text ?? EXAMPLE[model?.language] ?? EXAMPLE.en });
  const second = h("textarea", { rows: 3, value: state.second ?? "" });
  const more = h("details", { open: Boolean(state.second) }, h("summary", { className: "note" }, say("second")), second);
  const area = h("div", { className: "stack" });
  const act = () => {
    const lines = text.value.split("\n").filter((line) => line.trim()), others = second.value.split("\n").filter((line) => line.trim());
    remember({ task: choice.value, text: text.value, second: second.value });
    run(area, async (ask) => {
      const input = lines.map((line, n) => (others[n] ? [line, others[n]] : line));
      const { data } = await ask(`v1/predict/${encodeURIComponent(choice.value)}`, { input });
      return () => area.replaceChildren(h("section", { className: "card stack" }, h("div", { className: "head" }, h("h2", {}, choice.value), saves(() => `elmokit-${choice.value}`, null, () => table(data))), data.map(prediction)));
    });
  };
  choice.onchange = act;
  act();
  return h("div", { className: "columns" }, h("form", { className: "card", onsubmit: (event) => { event.preventDefault(); act(); } },
    h("label", { className: "field" }, say("task"), choice), h("label", { className: "field" }, say("text"), text), more, h("div", { className: "bar" }, h("button", {}, say("predict")), copyLink())), area);
}

const labelColours = new Map();
function colour(label) {
  if (!labelColours.has(label)) labelColours.set(label, colourOf(labelColours.size));
  return labelColours.get(label);
}

// What is known of a prediction is drawn; of anything else its data are shown.
function prediction(found) {
  const { text, spans, tags, tokens, scores, frames, clusters, passage, premise } = found;
  const parts = [];
  if (frames) for (const frame of frames) parts.push(highlighted(text, [...frame.roles, { ...frame, label: "V" }]));
  else if (clusters) parts.push(highlighted(text, clusters.flatMap((cluster, n) => cluster.map((one) => ({ ...one, label: String(n + 1) })))));
  else if (spans?.length) parts.push(highlighted(text, spans));
  else if (tags?.some((tag) => tag !== "O")) parts.push(h("div", { className: "words" }, tokens.map((token, n) => h("span", { className: "word", style: { background: `${colour(tags[n])}2e` } }, token, h("small", {}, tags[n])))));
  else if (passage) parts.push(h("p", { className: "note" }, found.question), highlighted(passage, found.answer ? [{ ...found.answer, label: found.answer.probability.toFixed(2) }] : []));
  else if (premise) parts.push(h("p", { className: "said" }, premise), h("p", { className: "said" }, found.hypothesis));
  else if (text) parts.push(h("p", { className: "said" }, text));
  if (scores) parts.push(h("div", {}, Object.entries(scores).sort((a, b) => b[1] - a[1]).slice(0, 6).map(([label, share]) => meter(label, share, share.toFixed(2)))));
  if (!parts.length) parts.push(h("pre", {}, JSON.stringify(found, null, 1)));
  return h("article", { className: "stack" }, parts);
}

function highlighted(text, spans) {
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < at) continue;
    parts.push(text.slice(at, span.start), h("span", { className: "span", style: { background: `${colour(span.label)}33`, boxShadow: `inset 0 -2px ${colour(span.label)}` }, title: span.probability?.toFixed?.(3) ?? "" }, text.slice(span.start, span.end), h("b", {}, span.label)));
    at = span.end;
  }
  return h("p", { className: "said" }, parts, text.slice(at));
}

const table = (data) => [["text", "prediction"], ...data.map(({ text, tokens, offsets, ...rest }) => [text, JSON.stringify(rest)])];
