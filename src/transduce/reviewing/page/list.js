// Lists of documents by search and filters, and decisions about all of them at once.
import { newId, post } from "./api.js";
import { ask, find, make, options, percent, say, short } from "./dom.js";

const PAGE = 20;

export class BulkBar {
  constructor(app, how, done) {
    Object.assign(this, { app, how, done, found: null });
    this.total = make("strong", { role: "status" });
    this.classes = app.classSelect("Class for all");
    this.button = make("button", { type: "button", class: "main", onclick: () => this.confirm() }, "Decide all…");
    this.element = make("div", { class: "row" }, this.total, this.classes, this.button);
  }

  update() {
    const key = this.app.names.join("\n");
    if (this.key === key) return;
    this.key = key;
    options(this.classes, [["", "Class…"], ["none", "None of these"], ...this.app.names.map((name) => [`=${name}`, name])], this.classes.value);
  }

  show(found) {
    if (!found) return;
    this.found = found;
    this.total.textContent = found.total === 1 ? "1 document" : `${found.total} documents`;
    this.button.disabled = !found.total;
  }

  confirm() {
    const choice = this.classes.value;
    if (!choice || !this.found) { say("Choose a class for these documents first."); return; }
    const label = choice === "none" ? null : choice.slice(1), sample = this.found.sample;
    const body = make("div", {}, make("p", {}, `A random sample of ${this.total.textContent}. Those that have a decision keep it.`), make("ul", {}, ...sample.map((text) => make("li", {}, text))));
    ask(`Decide ${this.total.textContent} as ${label ?? "none of these"}?`, body, "Decide all", () => this.send(label));
  }

  async send(label) {
    try {
      const id = newId(), answer = await post("bulk", { selection: this.found.selection, label, how: this.how(), id });
      this.app.note({ op: "bulk", id });
      this.app.show(answer.state);
      say(`Decided ${answer.done[0]}. Undo takes it back.`);
      this.app.views.queue.reload();
      this.done();
    } catch (error) { say(error.message); }
  }
}

export class DocumentList {
  constructor(app) {
    Object.assign(this, { app, offset: 0, filter: null });
    this.items = make("ul", { class: "documents" });
    this.place = make("span", {});
    this.element = make("div", {}, this.items, make("div", { class: "row" },
      make("button", { type: "button", onclick: () => this.turn(-PAGE) }, "Earlier"), this.place, make("button", { type: "button", onclick: () => this.turn(PAGE) }, "Later")));
  }

  // Returns nothing if another list was asked for in the meantime.
  async load(filter, offset = 0) {
    const asked = this.asked = {}, found = await post("documents", { filter, offset, n: PAGE });
    if (asked !== this.asked) return null;
    Object.assign(this, { offset, total: found.total, filter: { selection: found.selection } });
    this.items.replaceChildren(...found.documents.map((card) => this.item(card)));
    this.place.textContent = found.total ? `${offset + 1} to ${Math.min(offset + PAGE, found.total)} of ${found.total}` : "No documents.";
    return found;
  }

  item(card) {
    const proposed = card.proposed ? `proposed: ${card.proposed.label}, ${percent(card.proposed.confidence)}` : "no proposal yet";
    const known = card.decision ? `${card.of_file ? "in the file" : "decided"}: ${card.decision.label ?? "none of these"}` : proposed;
    const open = make("button", { type: "button", "aria-label": `Open document ${card.row + 1}`, onclick: () => this.app.views.queue.open(card.row) }, "Open");
    return make("li", {}, make("div", { class: "words" }, short(card.text, 300)),
      make("div", { class: "class" }, known, card.overruled && !card.decision ? ", by class sizes" : "", card.guess ? `, guess: ${card.guess}` : "", card.note ? `, note: ${short(card.note, 80)}` : ""), open);
  }

  turn(step) {
    const offset = this.offset + step;
    if (this.filter && offset >= 0 && offset < this.total) this.load(this.filter, offset).catch((error) => say(error.message));
  }
}

export class ListView {
  constructor(app) {
    this.app = app;
    const load = () => { this.row = null; this.load(); };
    this.query = make("input", { type: "search", class: "grow", placeholder: "Words, or \"a phrase\"", "aria-label": "Search documents", oninput: () => { clearTimeout(this.timer); this.timer = setTimeout(load, 150); } });
    this.classes = make("select", { "aria-label": "Class", onchange: load });
    this.status = options(make("select", { "aria-label": "Decisions", onchange: load }), [["undecided", "undecided"], ["decided", "decided"], ["skipped", "skipped"], ["noted", "with a note"], ["all", "all"]], "undecided");
    this.low = make("input", { type: "number", min: 0, max: 100, value: 0, onchange: load });
    this.high = make("input", { type: "number", min: 0, max: 100, value: 100, onchange: load });
    this.overruled = make("input", { type: "checkbox", onchange: load });
    this.unlike = make("input", { type: "checkbox", onchange: load });
    this.guesses = make("label", { hidden: true }, this.unlike, "unlike the guess");
    this.cluster = options(make("select", { "aria-label": "Cluster", onchange: load, onfocus: () => this.loadClusters() }), [["", "any cluster"]]);
    this.k = make("input", { type: "number", min: 1, max: 2000, value: 50, onchange: () => this.load() });
    this.target = make("span", { class: "words" });
    this.nearness = make("div", { class: "row", hidden: true }, make("label", {}, "Nearest", this.k), make("button", { type: "button", onclick: load }, "All documents"), this.target);
    this.list = new DocumentList(app);
    this.bulk = new BulkBar(app, () => this.row !== null ? "neighbours" : this.cluster.value ? "cluster" : this.query.value.trim() ? "keyword" : "list", () => this.load());
    this.row = null;
    find("list").append(
      make("div", { class: "row" }, this.query, this.classes, this.status, this.cluster),
      make("div", { class: "row" }, make("label", {}, "Confidence from", this.low), make("label", {}, "to", this.high, "%"), make("label", {}, this.overruled, "decided by class sizes"), this.guesses),
      this.nearness, this.bulk.element, this.list.element);
  }

  update(state) {
    this.bulk.update();
    this.guesses.hidden = !state.has_guesses;
    const branches = this.app.views.queue.branches(), key = branches.join("\n");
    if (this.key !== key) { this.key = key; options(this.classes, [["", "any class"], ...branches.map((name) => [`=${name}`, name])], this.classes.value); }
  }

  opened() { this.load(); }
  focus() { this.query.focus(); this.query.select(); }

  near(card) {
    this.row = card.row;
    this.target.textContent = `to document ${card.row + 1}: ${short(card.text, 100)}`;
    this.app.open("list");
  }

  async loadClusters() {
    const found = await post("clusters"), chosen = this.cluster.value;
    options(this.cluster, [["", "any cluster"], ...found.map((one) => [String(one.cluster), `${one.n}: ${short(one.text, 60)}`])], chosen);
  }

  filter() {
    return {
      query: this.query.value, label: this.classes.value.slice(1) || null, status: this.status.value, overruled: this.overruled.checked, unlike_guess: this.unlike.checked,
      low: Number(this.low.value) / 100, high: Number(this.high.value) / 100, cluster: this.cluster.value === "" ? null : Number(this.cluster.value),
      near: this.row, k: Number(this.k.value),
    };
  }

  async load() {
    this.nearness.hidden = this.row === null;
    try { this.bulk.show(await this.list.load(this.filter())); }
    catch (error) { say(error.message); }
  }
}
