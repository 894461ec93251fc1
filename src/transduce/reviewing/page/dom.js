// Elements from plain values: texts are always text nodes, never markup.
export const find = (id) => document.getElementById(id);

export function make(tag, values = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(values)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map((child) => child instanceof Node ? child : String(child)));
  return element;
}

export function options(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => make("option", { value: key }, text)));
  select.value = value ?? "";
  return select;
}

// Screen readers announce what is written, also if it is the same.
export const write = (id, text) => { if (find(id).textContent !== text) find(id).textContent = text; };

// A problem is shown for some seconds; what is `done` stays until it is closed, so that there is time to read it.
let timer = 0;
export function say(text, done = false) {
  const box = find("message"), hide = () => box.classList.remove("shown");
  find("message-text").textContent = text;
  find("message-close").onclick = hide;
  box.classList.add("shown");
  box.classList.toggle("done", done);
  clearTimeout(timer);
  if (!done) timer = setTimeout(hide, 6000);
}

export function ask(title, body, action, run) {
  const dialog = find("dialog");
  const yes = make("button", { type: "button", class: "main", onclick: () => { dialog.close(); run(); } }, action);
  const no = make("button", { type: "button", onclick: () => dialog.close() }, run ? "Cancel" : "Close");
  dialog.replaceChildren(make("h2", { id: "dialog-title" }, title), body, make("div", { class: "row" }, run ? yes : null, no));
  dialog.showModal();
  (run ? yes : no).focus();
}

export const percent = (x) => `${Math.round(100 * x)} %`;
export const points = (x) => Math.round(100 * x) < 1 ? "less than +1 point" : `about +${Math.round(100 * x)} point${Math.round(100 * x) === 1 ? "" : "s"}`;
export const short = (text, n = 160) => text.length > n ? `${text.slice(0, n)}…` : text;
