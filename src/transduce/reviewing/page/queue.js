// The queue: one document at a time, with the proposed class, reasons, and keys. What is shown never moves by itself.
import { post } from "./api.js";
import { find, make, percent, say, short } from "./dom.js";

const AHEAD = 8;
// Small letters search for a class, so classes after the ninth have capital ones.
const CLASS_KEYS = [..."123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"];

export class QueueView {
  constructor(app) {
    Object.assign(this, { app, cards: [], past: [], redone: [], loading: false, fitted: "" });
    this.card = make("article", { class: "card", "aria-label": "Document" });
    this.next = make("ol", { class: "next" });
    find("queue").append(make("div", { class: "columns" }, this.card, make("aside", { "aria-label": "Next documents" }, make("h2", {}, "Next"), this.next)));
  }

  get current() { return this.cards[0]; }

  update(state, changed, first) {
    if (first) { this.reload(); return; }
    if (state.status === "Up to date." && this.fitted !== state.revision && !this.loading) { this.fitted = state.revision; this.fill(true); }
    if (this.current && changed) this.showChoices();
    if (!this.current && !this.loading && state.n_undecided) this.fill();
  }

  async reload() { this.cards = []; await this.fill(); }

  // New proposals replace what comes next, never the document that is shown.
  async fill(renew = false) {
    if (this.loading) return;
    this.loading = true;
    try {
      const kept = renew ? this.cards.slice(0, 1) : this.cards;
      const waiting = this.app.outbox.waiting.flatMap((event) => event.rows ?? []);
      const found = await post("queue", { n: AHEAD - kept.length, without: [...kept.map((card) => card.row), ...waiting] });
      const head = this.cards.slice(0, renew ? 1 : this.cards.length), shown = new Set(head.map((card) => card.row));
      this.cards = [...head, ...found.filter((card) => !shown.has(card.row))];
    } catch (error) { say(error.message); }
    this.loading = false;
    this.show();
    find("queue").dataset.revision = this.fitted;
  }

  show() {
    const card = this.current, focused = document.activeElement;
    this.next.replaceChildren(...this.cards.slice(1, 6).map((one) => make("li", {}, one.random ? make("span", { class: "tag" }, "random") : null, " ", short(one.text, 120))));
    if (card && this.shown === card) return;
    const takeFocus = focused === document.body || this.card.contains(focused);
    this.shown = card;
    if (!card) { this.card.replaceChildren(make("p", {}, this.loading ? "Choosing documents." : "Every document has a decision. Export them above, or look through Documents.")); return; }
    this.text = make("div", { class: "text", id: "text", tabindex: "0", role: "group", "aria-label": `Document ${card.row + 1}`, "aria-describedby": "text" }, card.text);
    this.choices = make("div", { class: "choices", role: "group", "aria-label": "Classes" });
    this.search = make("input", { type: "text", class: "grow", placeholder: "Type a class, or a new one", "aria-label": "Class", list: "class-names", autocomplete: "off", onkeydown: (event) => this.searchKey(event) });
    this.names = make("datalist", { id: "class-names" });
    this.note = make("input", { type: "text", class: "grow", placeholder: "Note", "aria-label": "Note", value: card.note, onchange: () => this.saveNote(), onkeydown: (event) => { if (event.key === "Enter" || event.key === "Escape") this.text.focus(); } });
    this.card.replaceChildren(
      this.facts(card), this.text, this.choices,
      make("div", { class: "row" }, this.search, this.names,
        this.button("0", "None of these", () => this.choose(null)), this.button("→", "Skip", () => this.skip()), this.button("←", "Back", () => this.back()), this.button("=", "Similar", () => this.similar())),
      make("div", { class: "row" }, this.note), this.why(card));
    this.showChoices();
    if (takeFocus) this.text.focus();
  }

  button(key, text, run) { return make("button", { type: "button", onclick: run }, make("kbd", {}, key), ` ${text}`); }

  facts(card) {
    const facts = make("div", { class: "facts" }, make("span", {}, `Document ${card.row + 1}`));
    if (card.random) facts.append(make("span", { class: "tag" }, "random: counts for accuracy"));
    if (card.copies) facts.append(make("span", { class: "tag" }, card.copies === 1 ? "and 1 copy" : `and ${card.copies} copies`));
    if (card.overruled) facts.append(make("span", { class: "tag warn" }, "decided by class sizes"));
    if (card.decision) facts.append(make("span", { class: "tag" }, `${card.of_file ? "in the file" : "decided"}: ${card.decision.label ?? "none of these"}`));
    return facts;
  }

  why(card) {
    const found = make("div", { class: "why", tabindex: "0", role: "group", "aria-label": "Why" });
    if (card.words?.length) found.append(make("p", {}, `Words for ${card.proposed.label}: ${card.words.join(", ")}`));
    for (const one of card.near ?? []) found.append(make("p", { title: one.text }, `Similar, ${card.proposed && card.proposed.label !== one.label ? "but " : ""}${one.label}: ${short(one.text)}`));
    if (!card.proposed) found.append(make("p", {}, "Proposals begin once two classes have decisions. Type the name of a class and press Enter."));
    return found;
  }

