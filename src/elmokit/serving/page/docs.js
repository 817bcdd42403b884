// The routes, as the OpenAPI schema describes them, with a form to try each.

import { h } from "./dom.js";
import { language, say, setLanguage } from "./sayings.js";

setLanguage(language);
document.documentElement.dataset.theme =
  localStorage.getItem("elmokit-theme") ??
  (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const schema = await (await fetch("openapi.json")).json();
const named = (reference) => schema.components.schemas[reference.split("/").at(-1)];
const kind = (field) =>
  field.enum?.join(" | ") ??
  field.type ??
  field.anyOf?.map(kind).join(" | ") ??
  (field.$ref ? named(field.$ref).title : (field.const ?? ""));

function route(path, method, about) {
  const reference = about.requestBody?.content["application/json"].schema.$ref,
    body = reference && named(reference);
  const field =
    body &&
    h("textarea", {
      rows: 8,
      value: JSON.stringify(body.examples?.[0] ?? {}, null, 2),
      "aria-label": say("body"),
    });
  const place = h("input", { type: "text", value: path, "aria-label": "path" }),
    answer = h("pre", { hidden: true });
  const send = async () => {
    const headers = field ? { "Content-Type": "application/json" } : {},
      key = sessionStorage.getItem("elmokit-key");
    if (key) headers.Authorization = `Bearer ${key}`;
    const found = await fetch(place.value.slice(1), {
      method: method.toUpperCase(),
      headers,
      body: field?.value,
    });
    answer.hidden = false;
    const text = await found.text();
    answer.textContent = `${found.status} ${found.statusText}\n${text.slice(0, 4000)}${text.length > 4000 ? " …" : ""}`;
  };
  return h(
    "details",
    { className: "route" },
    h(
      "summary",
      {},
      h("span", { className: "verb" }, method.toUpperCase()),
      h("code", {}, path),
      h("span", { className: "note" }, about.summary),
    ),
    body && h("p", { className: "note" }, body.description ?? ""),
    body &&
      h(
        "table",
        { className: "schema" },
        Object.entries(body.properties).map(([name, one]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("code", {}, name), body.required?.includes(name) ? " *" : ""),
            h("td", {}, h("code", {}, kind(one))),
            h("td", {}, one.description ?? ""),
          ),
        ),
      ),
    h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          send();
        },
      },
      path.includes("{") ? place : null,
      field,
      h("div", { className: "bar" }, h("button", {}, say("try"))),
    ),
    answer,
  );
}

document.getElementById("view").append(
  h("h1", {}, say("docs_title")),
  h(
    "p",
    { className: "lead" },
    say("docs_lead"),
    " ",
    h("a", { href: "openapi.json" }, "openapi.json"),
    " · ",
    h("a", { href: "./" }, say("back")),
  ),
  h(
    "div",
    { className: "card" },
    Object.entries(schema.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, about]) => route(path, method, about)),
    ),
  ),
);
