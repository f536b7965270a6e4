/** Timers, sockets and other things of Node that keep the process running. */
import assert from 'node:assert/strict';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';

/** Names of resources, one for each of them. */
export type Resources = readonly string[];

/** A resource may end a few turns of the event loop after the call that ends it. */
const LOOKS = 25;
const LOOK_MS = 20;

/** Those that are there now. The test runner begins its own timer when a test has begun. */
export async function presentResources(): Promise<Resources> {
  await setImmediate();
  return process.getActiveResourcesInfo();
}

/** Soon there are no others than before. */
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
