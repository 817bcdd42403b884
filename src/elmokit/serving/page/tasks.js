// What each served task finds in a text.

import { colourOf, cut, h, heatMap, meter } from "./dom.js";
import { copyLink } from "./main.js";
import { drawn, saves } from "./saving.js";
import { language, say } from "./sayings.js";

const PERSON = "Ada Lovelace met Charles Babbage in London.\nMarie Curie was born in Warsaw in 1867.";
const PERSON_ZH = "他在北京大学学习物理。\n李白出生于公元701年。";

// For each kind of task: the examples in both languages, the name of the second text if there is one, how the
// texts become the inputs of a request, and how a prediction is drawn.
const KINDS = {
  tagger: { examples: [[PERSON], [PERSON_ZH]], inputs: lines, draw: tagged },
  classifier: {
    examples: [
      ["A warm and funny film.\nTwo long hours of nothing."],
      ["这家酒店的服务很好。\n房间又小又脏。"],
    ],
    inputs: lines,
    draw: labelled,
  },
  intent: {
    examples: [
      ["play some jazz by Miles Davis\nbook a table for two in Boston"],
      ["播放周杰伦的歌\n明天北京天气怎么样"],
    ],
    inputs: lines,
    draw: (found) => [...labelled({ ...found, text: "" }), ...tagged(found)],
  },
  roles: {
    examples: [["The chef gave the guests a large cake yesterday."], ["厨师昨天给客人做了一个蛋糕。"]],
    inputs: lines,
    draw: framed,
  },
  coreference: {
    examples: [
      ["Ada wrote to Charles because she admired his machine. He answered her at once."],
      ["李明给王芳写信，因为他很想念她。"],
    ],
    inputs: (text) => (text.trim() ? [text] : []),
    draw: clustered,
  },
  entailment: {
    second: "hypothesis",
    first: "premise",
    examples: [
      ["A man plays the guitar on a stage.", "A man makes music.\nThe man is asleep."],
      ["一个男人在台上弹吉他。", "一个男人在演奏音乐。\n那个男人在睡觉。"],
    ],
    inputs: (premise, hypotheses) =>
      lines(hypotheses).map((one, n) => [lines(premise)[n] ?? lines(premise).at(-1) ?? "", one]),
    draw: paired,
  },
  reading: {
    second: "questions",
    first: "passage",
    examples: [
      [
        "Marie Curie was born in Warsaw in 1867. She moved to Paris in 1891, where she studied physics.",
        "Where was Marie Curie born?\nWhat did she study?",
      ],
      ["居里夫人1867年生于华沙。1891年她移居巴黎，在那里学习物理。", "居里夫人生在哪里？\n她学习什么？"],
    ],
    inputs: (passage, questions) => lines(questions).map((question) => [question, passage]),
    draw: answered,
  },
  relations: {
    examples: [
      [
        "<e1>Ada Lovelace</e1> lived in <e2>London</e2>.\n<e1>Marie Curie</e1> worked for the <e2>University of Paris</e2>.",
      ],
      ["<e1>马化腾</e1>创办了<e2>腾讯</e2>。\n<e1>李明</e1>在<e2>北京大学</e2>工作。"],
    ],
    inputs: lines,
    draw: related,
  },
  translate: {
    examples: [
      ["A man plays the guitar.\nTwo dogs run through the grass."],
      ["他在看书。\n我们明天去北京。"],
    ],
    inputs: lines,
    draw: written,
  },
  reply: {
    first: "turns",
    examples: [
      ["Good morning. How can I help you?\nI would like to book a table for two."],
      ["你好，请问需要什么？\n我想订一张两个人的桌子。"],
    ],
    inputs: (text) => (lines(text).length ? [{ turns: lines(text) }] : []),
    draw: written,
  },
};
const OTHER = { examples: [[PERSON], [PERSON_ZH]], inputs: lines, draw: raw };

function lines(text) {
  return text.split("\n").filter((line) => line.trim());
}

