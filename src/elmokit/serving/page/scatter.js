// Uses of a word as points that move from layer to layer.

import { colourOf, cut, inkOnHex, s, shorten, themeColour } from "./dom.js";

// A phone shows a smaller picture, not smaller letters.
const size = () =>
  innerWidth < 800 ? { width: 400, height: 380, margin: 34 } : { width: 720, height: 430, margin: 46 };

// `places` is layers × uses × (x, y) within ±1; returns the figure, and functions to move and choose.
export function scatter({ uses, places, senses, label, choose }) {
  const { width, height, margin } = size();
  const figure = s("svg", {
    class: "figure",
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": label,
  });
  const line = themeColour("line"),
    ink = themeColour("ink"),
    few = uses.length <= 24;
  figure.append(
    s("rect", {
      x: 1,
      y: 1,
      width: width - 2,
      height: height - 2,
      rx: 10,
      fill: themeColour("field"),
      stroke: line,
    }),
    s("path", {
      d: `M${width / 2} 14V${height - 14}M14 ${height / 2}H${width - 14}`,
      stroke: line,
      "stroke-dasharray": "3 5",
    }),
  );
  const trails = s("g", {});
  figure.append(trails);
  const moved = uses.map(() => [0, 0]);
  const at = (layer, n) => {
    const low = Math.floor(layer),
      high = Math.min(places.length - 1, low + 1),
      t = layer - low;
    const mix = (axis) => (1 - t) * places[low][n][axis] + t * places[high][n][axis];
    return [
      width / 2 + mix(0) * (width / 2 - (few ? 2.4 : 1) * margin) + moved[n][0],
      height / 2 - mix(1) * (height / 2 - margin) + moved[n][1],
    ];
  };
  let current = 0;
  const marks = uses.map((use, n) => {
    const colour = colourOf(senses.indexOf(use.sense)),
      radius = few ? 9 : uses.length > 300 ? 4 : 6;
    const mark = s(
      "g",
      { tabindex: n ? -1 : 0, role: "button", "aria-label": `${n + 1}: ${use.text}` },
      s("title", {}, use.text),
      s("circle", {
        r: radius,
        fill: colour,
        stroke: themeColour("card"),
        "stroke-width": 1.5,
        "fill-opacity": 0.92,
      }),
    );
    if (few) {
      mark.append(
        s(
          "text",
          { y: 3.5, "font-size": 10, "font-weight": 700, fill: inkOnHex(colour), "text-anchor": "middle" },
          String(n + 1),
        ),
        s("text", { class: "caption", x: 14, y: 4, "font-size": 12, fill: ink }, around(use)),
      );
    }
    mark.addEventListener("pointerdown", (event) => drag(event, n));
    mark.addEventListener("click", () => choose(n));
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Enter: 0, " ": 0 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const to = (n + step + uses.length) % uses.length;
      choose(to);
      marks[to].focus();
    });
    figure.append(mark);
    return mark;
  });
  function drag(event, n) {
    const scale = width / figure.getBoundingClientRect().width,
      [x, y] = [event.clientX, event.clientY],
      [dx, dy] = moved[n];
    marks[n].setPointerCapture(event.pointerId);
    const move = (now) => {
      moved[n] = [dx + (now.clientX - x) * scale, dy + (now.clientY - y) * scale];
      place(current);
    };
    marks[n].addEventListener("pointermove", move);
    const stop = () => marks[n].removeEventListener("pointermove", move);
    marks[n].addEventListener("lostpointercapture", stop, { once: true });
  }
  function place(layer) {
    current = layer;
    const spots = uses.map((_, n) => at(layer, n));
    spots.forEach(([x, y], n) =>
      marks[n].setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`),
    );
    if (few) placeCaptions(spots);
    trails.replaceChildren(
      ...(few
        ? uses.map((use, n) =>
            s("polyline", {
              fill: "none",
              stroke: colourOf(senses.indexOf(use.sense)),
              "stroke-opacity": 0.3,
              "stroke-width": 1.5,
              points: [...Array(Math.floor(layer) + 1).keys(), layer]
                .map((one) =>
                  at(one, n)
                    .map((v) => v.toFixed(1))
                    .join(","),
                )
                .join(" "),
            }),
          )
        : []),
    );
  }
  // A caption stands on that side of its point where nothing else is, or is left out.
  function placeCaptions(spots) {
    const taken = spots.map(([x, y]) => [x - 9, x + 9, y]);
    const isFree = ([left, right, y]) =>
      left > 4 &&
      right < width - 4 &&
      taken.every(([l, r, at]) => right < l || left > r || Math.abs(at - y) > 17);
    spots.forEach(([x, y], n) => {
      const caption = marks[n].querySelector(".caption"),
        wide = textWidth(caption.textContent);
      const sides = [
        [x + 13, x + 13 + wide, y],
        [x - 13 - wide, x - 13, y],
      ];
      const side = sides.findIndex(isFree);
      caption.setAttribute("visibility", side < 0 ? "hidden" : "visible");
      if (side < 0) return;
      caption.setAttribute("x", side ? -13 : 13);
      caption.setAttribute("text-anchor", side ? "end" : "start");
      taken.push(sides[side]);
    });
  }
  return {
    figure,
    place,
    mark(n) {
      marks.forEach((one, i) => {
        one.querySelector("circle").setAttribute("stroke", i === n ? ink : themeColour("card"));
        one.setAttribute("tabindex", i === n ? 0 : -1);
        one.setAttribute("aria-pressed", i === n);
      });
    },
  };
}

// Pixels of a text in letters of size 12, roughly.
const textWidth = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 12 : 6.6), 0);

// A few words around the word, without cutting words where there are blanks.
export function around(use) {
  const before = cut(use.text, 0, use.start),
    after = cut(use.text, use.end);
  const chinese = /[\u3400-\u9fff]/.test(use.text);
  const left = chinese ? before.slice(-4) : before.split(" ").slice(-3).join(" "),
    right = chinese ? after.slice(0, 5) : after.split(" ").slice(0, 4).join(" ");
  return shorten(left + use.word + right.replace(/[.。]$/, ""), chinese ? 14 : 32);
}
