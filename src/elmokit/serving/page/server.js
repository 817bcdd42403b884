// Requests to the server, which are the only requests that this page makes.

let key = sessionStorage.getItem("elmokit-key");

export class Refused extends Error {}

export async function ask(route, body, { accept = "application/json", askKey } = {}) {
  const headers = { Accept: accept };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(route, {
    method: body ? "POST" : "GET",
    headers,
    body: body && JSON.stringify(body),
  });
  if (answer.status === 401 && askKey) {
    key = await askKey();
    sessionStorage.setItem("elmokit-key", key);
    return ask(route, body, { accept, askKey });
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Refused(problem.error?.message ?? `${answer.status} ${answer.statusText}`);
  }
  return accept === "application/json" ? answer.json() : answer.blob();
}

export function floats(base64) {
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}
