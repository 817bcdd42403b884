// Elements, colours and files: what all views share.

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
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8f7ae5", "#7a7a7a"];
export const colourOf = (number) => COLOURS[number % COLOURS.length];
export const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";

// From the colour of the card to that of the accent; `share` is between 0 and 1.
export function shade(share, [r, g, b] = [51, 70, 200]) {
  const from = isDark() ? [27, 29, 39] : [255, 255, 255], to = isDark() ? [r + 70, g + 70, Math.min(255, b + 55)] : [r, g, b];
  const t = Math.max(0, Math.min(1, share));
  const mixed = from.map((value, i) => Math.round(value + t * (to[i] - value)));
  const light = (mixed[0] * 299 + mixed[1] * 587 + mixed[2] * 114) / 1000;
  return { background: `rgb(${mixed})`, ink: light > 140 ? "#1b1d29" : "#ffffff" };
}

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function csv(rows) {
  const cell = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return "\ufeff" + rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function standalone(figure) {
  const copy = figure.cloneNode(true), [, , width, height] = figure.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width); copy.setAttribute("height", height);
  copy.setAttribute("font-family", "system-ui, sans-serif"); copy.removeAttribute("class");
  copy.prepend(s("rect", { width, height, fill: themeColour("card") }));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function savePicture(figure, name) {
  const { text, width, height } = standalone(figure);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  canvas.toBlob((blob) => download(`${name}.png`, blob));
}

// Buttons that save a figure; `figure` and `rows` are functions, since both change.
export function saves(name, figure, rows) {
  const button = (label, save) => h("button", { type: "button", className: "quiet", onclick: save, title: label }, label);
  return h("div", { className: "saves" },
    figure && button("SVG", () => download(`${name()}.svg`, standalone(figure()).text, "image/svg+xml")),
    figure && button("PNG", () => savePicture(figure(), name())),
    rows && button("CSV", () => download(`${name()}.csv`, csv(rows()), "text/csv;charset=utf-8")));
}

export const cosine = (a, b) => {
  let dot = 0, x = 0, y = 0;
  for (let i = 0; i < a.length; i++) { dot += a[i] * b[i]; x += a[i] * a[i]; y += b[i] * b[i]; }
  return dot / Math.max(Math.sqrt(x * y), 1e-12);
};

export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// A matrix of coloured cells with labels; the numbers are also a table for screen readers.
export function heatMap({ rows, columns, value, label, low = 0, high = 1, chosen = null, choose = null }) {
  const wide = (text) => [...text].reduce((w, c) => w + (c > "\u2e80" ? 12.5 : 7), 0);
  const short = (text) => { while (wide(text) > 100) text = shorten(text, text.length - 1); return text; };
  const left = Math.min(150, Math.max(...rows.map(short).map(wide)) + 14), slant = Math.min(110, Math.max(...columns.map(short).map(wide)) * 0.72 + 18);
  const size = Math.max(26, Math.min(62, 640 / columns.length)), tall = Math.min(size, 40);
  const figure = s("svg", { class: `figure${columns.length > 9 ? " wide" : ""}`, viewBox: `0 0 ${left + size * columns.length + slant * 0.75} ${slant + tall * rows.length + 4}`, role: "img", "aria-label": label });
  figure.style.maxWidth = `${1.15 * (left + size * columns.length + slant * 0.75)}px`; // letters stay as large as elsewhere
  const ink = themeColour("ink");
  columns.forEach((text, c) => figure.append(s("text", { x: 0, y: 0, "font-size": 12, fill: ink, transform: `translate(${left + size * (c + 0.5)} ${slant - 7}) rotate(-45)` }, short(text))));
  rows.forEach((text, r) => {
    figure.append(s("text", { x: left - 8, y: slant + tall * (r + 0.5) + 4, "font-size": 12, fill: ink, "text-anchor": "end", "font-weight": chosen === r ? 700 : 400 }, short(text)));
    columns.forEach((other, c) => {
      const number = value(r, c), colour = shade((number - low) / (high - low));
      const cell = s("g", {}, s("title", {}, `${text} · ${other}: ${number.toFixed(3)}`),
        s("rect", { x: left + size * c + 1, y: slant + tall * r + 1, width: size - 2, height: tall - 2, rx: 4, fill: colour.background, stroke: themeColour("line"), "stroke-width": 0.5 }));
      if (size >= 32) cell.append(s("text", { x: left + size * (c + 0.5), y: slant + tall * (r + 0.5) + 4, "font-size": 11, "text-anchor": "middle", fill: colour.ink }, number.toFixed(2).replace(/^(-?)0\./, "$1.")));
      if (choose) cell.addEventListener("click", () => choose(r, c));
      figure.append(cell);
    });
  });
  const table = h("table", {}, h("caption", {}, label), h("tr", {}, h("th"), columns.map((text) => h("th", { scope: "col" }, text))),
    rows.map((text, r) => h("tr", {}, h("th", { scope: "row" }, text), columns.map((_, c) => h("td", {}, value(r, c).toFixed(2))))));
  return { figure, element: h("div", { className: "scroll" }, figure, h("div", { className: "hidden" }, table)), rows: () => [["", ...columns], ...rows.map((text, r) => [text, ...columns.map((_, c) => value(r, c).toFixed(4))])] };
}

export const meter = (label, share, value) => h("div", { className: "meter" }, h("span", { title: label }, label),
  h("div", { className: "track" }, h("div", { className: "fill", style: { width: `${Math.max(1, 100 * share)}%` } })), h("span", { className: "value" }, value));
