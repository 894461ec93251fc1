// The map: a point for each document, coloured by class; a lasso chooses documents.
import { post } from "./api.js";
import { find, make, say } from "./dom.js";
import { BulkBar, DocumentList } from "./list.js";

const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6bb1", "#b8860b", "#56b4e9", "#a31621", "#5a9e2f", "#6b6b6b", "#e377c2", "#2f6f6f"];

export class MapView {
  constructor(app) {
    Object.assign(this, { app, points: [], lasso: [], drawing: false });
    this.canvas = make("canvas", { role: "img", "aria-label": "Map of documents. The same documents can be chosen by search, class and cluster in Documents." });
    this.legend = make("ul", { class: "legend", tabindex: "0", "aria-label": "Classes" });
    this.list = new DocumentList(app);
    this.bulk = new BulkBar(app, () => "map", () => this.load());
    this.chosen = make("div", { hidden: true }, this.bulk.element, this.list.element);
    find("map").append(make("p", {}, "Draw around points to choose documents. Surely classified ones are far out, uncertain ones in the middle."),
      make("div", { class: "columns" }, this.canvas, make("div", {}, this.legend, this.chosen)));
    this.canvas.addEventListener("pointerdown", (event) => { this.canvas.setPointerCapture(event.pointerId); this.lasso = [this.place(event)]; this.drawing = true; });
    this.canvas.addEventListener("pointermove", (event) => { if (this.drawing) { this.lasso.push(this.place(event)); this.draw(); } });
    this.canvas.addEventListener("pointerup", () => this.end());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("resize", () => this.draw());
  }

  update(state, changed) {
    this.bulk.update();
    if (changed && this.app.current === "map" && !this.drawing && state.status === "Up to date.") this.load();
  }

  opened() { this.load(); }

  async load() {
    try {
      const found = await post("map");
      this.points = found.x.map((x, i) => [x, found.y[i], found.label[i], found.decided[i]]);
      const seen = [...new Set(found.label)].filter((k) => k >= 0).sort((a, b) => a - b).slice(0, 40);
      this.legend.replaceChildren(...seen.map((k) => {
        const dot = make("span", {});
        dot.style.background = COLORS[k % COLORS.length];
        return make("li", {}, dot, found.classes[k]);
      }));
      this.draw();
    } catch (error) { say(error.message); }
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * 2.1 - 1.05, (event.clientY - box.top) / box.height * 2.1 - 1.05];
  }

  draw() {
    const side = this.canvas.clientWidth, scale = devicePixelRatio || 1;
    if (!side) return;
    this.canvas.width = this.canvas.height = side * scale;
    const context = this.canvas.getContext("2d"), at = (x) => (x + 1.05) / 2.1 * side * scale;
    const ink = getComputedStyle(document.body).color;
    for (const [x, y, k, decided] of this.points) {
      context.fillStyle = k < 0 ? "#8a949e" : COLORS[k % COLORS.length];
      context.beginPath();
      context.arc(at(x), at(y), (decided ? 4 : 2.2) * scale, 0, 7);
      context.fill();
      if (decided) { context.strokeStyle = ink; context.lineWidth = scale; context.stroke(); }
    }
    if (this.lasso.length > 1) {
      context.strokeStyle = ink;
      context.lineWidth = 2 * scale;
      context.beginPath();
      this.lasso.forEach(([x, y], i) => i ? context.lineTo(at(x), at(y)) : context.moveTo(at(x), at(y)));
      context.closePath();
      context.stroke();
    }
  }

  async end() {
    this.drawing = false;
    if (this.lasso.length < 3) { this.lasso = []; this.draw(); return; }
    const step = Math.ceil(this.lasso.length / 500);
    this.chosen.hidden = false;
    try { this.bulk.show(await this.list.load({ polygon: this.lasso.filter((_, i) => i % step === 0), status: "undecided" })); }
    catch (error) { say(error.message); }
  }
}
