// Requests to the server. Events wait in an outbox until the server says that they are on the disk.
export class Refused extends Error {}

export async function post(name, body = {}) {
  const answer = await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const found = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
  if (answer.status === 507) throw new Error(found.error);
  if (!answer.ok) throw new Refused(found.error ?? `The server answered ${answer.status}.`);
  return found;
}

const first = Math.random().toString(36).slice(2);
let number = 0;
export const newId = () => `${first}-${number++}`;

export class Outbox {
  constructor({ onAdd, onState, onStatus, onRefused }) {
    Object.assign(this, { waiting: [], busy: false, onAdd, onState, onStatus, onRefused });
    addEventListener("beforeunload", (event) => { if (this.waiting.length) event.preventDefault(); });
  }

  add(...events) {
    for (const event of events) this.onAdd(event.op);
    this.waiting.push(...events.map((event) => ({ ...event, id: newId() })));
    this.send();
  }

  async send() {
    if (this.busy) return;
    this.busy = true;
    while (this.waiting.length) {
      const batch = this.waiting.slice(0, 20);
      this.onStatus("Saving.", false);
      try {
        const answer = await post("events", { events: batch });
        this.waiting.splice(0, batch.length);
        this.onStatus("Saved.", false);
        this.onState(answer.state);
      } catch (error) {
        if (error instanceof Refused) {
          if (batch.length > 1) await this.sendOne(batch);
          else { this.waiting.splice(0, 1); this.onRefused(error.message); }
        } else {
          const what = this.waiting.length === 1 ? "1 change is" : `${this.waiting.length} changes are`;
          this.onStatus(`${what} not saved. ${error instanceof TypeError ? "The server does not answer." : error.message} Trying again.`, true);
          await new Promise((resume) => setTimeout(resume, 2000));
        }
      }
    }
    this.busy = false;
  }

  async sendOne(batch) {
    for (const event of batch) {
      try { this.onState((await post("events", { events: [event] })).state); }
      catch (error) { if (!(error instanceof Refused)) throw error; this.onRefused(error.message); }
      this.waiting.shift();
    }
  }
}