export default function tasks({ state, served, remember, run }) {
  if (!served.tasks.length) return h("p", { className: "empty card" }, say("no_tasks"));
  const task = served.tasks.find((one) => one.id === state.task) ?? served.tasks[0];
  const kind = KINDS[task.task] ?? OTHER;
  const chinese = task.language ? task.language === "zh" : language === 1;
  const example = kind.examples[Number(chinese)];
  const choose = (id) => {
    location.hash = `#tasks?${new URLSearchParams({ task: id })}`;
  };
  const option = (one) =>
    h(
      "option",
      { value: one.id, selected: one === task },
      one.id === one.task ? one.id : `${one.id} (${one.task})`,
    );
  const choice = h("select", { onchange: () => choose(choice.value) }, served.tasks.map(option));
  const text = h("textarea", { rows: kind.second ? 4 : 6, value: state.text ?? example[0] });
  const second = h("textarea", { rows: 4, value: state.second ?? example[1] ?? "" });
  const area = h("div", { className: "stack" });
  const act = () => {
    remember({ task: task.id, text: text.value, ...(kind.second ? { second: second.value } : {}) });
    const input = kind.inputs(text.value, second.value);
    if (!input.length) {
      area.replaceChildren(h("p", { className: "empty card" }, say("nothing_to_predict")));
      return;
    }
    run(area, async (ask) => {
      const { data } = await ask(`v1/predict/${encodeURIComponent(task.id)}`, { input });
      return () => area.replaceChildren(shown(task, kind, data));
    });
  };
  const field = (name, element) => h("label", { className: "field" }, say(name), element);
  act();
  return h(
    "div",
    { className: "columns" },
    h(
      "form",
      { className: "card", onsubmit: (event) => (event.preventDefault(), act()) },
      field("task", choice),
      field(kind.first ?? (task.task === "coreference" ? "document" : "text"), text),
      kind.second && field(kind.second, second),
      h("div", { className: "bar" }, h("button", {}, say("predict")), copyLink()),
    ),
    area,
  );
}

function shown(task, kind, data) {
  const body = h(
    "div",
    { className: "found" },
    data.map((found) => h("article", {}, kind.draw(found))),
  );
  const head = h(
    "div",
    { className: "head" },
    h("h2", {}, task.id),
    saves(
      () => `elmokit-${task.id}`,
      () => drawn(body),
      () => table(data),
    ),
  );
  return h("section", { className: "card" }, head, body);
}

const labelColours = new Map();
function colour(label) {
  if (!labelColours.has(label)) labelColours.set(label, colourOf(labelColours.size));
  return labelColours.get(label);
}

const shares = (scores) =>
  h(
    "div",
    {},
    Object.entries(scores)
      .sort((a, b) => b[1] - a[1])
      .filter(([, share], rank) => rank < 2 || (rank < 6 && share >= 0.01))
      .map(([label, share]) => meter(label, share, share.toFixed(2))),
  );

function tagged({ text, tokens, tags, spans }) {
  if (spans.length || tags.every((tag) => tag === "O")) return [highlighted(text, spans)];
  const word = (token, n) =>
    h(
      "span",
      { className: "word", style: { background: `${colour(tags[n])}2e` } },
      token,
      h("small", {}, tags[n]),
    );
  return [h("div", { className: "words" }, tokens.map(word))];
}

function labelled({ text, scores }) {
  return [text && h("p", { className: "said" }, text), shares(scores)];
}

function framed({ text, frames }) {
  if (!frames.length)
    return [h("p", { className: "said" }, text), h("p", { className: "note" }, say("no_frames"))];
  return frames.flatMap((frame) => [h("h3", {}, frame.predicate), highlighted(text, frame.roles)]);
}

function clustered({ text, clusters }) {
  if (!clusters.length)
    return [h("p", { className: "said" }, text), h("p", { className: "note" }, say("no_clusters"))];
  const mentions = clusters.flatMap((cluster, n) => cluster.map((one) => ({ ...one, label: String(n + 1) })));
  const line = (cluster, n) =>
    h(
      "li",
      {},
      h(
        "span",
        { className: "value" },
        h("span", { className: "dot", style: { background: colour(String(n + 1)) } }),
        String(n + 1),
      ),
      h("span", {}, cluster.map((one) => one.text).join(" · ")),
    );
  return [highlighted(text, mentions), h("ol", { className: "uses" }, clusters.map(line))];
}

function paired(found) {
  const {
    premise,
    hypothesis,
    premise_tokens: columns,
    hypothesis_tokens: rows,
    scores,
    score,
    alignment,
  } = found;
  const line = (name, text) =>
    h("div", { className: "side" }, h("h3", {}, say(name)), h("p", { className: "said" }, text));
  const parts = [line("premise", premise), line("hypothesis_one", hypothesis)];
  parts.push(score == null ? shares(scores) : h("p", { className: "said" }, h("b", {}, score.toFixed(2))));
  if (rows.length && columns.length) {
    const map = heatMap({ rows, columns, value: (r, c) => alignment[r][c], label: say("attention") });
    parts.push(h("details", {}, h("summary", { className: "note" }, say("attention")), map.element));
  }
  return parts;
}

