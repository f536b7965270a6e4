// Connections one after the other: with new endpoints, and with ones that are reset.
import type { Ep } from 'dapl';
import { type Resources, settledResources } from './resources.js';
import { say } from './say.js';
import { join, Side } from './side.js';

/** Part of the way, everything that grows once has grown. */
const WARM = 0.2;
const DEVICE = 'rxe0';

export async function cycles(address: string, times: number): Promise<void> {
  const caller = await Side.open({ device: DEVICE });
  const listener = await Side.open({ address });
  const warm = Math.max(1, Math.floor(times * WARM));
  let pair: readonly [Ep, Ep] | undefined;
  for (let cycle = 1; cycle <= times; cycle++) {
    pair ??= [caller.endpoint(), listener.endpoint()];
    await live(caller, listener, ...pair);
    if (cycle % 2 === 0) pair = freed(...pair);
    else for (const ep of pair) ep.reset();
    if (cycle === warm || cycle === times) report(cycle, await settledResources(DEVICE));
  }
  if (pair !== undefined) freed(...pair);
  await Promise.all([caller.ia.close(), listener.ia.close()]);
}

function freed(from: Ep, to: Ep): undefined {
  from.free();
  to.free();
}

async function live(caller: Side, listener: Side, from: Ep, to: Ep): Promise<void> {
  to.postRecv(listener.lmr.segment(0, 64), 1);
  await join(caller, listener, from, to);
  from.postSend(caller.lmr.segment(0, 64), 2);
  await listener.next();
  await caller.next();
  from.disconnect();
  await caller.expect('DISCONNECTED');
  await listener.expect('DISCONNECTED');
}

function report(cycle: number, resources: Resources): void {
  say(`after ${cycle}: ${JSON.stringify(resources)}`);
}
