import { h } from "./dom.js";
import { copyLink } from "./main.js";
import { legend, useItem } from "./polysemy.js";
import { download, saves } from "./saving.js";
import { say } from "./sayings.js";
import { scatter } from "./scatter.js";

const MOST_LINES = 3000,
  MOST_BYTES = 500_000; // what the server takes unless it is told otherwise
const PARAGRAPH = 400; // characters of a line that is more than a sentence
let file = null; // stays when the view is drawn again

export default function corpus({ state, model, remember, run, tell }) {
  const word = h("input", { type: "text", value: state.word ?? "", required: true, maxLength: 100 });
  const name = h(
    "p",
    { className: "note", role: "status" },
    file ? say("have_file", file.name, file.lines.length) : "",
  );
  const area = h("div", { className: "stack" }, h("p", { className: "empty card" }, say("map_comes")));
  const input = h("input", {
    type: "file",
    accept: ".txt,.md,.csv,.tsv,text/*",
    className: "hidden",
    onchange: () => take(input.files[0]),
  });
  const drop = h(
    "label",
    {
      className: "drop",
      ondragover: (event) => {
        event.preventDefault();
        drop.classList.add("over");
      },
      ondragleave: () => drop.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        drop.classList.remove("over");
        take(event.dataTransfer.files[0]);
      },
    },
    say("drop"),
    input,
  );
  const lineByLine = h("input", {
    type: "checkbox",
    checked: state.lines !== "0",
    onchange: () => remember({ lines: Number(lineByLine.checked) }),
  });
  async function take(chosen) {
    if (!chosen) return;
    file = { name: chosen.name, lines: (await chosen.text()).split(/\r?\n/).filter((line) => line.trim()) };
    name.textContent = say("have_file", file.name, file.lines.length);
    const lengths = file.lines.map((line) => line.length).sort((a, b) => a - b);
    lineByLine.checked = (lengths[lengths.length >> 1] ?? 0) < PARAGRAPH;
    if (word.value) act();
  }
  // Only lines with the word leave the browser.
  function body() {
    const wanted = word.value.trim(),
      having = file.lines.filter((line) => line.toLowerCase().includes(wanted.toLowerCase()));
    let size = 0;
    const input = having.slice(0, MOST_LINES).filter((line) => (size += new Blob([line]).size) <= MOST_BYTES);
    return [
      { model: model.id, word: wanted, input, split: !lineByLine.checked, most: 1000 },
      having.length - input.length,
    ];
  }
  function act() {
    if (!file) {
      tell(say("no_file"), true);
      return;
    }
    remember({ word: word.value });
    const [request, notSent] = body();
    if (!request.input.length) {
      tell(say("no_uses"), true);
      return;
    }
    run(area, async (ask) => {
      const found = await ask("v1/uses", request);
      const atlas = () =>
        run(area, async (again) => {
          const table = await again("v1/uses", request, { accept: "application/vnd.apache.parquet" });
          return () => download(`elmokit-${found.word}.parquet`, table);
        });
      return () => draw(area, found, atlas, notSent);
    });
  }
  return h(
    "div",
    { className: "columns" },
    h(
      "form",
      {
        className: "card",
        onsubmit: (event) => {
          event.preventDefault();
          act();
        },
      },
      drop,
      name,
      h("label", { className: "check" }, lineByLine, say("line_by_line")),
      h("label", { className: "field" }, say("word"), word),
      h("div", { className: "bar" }, h("button", {}, say("show")), copyLink()),
    ),
    area,
  );
}

function draw(area, found, atlas, notSent) {
  const list = h("ol", { className: "uses tall", tabIndex: 0 }),
    items = found.data.map((use) => useItem(use, found.senses, String(use.line)));
  list.append(...items);
  const map = scatter({
    uses: found.data,
    places: found.places,
    senses: found.senses,
    label: say("map_of"),
    choose: (n) => {
      map.mark(n);
      items.forEach((item, i) => item.classList.toggle("self", i === n));
      items[n].scrollIntoView({ block: "nearest" });
    },
  });
  map.place(found.places.length - 1);
  const rows = () => [
    ["line", "sense", "word", "text", "x", "y"],
    ...found.data.map((use, n) => [use.line, use.sense, use.word, use.text, ...found.places.at(-1)[n]]),
  ];
  const count =
    say("uses_found", found.data.length) +
    (found.left_out ? ` · ${say("left_out", found.left_out)}` : "") +
    (notSent ? ` · ${say("not_sent", notSent)}` : "");
  area.replaceChildren(
    h(
      "section",
      { className: "card" },
      h(
        "div",
        { className: "head" },
        h("h2", {}, say("map_of")),
        saves(
          () => `elmokit-${found.word}`,
          () => map.figure,
          rows,
        ),
        h("button", { type: "button", className: "quiet", onclick: atlas }, say("parquet")),
      ),
      map.figure,
      legend(found),
    ),
    h("section", { className: "card" }, h("div", { className: "head" }, h("h2", {}, count)), list),
  );
}