function answered({ question, passage, answer, candidates, no_answer: none }) {
  const span = answer ? [{ ...answer, label: "" }] : [];
  const meters = candidates
    .slice(0, 4)
    .map((one) => meter(one.text, one.probability, one.probability.toFixed(2)));
  if (none != null) meters.push(meter(say("no_answer"), none, none.toFixed(2)));
  return [h("h3", {}, question), highlighted(passage, span), h("div", {}, meters)];
}

function related({ text, entities, relations }) {
  const line = ({ head, tail, label, probability }) =>
    h(
      "div",
      {},
      h("h3", {}, `${entities[head].text} → ${entities[tail].text}`),
      meter(label, probability, probability.toFixed(2)),
    );
  const found = relations.length ? relations.map(line) : [h("p", { className: "note" }, say("no_relations"))];
  return [highlighted(text, entities), ...found];
}

function written({ source, source_tokens: columns, text, pieces: rows, attention, alternatives }) {
  const parts = [
    ...source.split("\t").map((turn) => h("p", { className: "note" }, turn)),
    h("p", { className: "said" }, text),
    ...alternatives.slice(0, 3).map((one) => h("p", { className: "note" }, `${one.text} (${one.score.toFixed(2)})`)),
  ];
  if (rows.length && columns.length) {
    const map = heatMap({ rows, columns, value: (r, c) => attention[r][c], label: say("piece_attention") });
    parts.push(h("details", {}, h("summary", { className: "note" }, say("piece_attention")), map.element));
  }
  return parts;
}

function raw(found) {
  return [h("pre", {}, JSON.stringify(found, null, 1))];
}

// The text with marked spans, which may lie inside each other.
function highlighted(text, spans) {
  const waiting = [...spans].sort((a, b) => a.start - b.start || b.end - a.end);
  const between = (from, to) => {
    const parts = [];
    let at = from;
    while (waiting.length && waiting[0].start < to) {
      const span = waiting.shift();
      if (span.start < at || span.end > to) continue; // two that cross cannot both be shown
      const style = {
        background: `${colour(span.label)}33`,
        boxShadow: `inset 0 -2px ${colour(span.label)}`,
      };
      const inside = between(span.start, span.end);
      const label = span.label ? h("b", {}, span.label) : null;
      parts.push(
        cut(text, at, span.start),
        h("span", { className: "span", style, title: span.probability?.toFixed(3) ?? "" }, inside, label),
      );
      at = span.end;
    }
    return [...parts, cut(text, at, to)];
  };
  return h("p", { className: "said" }, between(0, Infinity));
}

// A row for each span, label or answer.
function table(data) {
  const rows = data.flatMap((found, n) => {
    const { text, spans, scores, frames, clusters, candidates, question, tags, tokens, relations } = found;
    const of = (span, label, from) => [n + 1, from, label, span.text, span.start, span.end, span.probability];
    if (frames)
      return frames.flatMap((frame) => frame.roles.map((role) => of(role, role.label, frame.predicate)));
    if (clusters) return clusters.flatMap((cluster, c) => cluster.map((one) => of(one, c + 1, "")));
    if (relations)
      return relations.map((one) => {
        const [head, tail] = [found.entities[one.head], found.entities[one.tail]];
        return of({ ...tail, probability: one.probability }, one.label, head.text);
      });
    if (found.pieces) return [[n + 1, found.source, "", text, "", "", found.score]];
    if (candidates) return candidates.map((one) => of(one, "", question));
    const labels = Object.entries(scores ?? {}).map(([label, share]) => [
      n + 1,
      text ?? found.hypothesis,
      label,
      "",
      "",
      "",
      share,
    ]);
    const marked = (spans ?? []).map((span) => of(span, span.label, text));
    const words =
      spans?.length === 0
        ? tokens.map((token, t) => [
            n + 1,
            text,
            tags[t],
            token,
            ...found.offsets[t],
            found.tag_probabilities[t],
          ])
        : [];
    return [...labels, ...marked, ...words];
  });
  return [["input", "of", "label", "text", "start", "end", "probability"], ...rows];
}
