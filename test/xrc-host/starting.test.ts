/**
 * XRC domains of several processes: the first opener, which is the broker of the address, or the
 * host is killed while the host starts. Those that are left open the domain, and go on meanwhile.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { killAll } from '../slots/programs.js';
import { longIt } from '../support/lane.js';
import { patience, paused } from '../support/patience.js';
import { device, hostsOf, World } from './world.js';

const LOOK_MS = 2;
/** Node starts, and a group without its broker finds another. */
const OPEN_MS = 4_000;
/** For which the event loop of a program that opens may stand still. */
const LAG_MS = 150;

type Step = (address: string) => Promise<unknown>;

const later =
  (ms: number): Step =>
  () =>
    paused(ms);

/** Steps of a host, counted from the moment in which it has been started. */
const STEPS: Readonly<Record<string, Step>> = {
  'the host has its name': () => until(() => names().some((name) => name.includes('/xrc/'))),
  'the host has its slot': () => until(() => slotsInUse() > 2),
  ...Object.fromEntries([0, 100, 200, 300, 400, 600].map((ms) => [`${ms} ms`, later(ms)])),
};

/** The step that `npm test` tries. */
const QUICK = 'the host has its name';

let before: readonly string[] = [];

/** Of sockets of domains and shared addresses that have come since the test began. */
function names(): string[] {
  const lines = readFileSync('/proc/net/unix', 'latin1').split('\n');
  const all = lines.map((line) => line.slice(line.indexOf('@') + 1));
  return all.filter((name) => name.startsWith('dapl-shared/') && !before.includes(name));
}

/** Each process of the address has one. */
function slotsInUse(): number {
  return new Set(names().filter((name) => /^dapl-shared\/[\da-f]+\/\d+$/.test(name))).size;
}

async function until(isSo: () => boolean): Promise<void> {
  const endMs = performance.now() + patience(OPEN_MS);
  while (!isSo() && performance.now() < endMs) await paused(LOOK_MS);
}

describe('XRC domains: a process is killed while the host of the domain starts', function () {
  this.timeout(600_000);
  const world = new World(92);
  beforeEach(() => {
    before = [];
    before = names();
  });
  afterEach(killAll);
  after(() => world.end());

  for (const [name, step] of Object.entries(STEPS)) {
    const test = name === QUICK ? it : longIt;
    for (const victim of ['broker', 'host'] as const) {
      test(`the ${victim}, ${name} after the start: others open the domain at once`, async () => {
        const [address, key] = [world.newAddress(), world.newKey()];
        const creator = await device(address);
        const survivor = await device(address);
        await survivor.ask('lag');
        const created = creator.ask(`domain ${key}`).catch((error: unknown) => String(error));
        await until(() => hostsOf(address).length > 0);
        const opening = survivor.ask(`domain ${key}`);
        await step(address);
        if (victim === 'broker') await creator.kill();
        else for (const host of hostsOf(address)) process.kill(host, 'SIGKILL');
        const startMs = performance.now();
        assert.equal(await opening, 'domain');
        if (victim === 'host') assert.equal(await created, 'domain');
        const tookMs = performance.now() - startMs;
        assert.ok(tookMs < patience(OPEN_MS), `${tookMs} ms`);
        const lagMs = Number(await survivor.ask('lag'));
        assert.ok(lagMs < patience(LAG_MS), `the event loop stood still for ${lagMs} ms`);
      });
    }
  }
});
