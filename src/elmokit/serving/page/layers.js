import { cosine, h, heatMap, meter } from "./dom.js";
import { copyLink } from "./main.js";
import { floats } from "./server.js";
import { saves } from "./saving.js";
import { say } from "./sayings.js";

const EXAMPLES = {
  en: [
    "The old man the boat on the bank of the river.",
    "Time flies like an arrow.",
    "She will play the lead in a new play.",
  ],
  zh: ["他在银行门口等人。", "花园里的杜鹃开花了。"],
};

export default function layers({ state, model, remember, run }) {
  const examples = EXAMPLES[model?.language] ?? EXAMPLES.en;
  const text = h("textarea", { rows: 3, value: state.text ?? examples[0] });
  const area = h("div", { className: "stack" });
  const show = () => {
    remember({ text: text.value });
    run(area, async (ask) => {
      const {
        data: [found],
      } = await ask("v1/tokens", {
        model: model.id,
        input: text.value,
        layers: "all",
        encoding_format: "base64",
      });
      return () => draw(area, found, state, remember);
    });
  };
  const form = h(
    "form",
    {
      className: "card",
      onsubmit: (event) => {
        event.preventDefault();
        show();
      },
    },
    h("label", { className: "field" }, say("sentence"), text),
    h(
      "div",
      { className: "chips", role: "group", "aria-label": say("examples") },
      examples.map((one) =>
        h(
          "button",
          {
            type: "button",
            className: "chip",
            onclick: () => {
              text.value = one;
              show();
            },
          },
          one,
        ),
      ),
    ),
    h("div", { className: "bar" }, h("button", {}, say("show")), copyLink()),
  );
  show();
  return h("div", { className: "stack" }, form, area);
}

function draw(area, found, state, remember) {
  const [count, length, dim] = found.shape;
  if (!length) {
    area.replaceChildren();
    return;
  }
  const all = floats(found.vectors);
  const vector = (layer, token) =>
    all.subarray((layer * length + token) * dim, (layer * length + token + 1) * dim);
  const tokens = found.tokens,
    given = (state.w ?? "").split(",").map(Number);
  const w = given.length === count && given.every(Number.isFinite) ? given : Array(count).fill(0);
  let gamma = Number(state.gamma ?? 1);
  // The longest word has most to say; another one is chosen by a click or from the list.
  let chosen = Math.min(
      Number(
        state.token ?? tokens.reduce((best, token, t) => (token.length > tokens[best].length ? t : best), 0),
      ),
      length - 1,
    ),
    heat;
  const heatTitle = h("h2"),
    heatArea = h("div");
  const choice = h(
    "select",
    { "aria-label": say("compare"), onchange: () => compare(Number(choice.value)) },
    tokens.map((token, t) => h("option", { value: t }, `${t + 1} ${token}`)),
  );
  function compare(token) {
    chosen = token;
    choice.value = token;
    heatTitle.textContent = say("heat", tokens[token]);
    heat = heatMap({
      rows: Array.from({ length: count }, (_, l) => say("share", l)),
      columns: tokens,
      value: (l, t) => cosine(vector(l, t), vector(l, chosen)),
      label: say("heat", tokens[token]),
      choose: (_, t) => compare(t),
    });
    heatArea.replaceChildren(heat.element);
    remember({ token });
  }
  const matrix = h("div"),
    shares = h("div"),
    size = h("p", { className: "note" });
  let pairs;
  function update() {
    const exp = w.map((value) => Math.exp(value - Math.max(...w))),
      sum = exp.reduce((a, b) => a + b),
      s = exp.map((value) => value / sum);
    const mixed = tokens.map((_, t) => {
      const out = new Float32Array(dim);
      s.forEach((share, l) =>
        vector(l, t).forEach((x, d) => {
          out[d] += gamma * share * x;
        }),
      );
      return out;
    });
    pairs = heatMap({
      rows: tokens,
      columns: tokens,
      value: (r, c) => cosine(mixed[r], mixed[c]),
      largest: 36,
      label: say("pairs"),
      low: 0,
      high: 1,
    });
    matrix.replaceChildren(pairs.element);
    shares.replaceChildren(
      ...s.map((share, l) => meter(say("share", l), share, `${(100 * share).toFixed(0)} %`)),
    );
    const mean = mixed.reduce((total, one) => total + Math.hypot(...one), 0) / Math.max(1, mixed.length);
    size.textContent = `${say("mean_length")}: ${mean.toFixed(2)}. ${say("mix_hint")}`;
  }
  const slider = (name, value, low, high, set) => {
    const output = h("output", {}, value.toFixed(2));
    return h(
      "label",
      { className: "bar" },
      h("span", {}, name),
      h("input", {
        type: "range",
        min: low,
        max: high,
        step: 0.05,
        value,
        "aria-label": name,
        oninput: (event) => {
          set(Number(event.target.value));
          output.textContent = Number(event.target.value).toFixed(2);
          update();
          remember({ w: w.join(","), gamma });
        },
      }),
      output,
    );
  };
  const controls = h(
    "form",
    {},
    w.map((value, l) =>
      slider(`w${"₀₁₂₃₄₅₆₇₈₉"[l] ?? l}`, value, -5, 5, (now) => {
        w[l] = now;
      }),
    ),
    slider("γ", gamma, 0, 3, (now) => {
      gamma = now;
    }),
  );
  area.replaceChildren(
    h(
      "section",
      { className: "card" },
      h(
        "div",
        { className: "head" },
        heatTitle,
        h("label", { className: "quiet" }, choice),
        saves(
          () => "elmokit-layers",
          () => heat.figure,
          () => heat.rows(),
        ),
      ),
      heatArea,
    ),
    h(
      "div",
      { className: "pair" },
      h(
        "section",
        { className: "card" },
        h("div", { className: "head" }, h("h2", {}, say("mix")), h("code", {}, say("mix_formula"))),
        h("div", { className: "stack" }, controls, shares, size),
      ),
      h(
        "section",
        { className: "card" },
        h(
          "div",
          { className: "head" },
          h("h2", {}, say("pairs")),
          saves(
            () => "elmokit-pairs",
            () => pairs.figure,
            () => pairs.rows(),
          ),
        ),
        matrix,
      ),
    ),
  );
  compare(chosen);
  update();
}
