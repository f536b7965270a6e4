/** Timers, sockets and other resources of Node that keep the process alive. */
import assert from 'node:assert/strict';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';

/** Names of resources, with repetitions. */
export type Resources = readonly string[];

/** A resource may close a few turns of the event loop after the call that closes it. */
const LOOKS = 25;
const LOOK_MS = 20;

/** The present resources. Taken after a turn: the test runner starts its own timer late. */
export async function presentResources(): Promise<Resources> {
  await setImmediate();
  return process.getActiveResourcesInfo();
}

/** Asserts that soon no resources are left but those from before. */
export async function assertNoMoreThan(before: Resources, when: string): Promise<void> {
  let more = moreThan(before);
  for (let look = 0; look < LOOKS && more.length > 0; look++) {
    await delay(LOOK_MS);
    more = moreThan(before);
  }
  assert.equal(more.join(', '), '', `${when} the port keeps the process running by these`);
}

function moreThan(before: Resources): Resources {
  const left = [...before];
  return process.getActiveResourcesInfo().filter((name) => {
    const at = left.indexOf(name);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
