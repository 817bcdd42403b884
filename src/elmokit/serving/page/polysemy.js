import { colourOf, cut, h, heatMap, shorten } from "./dom.js";
import { copyLink } from "./main.js";
import { saves } from "./saving.js";
import { say } from "./sayings.js";
import { around, scatter } from "./scatter.js";

const EXAMPLES = {
  bank: [
    "The bank raised its interest rates.",
    "She works at a bank in the city.",
    "He borrowed money from the bank.",
    "They had a picnic on the bank of the river.",
    "The boat was tied to the bank of the stream.",
    "Trees grew along the muddy bank of the lake.",
  ],
  apple: [
    "She ate an apple after lunch.",
    "The apple fell from the old tree.",
    "He cut the apple into small pieces.",
    "Apple announced a new computer today.",
    "The shares of Apple rose after the report.",
    "Apple opened a new office in London.",
  ],
  bat: [
    "The bat flew out of the dark cave.",
    "A bat is the only mammal that can fly.",
    "At night a bat hunts for insects.",
    "He hit the ball with a wooden bat.",
    "The player swung the bat and scored.",
    "She bought a new baseball bat.",
  ],
  spring: [
    "In spring the snow begins to melt.",
    "Flowers bloom in early spring.",
    "The school opened in the spring of 1950.",
    "The metal spring in the clock is broken.",
    "A spring pushes the valve shut.",
    "The mattress has a broken spring.",
  ],
  苹果: [
    "他早上吃了一个苹果。",
    "树上的苹果已经红了。",
    "苹果含有丰富的维生素。",
    "苹果公司发布了新的手机。",
    "苹果的股价今天上涨了。",
    "他在苹果公司担任工程师。",
  ],
  杜鹃: [
    "杜鹃在树林里不停地叫。",
    "杜鹃把蛋产在其他鸟的巢里。",
    "一只杜鹃飞过了田野。",
    "山上的杜鹃花开得很红。",
    "花园里种满了杜鹃。",
    "杜鹃是常绿灌木，春天开花。",
  ],
};

const CONTEXT = 110;

export default function polysemy({ state, model, remember, run }) {
  const chinese = model?.language === "zh";
  const first = chinese ? "苹果" : "bank";
  const word = h("input", { type: "text", value: state.word ?? first, required: true, maxLength: 100 });
  const texts = h("textarea", { rows: 9, value: state.texts ?? EXAMPLES[first].join("\n") });
  const area = h("div", { className: "stack" });
  const chips = Object.keys(EXAMPLES)
    .filter((name) => /[\u3400-\u9fff]/.test(name) === chinese)
    .map((name) =>
      h(
        "button",
        {
          type: "button",
          className: "chip",
          onclick: () => {
            word.value = name;
            texts.value = EXAMPLES[name].join("\n");
            show();
          },
        },
        name,
      ),
    );
  const form = h(
    "form",
    {
      className: "card",
      onsubmit: (event) => {
        event.preventDefault();
        show();
      },
    },
    h("label", { className: "field" }, say("word"), word),
    h("div", { className: "chips", role: "group", "aria-label": say("examples") }, chips),
    h("label", { className: "field" }, say("sentences"), texts),
    h("div", { className: "bar" }, h("button", {}, say("show")), copyLink()),
  );

  function show(layer) {
    const input = texts.value
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    const isExample = EXAMPLES[word.value]?.join("\n") === texts.value;
    chips.forEach((chip) => chip.setAttribute("aria-pressed", chip.textContent === word.value && isExample));
    remember({ word: word.value, texts: texts.value });
    run(area, async (ask) => {
      const found = await ask("v1/uses", { model: model.id, word: word.value.trim(), input, most: 100 });
      return () => draw(area, found, layer ?? found.places.length - 1, remember);
    });
  }
  show(state.layer == null ? undefined : Number(state.layer));
  return h("div", { className: "columns" }, form, area);
}

