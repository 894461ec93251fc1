// The page: keeps the state in sight, switches views, and sends what people decide.
import { Outbox, post } from "./api.js";
import { ask, find, make, options, percent, points, say, write } from "./dom.js";
import { ClassesView } from "./classes.js";
import { ListView } from "./list.js";
import { MapView } from "./map.js";
import { QueueView } from "./queue.js";

const KEYS = [
  ["Enter", "accept the proposed class"], ["1 to 9", "choose a class by its number"], ["Shift A to Z", "choose the tenth class, and those after it"], ["letters", "search for a class, or add one"], ["Ctrl Enter", "add a class that is like another"],
  ["0", "none of these classes"], ["→", "skip"], ["←", "back to the last document"], [".", "write a note"], ["=", "similar documents"],
  ["/", "search documents"], ["Ctrl Z", "undo"], ["Ctrl Y", "redo"], ["Alt 1 to 4", "switch views"], ["?", "show these keys"],
];

class App {
  constructor() {
    Object.assign(this, { state: null, places: [], current: "queue", saved: "", done: [], undone: [] });
    this.outbox = new Outbox({
      onAdd: (event) => this.note(event),
      onSaved: (state) => { this.saved = "Saved. "; this.show(state); },
      onStatus: (text, bad) => this.status(text, bad),
      onRefused: (text, event) => this.refused(text, event),
    });
    this.views = { queue: new QueueView(this), list: new ListView(this), map: new MapView(this), classes: new ClassesView(this) };
    for (const name of Object.keys(this.views)) find(`tab-${name}`).addEventListener("click", () => this.open(name));
    for (const op of ["undo", "redo"]) find(op).addEventListener("click", () => this.undo(op));
    find("help").addEventListener("click", () => this.help());
    find("export").addEventListener("click", () => this.export(find("format").value));
    document.querySelector("nav").addEventListener("keydown", (event) => this.walkTabs(event));
    document.addEventListener("keydown", (event) => this.key(event));
    // A key that is held down scrolls and types, and does nothing else.
    document.addEventListener("keydown", (event) => { if (event.repeat) { event.stopPropagation(); if (event.key === "Enter") event.preventDefault(); } }, true);
    this.poll();
  }

  get names() { return this.state?.classes.map((one) => one.name) ?? []; }

  // While the page is open every class keeps its place, and so its key; null where one was merged into another.
  get keyed() {
    const names = new Map((this.state?.classes ?? []).map((one) => [one.place, one.name]));
    return this.places.map((place) => names.get(place) ?? null);
  }

  async poll() {
    await this.refresh();
    this.outbox.send();
    setTimeout(() => this.poll(), document.hidden ? 5000 : 1000);
  }

  async refresh() {
    try { this.show(await post("state")); }
    catch (error) { if (!this.outbox.waiting.length) this.status(error instanceof TypeError ? "The server does not answer. Nothing that was saved is lost." : error.message, true); }
  }

  show(state) {
    const before = this.state, found = state.accuracy;
    this.state = state;
    this.places.push(...state.classes.map((one) => one.place).filter((place) => !this.places.includes(place)).sort((a, b) => a - b));
    document.title = `Review ${state.name}`;
    write("name", state.name);
    find("name").title = state.name;
    document.body.classList.toggle("short", state.is_short);
    write("decided", state.n_given ? `${state.n_decided} here, ${state.n_given} given, of ${state.n}` : `${state.n_decided} of ${state.n}`);
    write("accuracy", found ? `${percent(found.mean)} (${percent(found.low)} to ${percent(found.high)})` : state.n_until_accuracy ? "not known yet" : "in a few seconds");
    write("accuracy-of", found ? `from ${found.n} random documents` : "");
    write("accuracy-wait", found || !state.n_until_accuracy ? "" : `(about ${state.n_until_accuracy} more decisions)`);
    write("gain", state.gain === null ? "–" : points(state.gain));
    write("advice", state.advice || "Some documents are chosen at random and marked: only they show how accurate the labels are.");
    find("advice").classList.toggle("stop", state.stop);
    for (const name of ["undo", "redo"]) {
      find(name).disabled = !state[name];
      find(name).title = state[name] ? `${name === "undo" ? "Undo" : "Redo"}: ${state[name]}` : "";
    }
    if (!this.outbox.waiting.length) this.status(this.saved + state.status, state.status.startsWith("The last fit failed"));
    if (!before) options(find("format"), state.formats.map((one) => [one, { csv: "CSV", jsonl: "JSON Lines", parquet: "Parquet", json: "Label Studio" }[one]]), state.formats[0]);
    find("format").hidden = find("export").hidden = !state.formats.length;
    const changed = !before || before.revision !== state.revision;
    for (const view of Object.values(this.views)) view.update?.(state, changed, !before);
  }

  status(text, bad) {
    write("status", text);
    find("status").classList.toggle("bad", Boolean(bad));
  }

  // What was done here, so that undoing the decision about a document brings that document back, and nothing else does.
  note(event) {
    if (event.op === "undo" || event.op === "redo") return;
    this.done.push(event);
    this.undone = [];
  }

  // Names the event that is meant, so that the server can refuse if another tab has decided since.
  undo(op) {
    const [from, to] = op === "undo" ? [this.done, this.undone] : [this.undone, this.done], last = from.pop();
    this.outbox.add({ op, event: last?.id ?? this.state?.[`${op}_event`] });
    if (last) to.push(last);
    if (last?.op === "decide" || last?.op === "skip") this.views.queue.undone(op);
  }

  refused(text, event) {
    if (event.op === "undo" || event.op === "redo") Object.assign(this, { done: [], undone: [] });
    say(text);
    this.refresh();
    this.views.queue.reload();
  }

  open(name) {
    this.current = name;
    for (const each of Object.keys(this.views)) {
      const selected = each === name, tab = find(`tab-${each}`);
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      find(each).hidden = !selected;
    }
    this.views[name].opened?.();
  }

  walkTabs(event) {
    const names = Object.keys(this.views), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    this.open(names[(names.indexOf(this.current) + step + names.length) % names.length]);
    find(`tab-${this.current}`).focus();
  }

  key(event) {
    const typing = event.target.matches?.("input, textarea, select"), command = event.ctrlKey || event.metaKey;
    if (find("dialog").open) return;
    if (event.altKey && "1234".includes(event.key)) { this.open(Object.keys(this.views)[Number(event.key) - 1]); event.preventDefault(); return; }
    if (command && !typing && "yzYZ".includes(event.key)) { this.undo(event.shiftKey || "yY".includes(event.key) ? "redo" : "undo"); event.preventDefault(); return; }
    if (typing || command || event.altKey) return;
    if (event.key === "?") { this.help(); event.preventDefault(); return; }
    if (event.key === "/") { this.open("list"); this.views.list.focus(); event.preventDefault(); return; }
    if (this.current === "queue") this.views.queue.key(event);
  }

  help() {
    const rows = KEYS.map(([key, text]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td", {}, text)));
    ask("Keys", make("table", {}, make("tbody", {}, ...rows)), "", null);
  }

  async export(format) {
    try {
      const found = await post("export", { format });
      say(`Wrote ${found.path}. To label all documents with these decisions, type: ${found.next}`, true);
    }
    catch (error) { say(error.message); }
  }

  classSelect(label, first = "Class…") {
    const select = make("select", { "aria-label": label });
    return options(select, [["", first], ...this.names.map((name) => [`=${name}`, name])]);
  }
}

export const app = new App();