  showChoices() {
    const card = this.current;
    if (!card || !this.choices) return;
    const proposed = card.proposed?.label, key = JSON.stringify([card.row, this.app.names]);
    if (this.choices.dataset.key === key) return;
    this.choices.dataset.key = key;
    const parts = (name, at = name.lastIndexOf("/") + 1) => [at ? make("small", {}, name.slice(0, at)) : null, name.slice(at)];
    const buttons = this.app.keyed.map((name, k) => name === null ? make("span") : make("button", { type: "button", title: name, class: name === proposed ? "main" : null, onclick: () => this.choose(name) },
      k < CLASS_KEYS.length ? make("kbd", {}, k < 9 ? CLASS_KEYS[k] : `⇧${CLASS_KEYS[k]}`) : null, make("span", { class: "name" }, ...parts(name)), name === proposed ? make("span", { class: "sure" }, percent(card.proposed.confidence), make("kbd", {}, "Enter")) : null));
    this.choices.replaceChildren(...buttons);
    this.reveal();
    this.names.replaceChildren(...this.branches().map((name) => make("option", { value: name })));
  }

  // Classes keep their places, so that of many classes the proposed one may have to be scrolled into sight.
  reveal() {
    const proposed = this.choices?.querySelector(".main"), top = proposed ? proposed.offsetTop - this.choices.offsetTop : 0;
    if (proposed && top + proposed.offsetHeight > this.choices.clientHeight) this.choices.scrollTop = top;
  }

  opened() { this.reveal(); }

  // Inner nodes of the tree can be chosen too: they say as much as is known.
  branches() {
    const names = new Set(this.app.names);
    for (const name of this.app.names) for (let at = name.indexOf("/"); at > 0; at = name.indexOf("/", at + 1)) names.add(name.slice(0, at));
    return [...names].sort();
  }

  // A proposed class may have been renamed or merged since; only a name that was typed is added.
  choose(label, isTyped = false) {
    const card = this.current, { names, outbox } = this.app, proposed = card?.proposed?.label;
    if (!card) return;
    if (label !== null && !names.includes(label)) {
      if (!isTyped) { say(`There is no class ${label} any more. Choose another one.`); return; }
      outbox.add({ op: "add_class", name: label });
    }
    outbox.add({ op: "decide", rows: [card.row], label, how: card.random ? "random" : "queue", proposed: names.includes(proposed) ? proposed : undefined });
    this.leave();
  }

  skip() {
    if (this.current) { this.app.outbox.add({ op: "skip", rows: [this.current.row] }); this.leave(); }
  }

  leave() {
    this.past.push(this.cards.shift());
    this.show();
    if (this.current) this.text.focus();
    if (this.cards.length < AHEAD / 2) this.fill();
  }

  async back() {
    const card = this.past.pop();
    if (card) await this.open(card.row, card.random);
  }

  // After an undo the document comes back, so that it can be decided again.
  undone(op) {
    if (op === "undo" && this.past.length) {
      const card = this.past.pop();
      this.redone.push(card);
      this.cards.unshift({ ...card, decision: null });
      this.show();
    } else if (op === "redo" && this.redone.length && this.current?.row === this.redone.at(-1).row) {
      this.past.push(this.redone.pop());
      this.cards.shift();
      this.show();
    }
  }

  async open(row, random = false) {
    try {
      const card = await post("document", { row });
      this.cards = [{ ...card, random }, ...this.cards.filter((one) => one.row !== row)];
      this.app.open("queue");
      this.show();
      this.text.focus();
    } catch (error) { say(error.message); }
  }

  similar() {
    if (this.current) this.app.views.list.near(this.current);
  }

  saveNote() {
    if (!this.current || this.note.value === this.current.note) return;
    this.current.note = this.note.value;
    this.app.outbox.add({ op: "note", row: this.current.row, text: this.note.value });
  }

  searchKey(event) {
    if (event.key === "Escape") this.search.value = "";
    const typed = this.search.value.trim(), folded = typed.toLowerCase();
    if (event.key === "Escape" || event.key === "Enter" && !typed) this.text.focus();
    if (event.key !== "Enter" || !typed) return;
    const names = this.branches(), starts = names.filter((name) => name.toLowerCase().split("/").some((part) => part.startsWith(folded)) || name.toLowerCase().startsWith(folded));
    const exact = names.find((name) => name.toLowerCase() === folded), found = exact ?? (starts.length === 1 ? starts[0] : null);
    event.preventDefault();
    if (event.ctrlKey && !exact) { this.choose(typed, true); return; }
    if (found) { this.choose(found, true); return; }
    if (starts.length > 1) { say(`${starts.length} classes begin like this: ${short(starts.join(", "))}. Type more of the name.`); return; }
    this.addNew(typed);
  }

  // A new name is asked about once, so that a slip of the hand is not a new class; Enter never adds one that is like another.
  async addNew(name) {
    if (this.asked === name) { this.asked = null; this.choose(name, true); return; }
    const near = (await post("similar", { name }).catch(() => null))?.name;
    if (this.search.value.trim() !== name) return;
    this.asked = near ? null : name;
    say(`There is no class ${name}. ${near ? `Did you mean ${near}? Correct it, or press Ctrl Enter to add ${name}.` : "Press Enter again to add it."}`);
  }

  // With Caps Lock, capital letters are still those of a name.
  classKey(event) { return CLASS_KEYS.indexOf(/^[a-z]$/i.test(event.key) && event.shiftKey ? event.key.toUpperCase() : event.key.toLowerCase()); }

  key(event) {
    if (event.target.closest("button") && event.key === "Enter") return;
    const name = this.app.keyed[this.classKey(event)];
    const keys = {
      Enter: () => { if (this.current?.proposed) this.choose(this.current.proposed.label); },
      0: () => this.choose(null), ArrowRight: () => this.skip(), ArrowLeft: () => this.back(), "=": () => this.similar(),
      ".": () => this.note?.focus(),
    };
    if (name) this.choose(name);
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else if (/^\p{L}$/u.test(event.key) && this.search) { this.search.focus(); return; }
    else return;
    event.preventDefault();
  }
}