function draw(area, found, layer, remember) {
  const top = found.places.length - 1,
    calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let chosen = 0,
    playing = false,
    at = Math.min(layer, top);
  const name = () => `elmokit-${found.word}`;
  const title = h("h2"),
    nearest = h("ol", { className: "uses" }),
    matrix = h("div"),
    hint = h("p", { className: "note" });
  const slider = h("input", {
    type: "range",
    min: 0,
    max: top,
    step: 0.01,
    value: at,
    "aria-label": say("layer"),
  });
  const output = h("output"),
    play = h("button", { type: "button", className: "quiet" }, say("play"));
  const map = scatter({
    uses: found.data,
    places: found.places,
    senses: found.senses,
    label: say("alike"),
    choose,
  });
  let heat;
  function choose(n) {
    chosen = n;
    map.mark(n);
    showNumbers();
  }
  function showNumbers() {
    const shown = Math.round(at),
      cosines = found.cosines[shown];
    title.textContent = say("map", shown);
    output.textContent = `${say("layer")} ${at.toFixed(1)}`;
    hint.textContent = shown === 0 ? say("alone") : say("map_hint");
    heat = heatMap({
      rows: found.data.map((use, n) => `${n + 1} ${around(use)}`),
      columns: found.data.map((_, n) => String(n + 1)),
      value: (r, c) => cosines[r][c],
      low: Math.min(0.3, ...cosines.flat()),
      high: 1,
      largest: 36,
      label: say("alike"),
      chosen,
      choose,
    });
    matrix.replaceChildren(heat.element);
    const order = found.data.map((_, n) => n).sort((a, b) => cosines[chosen][b] - cosines[chosen][a]);
    order.splice(order.indexOf(chosen), 1);
    order.unshift(chosen);
    nearest.replaceChildren(
      ...order
        .slice(0, 12)
        .map((n) =>
          useItem(
            found.data[n],
            found.senses,
            n === chosen ? `${n + 1}` : cosines[chosen][n].toFixed(2),
            n === chosen,
          ),
        ),
    );
  }
  function move(to) {
    at = to;
    slider.value = to;
    map.place(to);
    showNumbers();
  }
  slider.oninput = () => {
    playing = false;
    play.textContent = say("play");
    move(Number(slider.value));
    remember({ layer: Math.round(at) });
  };
  play.onclick = () => {
    playing = !playing;
    play.textContent = say(playing ? "pause" : "play");
    if (playing) animate(at >= top ? 0 : at, performance.now());
  };
  function animate(from, begun) {
    requestAnimationFrame((now) => {
      if (!playing) return;
      const to = Math.min(top, calm ? Math.ceil(from + 0.01) : from + (now - begun) / 1400);
      move(to);
      if (to < top) {
        calm ? setTimeout(() => animate(to, now), 900) : animate(from, begun);
      } else {
        playing = false;
        play.textContent = say("play");
      }
    });
  }
  area.replaceChildren(
    h(
      "section",
      { className: "card" },
      h(
        "div",
        { className: "head" },
        title,
        saves(
          name,
          () => map.figure,
          () => [
            ["use", "sense", "layer", "x", "y"],
            ...found.places.flatMap((places, l) =>
              places.map(([x, y], n) => [found.data[n].text, found.data[n].sense, l, x, y]),
            ),
          ],
        ),
      ),
      map.figure,
      h("div", { className: "bar" }, play, slider, output),
      hint,
      legend(found),
    ),
    h(
      "div",
      { className: "pair" },
      h(
        "section",
        { className: "card" },
        h(
          "div",
          { className: "head" },
          h("h2", {}, say("alike")),
          saves(
            () => `${name()}-cosines`,
            () => heat.figure,
            () => heat.rows(),
          ),
        ),
        matrix,
      ),
      h(
        "section",
        { className: "card" },
        h("div", { className: "head" }, h("h2", {}, say("nearest"))),
        nearest,
      ),
    ),
  );
  choose(0);
  move(at);
}

const senseName = (sense) => (/\d+/.test(sense) ? say("sense", sense.match(/\d+/)[0]) : say("all_uses"));

export const legend = (found) =>
  h(
    "div",
    { className: "legend" },
    found.senses.map((sense, n) =>
      h(
        "span",
        {},
        h("span", { className: "dot", style: { background: colourOf(n) } }),
        senseName(sense),
        ` (${found.data.filter((use) => use.sense === sense).length})`,
      ),
    ),
  );

export const useItem = (use, senses, value, self = false) =>
  h(
    "li",
    { className: self ? "self" : "" },
    h(
      "span",
      { className: "value" },
      h("span", { className: "dot", style: { background: colourOf(senses.indexOf(use.sense)) } }),
      value,
    ),
    h(
      "span",
      {},
      clipped(cut(use.text, 0, use.start), -1),
      h("mark", {}, use.word),
      clipped(cut(use.text, use.end), 1),
    ),
  );

// What is near the word; the whole of it is in the CSV.
function clipped(text, side) {
  if (text.length <= CONTEXT) return text;
  return side < 0 ? `…${text.slice(-CONTEXT)}` : `${text.slice(0, CONTEXT)}…`;
}
