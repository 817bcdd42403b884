// Elements, colours and heat maps: what all views share.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

// Okabe and Ito's colours, which most colour-blind people can tell apart.
export const COLOURS = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#d55e00",
  "#56b4e9",
  "#8f7ae5",
  "#7a7a7a",
];
export const colourOf = (number) => COLOURS[number % COLOURS.length];
// Letters that can be read on a colour.
const inkOn = ([r, g, b]) => (r * 299 + g * 587 + b * 114 > 140_000 ? "#1b1d29" : "#ffffff");
export const inkOnHex = (colour) => inkOn([1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
export const themeColour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";

// From the colour of the card to that of the accent; `share` is between 0 and 1.
export function shade(share, [r, g, b] = [51, 70, 200]) {
  const from = isDark() ? [27, 29, 39] : [255, 255, 255],
    to = isDark() ? [r + 70, g + 70, Math.min(255, b + 55)] : [r, g, b];
  const t = Math.max(0, Math.min(1, share));
  const mixed = from.map((value, i) => Math.round(value + t * (to[i] - value)));
  return { background: `rgb(${mixed})`, ink: inkOn(mixed) };
}

// Part of a text by code points, which is how the server counts.
export function cut(text, start, end) {
  return /[\ud800-\udfff]/.test(text) ? [...text].slice(start, end).join("") : text.slice(start, end);
}

export const cosine = (a, b) => {
  let dot = 0,
    x = 0,
    y = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    x += a[i] * a[i];
    y += b[i] * b[i];
  }
  return dot / Math.max(Math.sqrt(x * y), 1e-12);
};

export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// A matrix of coloured cells with labels; the numbers are also a table for screen readers.
export function heatMap({
  rows,
  columns,
  value,
  label,
  low = 0,
  high = 1,
  largest = 48,
  chosen = null,
  choose = null,
}) {
  const wide = (text) => [...text].reduce((w, c) => w + (c > "\u2e80" ? 12.5 : 7), 0);
  const short = (text, most = 100) => {
    while (wide(text) > most) text = shorten(text, text.length - 1);
    return text;
  };
  const names = rows.map((text) => short(text, 130)),
    heads = columns.map((text) => short(text));
  const left = Math.max(...names.map(wide)) + 14,
    slant = Math.min(110, Math.max(...heads.map(wide)) * 0.72 + 18);
  const size = Math.max(26, Math.min(largest, 640 / columns.length)),
    tall = Math.min(size, 40);
  const figure = s("svg", {
    class: `figure${columns.length > 9 ? " wide" : ""}`,
    viewBox: `0 0 ${left + size * columns.length + slant * 0.75} ${slant + tall * rows.length + 4}`,
    role: "img",
    "aria-label": label,
  });
  figure.style.maxWidth = `${1.15 * (left + size * columns.length + slant * 0.75)}px`; // letters stay as large as elsewhere
  const ink = themeColour("ink");
  columns.forEach((text, c) =>
    figure.append(
      s(
        "text",
        {
          x: 0,
          y: 0,
          "font-size": 12,
          fill: ink,
          transform: `translate(${left + size * (c + 0.5)} ${slant - 7}) rotate(-45)`,
        },
        heads[c],
      ),
    ),
  );
  rows.forEach((text, r) => {
    figure.append(
      s(
        "text",
        {
          x: left - 8,
          y: slant + tall * (r + 0.5) + 4,
          "font-size": 12,
          fill: ink,
          "text-anchor": "end",
          "font-weight": chosen === r ? 700 : 400,
        },
        names[r],
      ),
    );
    columns.forEach((other, c) => {
      const number = value(r, c),
        colour = shade((number - low) / (high - low));
      const cell = s(
        "g",
        {},
        s("title", {}, `${text} · ${other}: ${number.toFixed(3)}`),
        s("rect", {
          x: left + size * c + 1,
          y: slant + tall * r + 1,
          width: size - 2,
          height: tall - 2,
          rx: 4,
          fill: colour.background,
          stroke: themeColour("line"),
          "stroke-width": 0.5,
        }),
      );
      if (size >= 32)
        cell.append(
          s(
            "text",
            {
              x: left + size * (c + 0.5),
              y: slant + tall * (r + 0.5) + 4,
              "font-size": 11,
              "text-anchor": "middle",
              fill: colour.ink,
            },
            number
              .toFixed(2)
              .replace(/^(-?)0\./, "$1.")
              .replace("-", "−"),
          ),
        );
      if (choose) cell.addEventListener("click", () => choose(r, c));
      figure.append(cell);
    });
  });
  const table = h(
    "table",
    {},
    h("caption", {}, label),
    h(
      "tr",
      {},
      h("th"),
      columns.map((text) => h("th", { scope: "col" }, text)),
    ),
    rows.map((text, r) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, text),
        columns.map((_, c) => h("td", {}, value(r, c).toFixed(2))),
      ),
    ),
  );
  return {
    figure,
    element: h("div", { className: "scroll" }, figure, h("div", { className: "hidden" }, table)),
    rows: () => [
      ["", ...columns],
      ...rows.map((text, r) => [text, ...columns.map((_, c) => value(r, c).toFixed(4))]),
    ],
  };
}

export const meter = (label, share, value) =>
  h(
    "div",
    { className: "meter" },
    h("span", { title: label }, label),
    h(
      "div",
      { className: "track" },
      h("div", { className: "fill", style: { width: `${Math.max(1, 100 * share)}%` } }),
    ),
    h("span", { className: "value" }, value),
  );
