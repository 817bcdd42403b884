// The frame: views, language, theme, model, and the state in the URL.

import { h } from "./dom.js";
import { ask, Refused } from "./server.js";
import { language, say, setLanguage } from "./sayings.js";
import corpus from "./corpus.js";
import languageModel from "./language.js";
import layers from "./layers.js";
import polysemy from "./polysemy.js";
import tasks from "./tasks.js";

const VIEWS = { polysemy, layers, language: languageModel, tasks, corpus };
const root = document.documentElement,
  main = document.getElementById("view");
let served = { data: [], tasks: [] };

function askKey() {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", required: true, autocomplete: "off" });
    const box = h(
      "dialog",
      {},
      h(
        "form",
        {
          method: "dialog",
          onsubmit: () => {
            resolve(field.value);
            box.remove();
          },
        },
        h("h2", {}, say("key_title")),
        h("label", { className: "field" }, say("key"), field),
        h("button", {}, say("enter")),
      ),
    );
    document.body.append(box);
    box.showModal();
  });
}

let hiding;
export function tell(message, bad = false) {
  const status = document.getElementById("status");
  status.textContent = message;
  status.className = `shown${bad ? " bad" : ""}`;
  clearTimeout(hiding);
  hiding = setTimeout(
    () => {
      status.className = "";
    },
    bad ? 8000 : 2500,
  );
}

// What a view gets: its state, requests, and how to remember a change.
function context(state) {
  const latest = new WeakMap(); // of each area, the number of its last request
  return {
    state,
    served,
    model: served.data.find((model) => model.id === state.model) ?? served.data[0],
    remember(changes) {
      Object.assign(state, changes);
      const kept = Object.entries(state).filter(
        ([name, value]) => name !== "view" && value !== "" && value != null,
      );
      history.replaceState(null, "", `#${state.view}?${new URLSearchParams(kept)}`);
    },
    // Runs work that asks the server; only the last one shows its result, and errors are told.
    async run(area, work) {
      const own = (latest.get(area) ?? 0) + 1;
      latest.set(area, own);
      area.dataset.wait = say("working");
      area.classList.add("busy");
      try {
        const show = await work((route, body, options) => ask(route, body, { askKey, ...options }));
        if (own === latest.get(area)) show?.();
      } catch (error) {
        if (!(error instanceof Refused || error instanceof TypeError)) throw error;
        tell(error.message, true);
        if (!area.querySelector(":scope > :not(.failed)"))
          area.replaceChildren(h("p", { className: "empty card failed" }, error.message));
      } finally {
        if (own === latest.get(area)) area.classList.remove("busy");
      }
    },
    tell,
  };
}

export const copyLink = () =>
  h(
    "button",
    {
      type: "button",
      className: "quiet",
      onclick: async () => {
        await navigator.clipboard?.writeText(location.href);
        tell(say("linked"));
      },
    },
    say("link"),
  );

function stateOfAddress() {
  const [view, rest] = location.hash.slice(1).split("?");
  return { ...Object.fromEntries(new URLSearchParams(rest ?? "")), view: view in VIEWS ? view : "polysemy" };
}

function show() {
  const state = stateOfAddress();
  setLanguage(state.lang ? Number(state.lang.startsWith("zh")) : language);
  document.title = `${say(state.view)} · elmokit`;
  for (const element of document.querySelectorAll("[data-say]"))
    element.textContent = say(element.dataset.say);
  document.getElementById("tabs").setAttribute("aria-label", say("views"));
  document
    .getElementById("tabs")
    .replaceChildren(
      ...Object.keys(VIEWS).map((name) =>
        h("a", { href: `#${name}`, ...(name === state.view ? { "aria-current": "page" } : {}) }, say(name)),
      ),
    );
  document.querySelector("#tabs [aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
  document.getElementById("switch-language").textContent = say("other_language");
  document.getElementById("switch-theme").textContent = say(root.dataset.theme === "dark" ? "light" : "dark");
  const given = context(state);
  const choice = document.getElementById("choose-model");
  choice.replaceChildren(
    ...served.data.map((model) =>
      h("option", { value: model.id, selected: model === given.model }, model.id),
    ),
  );
  choice.onchange = () => {
    location.hash = `#${state.view}?${new URLSearchParams({ model: choice.value })}`;
  };
  main.replaceChildren(
    h("h1", {}, say(`${state.view}_title`)),
    h("p", { className: "lead" }, say(`${state.view}_lead`)),
    VIEWS[state.view](given),
  );
}

document.getElementById("switch-language").onclick = () => {
  setLanguage(1 - language);
  const state = stateOfAddress();
  if (state.lang) {
    delete state.lang;
    const { view, ...rest } = state;
    history.replaceState(null, "", `#${view}?${new URLSearchParams(rest)}`);
  }
  show();
};
document.getElementById("switch-theme").onclick = () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("elmokit-theme", root.dataset.theme);
  show();
};
document.querySelector(".skip").onclick = (event) => {
  event.preventDefault(); // the address says which view it is
  main.focus();
};
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
});
root.dataset.theme =
  localStorage.getItem("elmokit-theme") ??
  (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
setLanguage(language);
try {
  served = await ask("v1/models", null, { askKey });
} catch (error) {
  tell(error.message, true);
}
show();
