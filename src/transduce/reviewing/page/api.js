// Requests to the server. Events wait in an outbox until the server says that they are on the disk, or refuses them (status 400).
export class Refused extends Error {}

export async function post(name, body = {}) {
  const answer = await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  const text = found.error ?? (answer.status === 403 ? "The server has started again: open the new link that it printed." : `The server answered ${answer.status}.`);
  throw new (answer.status === 400 ? Refused : Error)(text);
}

const first = Math.random().toString(36).slice(2);
let number = 0;
export const newId = () => `${first}-${number++}`;

export class Outbox {
  constructor({ onAdd, onSaved, onStatus, onRefused }) {
    Object.assign(this, { waiting: [], busy: false, failing: false, alone: 0, onAdd, onSaved, onStatus, onRefused });
    addEventListener("beforeunload", (event) => { if (this.waiting.length) event.preventDefault(); });
  }

  add(...events) {
    const named = events.map((event) => ({ ...event, id: newId() }));
    named.forEach(this.onAdd);
    this.waiting.push(...named);
    this.send();
  }

  async send() {
    if (this.busy) return;
    this.busy = true;
    try { while (this.waiting.length) await this.sendSome(this.waiting.slice(0, this.alone ? 1 : 20)); }
    finally { this.busy = false; }
  }

  async sendSome(batch) {
    let answer;
    if (!this.failing) this.onStatus("Saving.", false);
    try { answer = await post("events", { events: batch }); }
    catch (error) { await this.failed(error, batch); return; }
    this.taken(batch.length);
    this.onSaved(answer.state);
  }

  async failed(error, batch) {
    if (error instanceof Refused && batch.length > 1) { this.alone = batch.length; return; } // to find which one is refused
    if (error instanceof Refused) { this.onRefused(error.message, this.taken(1)); return; }
    this.failing = true;
    const what = this.waiting.length === 1 ? "1 change is" : `${this.waiting.length} changes are`;
    this.onStatus(`${what} not saved. ${error instanceof TypeError ? "The server does not answer." : error.message} Trying again.`, true);
    await new Promise((resume) => setTimeout(resume, 2000));
  }

  taken(n) {
    Object.assign(this, { alone: Math.max(this.alone - n, 0), failing: false });
    return this.waiting.splice(0, n)[0];
  }
}
