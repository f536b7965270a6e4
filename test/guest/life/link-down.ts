// A link that goes down and comes back while requests are under way: what was connected may end,
// and the adapters connect again.
import { once } from 'node:events';

import { load, type LoadEnd } from './load.js';
import { say } from './say.js';
import { join, Side } from './side.js';

const ENOUGH = 200;
const AFTERWARDS = 100;

export async function linkDown(address: string): Promise<void> {
  const caller = await Side.open({ device: 'rxe0' });
  const listener = await Side.open({ address });
  let isOver = false;
  // Neither a signal that is awaited nor an adapter without work keeps a process.
  const awake = setInterval(() => undefined, 1000);
  const mended = once(process, 'SIGUSR1').then(() => {
    isOver = true;
    clearInterval(awake);
  });
  const first = await transfer(caller, listener, () => isOver);
  say(`ended: ${JSON.stringify(first)}`);
  await mended;
  await again(caller, listener);
  await Promise.all([caller.ia.close(), listener.ia.close()]);
  say('closed');
}

async function transfer(caller: Side, listener: Side, isOver: () => boolean): Promise<LoadEnd> {
  const [from, to] = [caller.endpoint(), listener.endpoint()];
  await join(caller, listener, from, to);
  const onSuccess = (count: number): void => {
    if (count === ENOUGH) say('under load');
    // Alive when the link is back: it is told to end.
    if (isOver() && from.state === 'CONNECTED') from.disconnect();
  };
  const end = await load(caller, from, listener, { onSuccess });
  if (to.state === 'CONNECTED') to.disconnect('abrupt');
  await listener.next();
  from.free();
  to.free();
  return end;
}

/** What there was of the link, and of addresses, is back. */
async function again(caller: Side, listener: Side): Promise<void> {
  const [from, to] = [caller.endpoint(), listener.endpoint()];
  await join(caller, listener, from, to);
  const { succeeded } = await load(caller, from, listener, { requests: AFTERWARDS });
  say(`again: ${succeeded}`);
}
