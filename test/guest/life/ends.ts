// A device that goes while requests are under way in both directions.
import type { Ep } from 'dapl';
import { load, type LoadEnd } from './load.js';
import { say } from './say.js';
import { join, Side } from './side.js';

const ENOUGH = 200;

export async function ends(address: string): Promise<void> {
  const caller = await Side.open({ device: 'rxe0' });
  const listener = await Side.open({ address });
  for (const side of [caller, listener]) {
    side.ia.async$.subscribe((event) => {
      if (event.type === 'async-error') say(`async: ${event.message}`);
    });
  }
  const [from, to] = [caller.endpoint(), listener.endpoint()];
  await join(caller, listener, from, to);
  const both = await Promise.all([under(caller, from, listener), under(listener, to, caller)]);
  for (const end of both) say(`ended: ${JSON.stringify(end)}`);
  await Promise.all([caller.ia.close(), listener.ia.close()]);
  say('closed');
}

function under(side: Side, ep: Ep, peer: Side): Promise<LoadEnd> {
  const onSuccess = (count: number): void => {
    if (count === ENOUGH) say('under load');
  };
  return load(side, ep, peer, { onSuccess });
}
