// Classes: a tree with numbers, believed sizes and sizes to edit; classes are added, renamed and merged.
import { post } from "./api.js";
import { ask, find, make, say } from "./dom.js";

export class ClassesView {
  constructor(app) {
    Object.assign(this, { app, typed: new Map() });
    this.body = make("tbody", {});
    this.name = make("input", { type: "text", placeholder: "New class, or branch/class", "aria-label": "New class", class: "grow", onkeydown: (event) => { if (event.key === "Enter") this.add(); } });
    this.preview = make("span", { role: "status" });
    const head = ["Class", "Labels", "Proposed", "Believed", "Size", "Change"].map((text, k) => make("th", { scope: "col", class: [1, 2, 3].includes(k) ? "number" : null }, text));
    find("classes").append(
      make("div", { class: "row" }, this.name, make("button", { type: "button", onclick: () => this.add() }, "Add class")),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), this.body)),
      make("p", {}, "Labels: those of the file and those decided here. Believed: documents without a decision that are of the class, with a 90 % interval. State a size where you know better: 20%, 10%:30%, or =120 for exactly so many."),
      make("div", { class: "row" }, make("button", { type: "button", onclick: () => this.tryOut() }, "See what sizes would change"), make("button", { type: "button", class: "main", onclick: () => this.use() }, "Use these sizes"), this.preview));
  }

  update(state, changed) { if (changed && !(document.activeElement.matches("input") && this.body.contains(document.activeElement))) this.show(state); }

  show(state) {
    const rows = [], open = [];
    for (const one of state.classes) {
      const parts = one.name.split("/");
      parts.slice(0, -1).forEach((part, depth) => {
        const path = parts.slice(0, depth + 1).join("/");
        if (open[depth] === path) return;
        open.length = depth;
        open[depth] = path;
        if (!state.classes.some((other) => other.name === path)) rows.push(this.branch(path, depth, state));
      });
      rows.push(this.row(one, parts.length - 1));
    }
    this.body.replaceChildren(...rows);
  }

  label(name, depth) {
    const cell = make("th", { scope: "row", title: name }, name.split("/").at(-1));
    cell.style.paddingLeft = `${.6 + 1.2 * depth}rem`;
    return cell;
  }

  branch(path, depth, state) {
    const inside = state.classes.filter((one) => one.name.startsWith(`${path}/`)), sum = (key) => inside.reduce((total, one) => total + one[key], 0);
    return make("tr", { class: "branch" }, this.label(path, depth), make("td", { class: "number" }, sum("decided")), make("td", { class: "number" }, sum("proposed")),
      make("td", { class: "number" }), make("td", {}), make("td", {}, this.button("Rename", `Rename ${path}`, () => this.rename(path))));
  }

  row(one, depth) {
    const believed = one.believed ? `${one.believed[0]} (${one.believed[1]} to ${one.believed[2]})` : "–";
    return make("tr", {}, this.label(one.name, depth), make("td", { class: "number" }, one.decided), make("td", { class: "number" }, one.proposed), make("td", { class: "number" }, believed),
      make("td", {}, make("input", { type: "text", value: this.typed.get(one.name) ?? one.size ?? "", oninput: (event) => this.typed.set(one.name, event.target.value), "data-name": one.name, "aria-label": `Size of ${one.name}`, placeholder: "estimated" })),
      make("td", {}, this.button("Rename", `Rename ${one.name}`, () => this.rename(one.name)), " ", this.button("Merge", `Merge ${one.name} into another class`, () => this.merge(one.name))));
  }

  button(text, label, onclick) { return make("button", { type: "button", "aria-label": label, onclick }, text); }

  add() {
    const name = this.name.value.trim();
    if (!name) return;
    this.app.outbox.add({ op: "add_class", name });
    this.name.value = "";
  }

  rename(name) {
    const input = make("input", { type: "text", value: name, "aria-label": "New name" });
    ask(`Rename ${name}`, input, "Rename", () => { if (input.value.trim() && input.value.trim() !== name) this.app.outbox.add({ op: "rename_class", name, to: input.value.trim() }); });
    input.focus();
    input.select();
  }

  merge(name) {
    const select = this.app.classSelect("Merge into");
    ask(`Merge ${name} into another class`, make("p", {}, "All its decisions are kept, as decisions for ", select), "Merge", () => { if (select.value) this.app.outbox.add({ op: "merge_class", name, into: select.value.slice(1) }); });
  }

  sizes() {
    const found = {};
    for (const input of this.body.querySelectorAll("input[data-name]")) if (input.value.trim()) found[input.dataset.name] = input.value.trim();
    return found;
  }

  async tryOut() {
    try {
      const found = await post("sizes", { sizes: this.sizes() });
      const counts = Object.entries(found.counts).slice(0, 12).map(([name, n]) => `${name} ${n}`).join(", ");
      this.preview.textContent = `${found.changed} proposals would change: ${counts}.`;
    } catch (error) { say(error.message); }
  }

  use() {
    this.app.outbox.add({ op: "sizes", sizes: this.sizes() });
    this.typed.clear();
    this.preview.textContent = "";
  }
}
