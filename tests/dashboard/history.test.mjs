// The bars are made from answers to "how much since": they must be what really happened, whatever the time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const ASSETS = process.env.DASHBOARD_ASSETS ? `${pathToFileURL(process.env.DASHBOARD_ASSETS)}/` : new URL("../../src/server/dashboard/", import.meta.url);
globalThis.sessionStorage = { getItem: () => null };
const { History, RANGES } = await import(new URL("history.js", ASSETS));

/** Counts as `src/metrics/timeline.rs` does: whole minutes of the last hour, tens of minutes of the last day. */
class Fake {
  constructor(now) {
    this.startedAt = this.now = now;
    this.hits = [];
    globalThis.fetch = async (url) => ({ ok: true, status: 200, json: async () => this.#stats(url.searchParams.get("since")) });
  }

  hit(times = 1) {
    for (let n = 0; n < times; n += 1) this.hits.push(this.now);
  }

  restart() {
    this.startedAt = this.now;
    this.hits = [];
  }

  #stats(since) {
    const now = Math.floor(this.now / 60);
    let minute = since === "1m" ? now - 1 : Math.min(now, Math.max(now - 1440, Math.floor(Number(since) / 60)));
    if (minute + 60 < now) minute -= minute % 10;
    const exact_hits = this.hits.filter((at) => at >= minute * 60).length;
    const time = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");
    const none = { semantic_hits: 0, coalesced: 0, misses: 0, bypasses: {}, degraded: {}, errors: {} };
    return { started_at: time(this.startedAt), now: time(this.now), totals: { exact_hits, ...none } };
  }

  /** What really happened in these bars. */
  truth({ bars, step }) {
    return bars.map(({ at }) => (at + step <= this.startedAt ? null
      : this.hits.filter((hit) => hit >= at && hit < at + step).length));
  }
}

const shown = ({ bars }) => bars.map(({ outcomes }) => outcomes && outcomes[0]);

for (const [range, { step, bars }] of Object.entries(RANGES)) {
  test(`bars of ${range} are what happened`, async () => {
    const service = new Fake(1_796_040_017);
    const history = new History(range);
    let random = 7;
    for (let round = 0; round < 400; round += 1) {
      random = (random * 48_271) % 2_147_483_647;
      service.hit(random % 5);
      const shownNow = await history.poll();
      assert.equal(shownNow.bars.length, bars);
      assert.deepEqual(shown(shownNow), service.truth(shownNow), `round ${round}`);
      // Mostly the next poll, at times a tab that was hidden for longer than a range.
      service.now += random % 50 === 0 ? step * (random % 60) : random % 2 === 0 ? 2 : Math.ceil(step / 3);
    }
  });
}

test("a restart begins anew", async () => {
  const service = new Fake(1_796_040_017);
  const history = new History("15m");
  service.hit(3);
  await history.poll();
  service.now += 300;
  service.hit(4);
  assert.deepEqual(shown(await history.poll()).filter(Boolean), [3, 4]);
  service.now += 120;
  service.restart();
  service.hit(1);
  const after = await history.poll();
  assert.deepEqual(shown(after), service.truth(after));
  assert.equal(shown(after).filter((bar) => bar !== null).length, 1);
});
