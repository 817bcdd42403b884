// Figures, tables and files that can be saved.

import { h, s, themeColour } from "./dom.js";

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function csv(rows) {
  const cell = (value) =>
    /[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  return "\ufeff" + rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function standalone(figure) {
  const copy = figure.cloneNode(true);
  const [, , width, height] = figure.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.removeAttribute("class");
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
  const button = (label, save) =>
    h("button", { type: "button", className: "quiet", onclick: save, title: label }, label);
  return h(
    "div",
    { className: "saves" },
    figure && button("SVG", () => download(`${name()}.svg`, standalone(figure()).text, "image/svg+xml")),
    figure && button("PNG", () => savePicture(figure(), name())),
    rows && button("CSV", () => download(`${name()}.csv`, csv(rows()), "text/csv;charset=utf-8")),
  );
}

const MARGIN = 16;

// An element of the page as a figure: its coloured boxes, its words where they stand, and the figures in it.
export function drawn(element) {
  const page = element.getBoundingClientRect();
  const width = Math.ceil(page.width) + 2 * MARGIN;
  const figure = s("svg", { viewBox: `0 0 ${width} ${Math.ceil(page.height) + 2 * MARGIN}` });
  const place = (box) => ({
    x: box.left - page.left + MARGIN,
    y: box.top - page.top + MARGIN,
    width: box.width,
    height: box.height,
  });
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return words(node).forEach((word) => figure.append(word));
    if (node.classList.contains("hidden") || (node.checkVisibility && !node.checkVisibility())) return;
    const style = getComputedStyle(node);
    if (node.localName === "svg") {
      const copy = node.cloneNode(true);
      for (const [name, value] of Object.entries(place(node.getBoundingClientRect())))
        copy.setAttribute(name, value);
      copy.removeAttribute("style");
      figure.append(copy);
      return;
    }
    if (style.backgroundColor !== "rgba(0, 0, 0, 0)")
      for (const box of node.getClientRects())
        figure.append(
          s("rect", {
            ...place(box),
            rx: Math.min(parseFloat(style.borderRadius) || 0, box.height / 2),
            fill: style.backgroundColor,
          }),
        );
    node.childNodes.forEach(walk);
  };
  const words = (node) => {
    const style = getComputedStyle(node.parentElement),
      size = parseFloat(style.fontSize),
      range = document.createRange();
    return [...node.data.matchAll(/[\u2e80-\uffff]|[^\s\u2e80-\uffff]+/g)].map((match) => {
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const { x, y, height } = place(range.getBoundingClientRect());
      return s(
        "text",
        {
          x,
          y: y + height / 2 + 0.35 * size,
          "font-size": size,
          "font-weight": style.fontWeight,
          fill: style.color,
        },
        match[0],
      );
    });
  };
  walk(element);
  return figure;
}
