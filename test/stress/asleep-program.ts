/** One side of pings with `polling: 'event'`: says how often its event loop has turned for them. */
import { performance } from 'node:perf_hooks';
import { type Connection, connect, listen } from '../../core/flow/index.js';
import { openIa } from '../../plugins/node/index.js';
import { softroce } from '../../providers/softroce/index.js';

const [side = '', address = '', peer = '', count = '0', shm = ''] = process.argv.slice(2);
const PORT = 7471;
const WARM_UP = 200;

async function pings(conn: Connection, messages: number): Promise<void> {
  const bytes = Buffer.alloc(64);
  for (let i = 0; i < messages; i++) {
    await conn.send(bytes);
    await conn.receive();
  }
}

async function pongs(conn: Connection, messages: number): Promise<void> {
  for (let i = 0; i < messages; i++) await conn.send((await conn.receive()).bytes);
}

const turns = (): number => performance.nodeTiming.uvMetricsInfo.loopCount;
const ia = await openIa(softroce({ addresses: [address], shm: shm === 'shm' }));
const inVain = (): number => ia.deviceCounters()['emptyTurns'] ?? 0;

async function measured(conn: Connection, go: typeof pings): Promise<void> {
  await go(conn, WARM_UP);
  const before = { turns: turns(), inVain: inVain() };
  await go(conn, Number(count));
  const counted = { turns: turns() - before.turns, inVain: inVain() - before.inVain };
  process.send?.(counted);
}

if (side === 'server') {
  const listener = await listen(ia, { port: PORT, polling: 'event' });
  process.send?.('up');
  await measured(await listener.accept(), pongs);
  await listener.close();
} else {
  const conn = await connect(ia, { address: peer, port: PORT, polling: 'event' });
  await measured(conn, pings);
  await conn.close();
}
await ia.close();
process.disconnect();
