import { h, meter, shade } from "./dom.js";
import { copyLink } from "./main.js";
import { drawn, saves } from "./saving.js";
import { say } from "./sayings.js";

const EXAMPLES = {
  en: {
    text: "The chef cooked a delicious motorcycle for dinner.",
    gap: "The [MASK] raised its interest rates .",
    prompt: "The president of the",
  },
  zh: { text: "他昨天在图书馆吃了一本汽车。", gap: "他在[MASK]京大学读书。", prompt: "今天天气" },
};
const NATS_TO_BITS = 1 / Math.LN2;

export default function language({ state, model, remember, run }) {
  if (!model?.language_model) return h("p", { className: "empty card" }, say("no_lm"));
  const example = EXAMPLES[model.language] ?? EXAMPLES.en;
  return h(
    "div",
    { className: "stack" },
    surprise({ state, model, remember, run }, example),
    gaps({ state, model, remember, run }, example),
    completion({ state, model, remember, run }, example),
  );
}

function panel(title, field, button, area, act, ...more) {
  return h(
    "section",
    { className: "card stack" },
    h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          act();
        },
      },
      h("div", { className: "head" }, h("h2", {}, title)),
      field,
      more,
      h("div", { className: "bar" }, h("button", {}, button), copyLink()),
    ),
    area,
  );
}

function surprise({ state, model, remember, run }, example) {
  const text = h("input", { type: "text", value: state.text ?? example.text }),
    area = h("div");
  const act = () => {
    remember({ text: text.value });
    run(area, async (ask) => {
      const {
        data: [found],
      } = await ask("v1/score", { model: model.id, input: text.value });
      return () => area.replaceChildren(...words(found));
    });
  };
  act();
  return panel(
    say("surprise"),
    h("label", { className: "field" }, say("sentence"), text),
    say("show"),
    area,
    act,
  );
}

function words(found) {
  const bits = found.surprises.map((value) => value * NATS_TO_BITS),
    most = Math.max(14, ...bits);
  const list = h(
    "div",
    { className: "words", role: "list" },
    found.tokens.map((token, n) => {
      const colour = shade((0.95 * Math.max(0, bits[n] - 1)) / most, [200, 68, 40]);
      const tip = `${token}: ← ${(-found.forward[n] * NATS_TO_BITS).toFixed(1)} · ${(-found.backward[n] * NATS_TO_BITS).toFixed(1)} →${found.known[n] ? "" : ` (${say("unknown")})`}`;
      return h(
        "span",
        {
          className: "word",
          role: "listitem",
          title: tip,
          "aria-label": `${token}, ${say("bits", bits[n].toFixed(1))}`,
          style: { background: colour.background, color: colour.ink },
        },
        token + (found.known[n] ? "" : "?"),
        h("small", {}, bits[n].toFixed(1)),
      );
    }),
  );
  const rows = () => [
    ["word", "bits", "forward_log", "backward_log", "known"],
    ...found.tokens.map((token, n) => [
      token,
      bits[n].toFixed(3),
      found.forward[n],
      found.backward[n],
      found.known[n],
    ]),
  ];
  return [
    list,
    h(
      "div",
      { className: "bar" },
      h(
        "p",
        { className: "note", style: { flex: 1 } },
        say("surprise_hint", found.perplexity?.toFixed(0) ?? "∞"),
      ),
      saves(
        () => "elmokit-surprise",
        () => drawn(list),
        rows,
      ),
    ),
  ];
}

function gaps({ state, model, remember, run }, example) {
  const text = h("input", { type: "text", value: state.gap ?? example.gap }),
    area = h("div", { className: "stack" });
  const act = () => {
    remember({ gap: text.value });
    run(area, async (ask) => {
      const sides = [
        ["left", "forward", "forward"],
        ["both", "both", "probability"],
        ["right", "backward", "backward"],
      ];
      const found = await Promise.all(
        sides.map(([, by]) => ask("v1/fill", { model: model.id, input: text.value, top: 8, by })),
      );
      const rows = () => [
        ["gap", "side", "word", "probability"],
        ...sides.flatMap(([, by, field], n) =>
          found[n].data.flatMap((words, gap) => words.map((one) => [gap + 1, by, one.word, one[field]])),
        ),
      ];
      const shown = h(
        "div",
        { className: "stack" },
        found[0].data.map((_, gap) =>
          h(
            "div",
            {},
            found[0].data.length > 1 ? h("p", { className: "note" }, say("gap", gap + 1)) : null,
            h(
              "div",
              { className: "three" },
              sides.map(([side, , field], n) => {
                const words = found[n].data[gap],
                  most = words[0][field];
                return h(
                  "div",
                  {},
                  h("h3", {}, say(side)),
                  words.map((one) =>
                    meter(one.word, one[field] / most, `${(100 * one[field]).toFixed(1)} %`),
                  ),
                );
              }),
            ),
          ),
        ),
      );
      return () =>
        area.replaceChildren(
          shown,
          h(
            "div",
            { className: "bar end" },
            saves(
              () => "elmokit-gaps",
              () => drawn(shown),
              rows,
            ),
          ),
        );
    });
  };
  act();
  return panel(
    say("fill"),
    h("label", { className: "field" }, say("fill_field"), text),
    say("show"),
    area,
    act,
  );
}

function completion({ state, model, remember, run }, example) {
  const prompt = h("input", { type: "text", value: state.prompt ?? example.prompt }),
    area = h("p", { className: "said" });
  const output = h("output", {}, state.temperature ?? "0.7");
  const temperature = h("input", {
    type: "range",
    min: 0,
    max: 1.5,
    step: 0.1,
    value: state.temperature ?? 0.7,
    oninput: () => {
      output.textContent = temperature.value;
    },
  });
  const act = () => {
    remember({ prompt: prompt.value, temperature: temperature.value });
    run(area, async (ask) => {
      const found = await ask("v1/generate", {
        model: model.id,
        prompt: prompt.value,
        temperature: Number(temperature.value),
        max_tokens: 40,
      });
      const blank = model.language === "zh" ? "" : " ";
      return () =>
        area.replaceChildren(
          found.tokens.slice(0, found.prompt_tokens).join(blank) + blank,
          h("span", { className: "new" }, found.tokens.slice(found.prompt_tokens).join(blank)),
        );
    });
  };
  act();
  return panel(
    say("complete"),
    h("label", { className: "field" }, say("prompt"), prompt),
    say("again"),
    area,
    act,
    h("label", { className: "bar" }, h("span", {}, say("temperature")), temperature, output),
  );
}
