/**
 * A thread of threads.test.ts: has a slot of a shared address. It echoes what comes on its own
 * port, and talks without an end to another's; it may be ended at any moment.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type Connection, connect, listen } from '../../core/flow/index.js';
import { openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';

export interface ThreadPlan {
  readonly address: string;
  readonly shm: boolean;
  /** Own service; none: it does not listen. */
  readonly port?: number;
  /** Another's service that it talks to. */
  readonly peer?: { readonly address: string; readonly port: number };
}

/** What a thread says: how far it is, or how many of its messages have come back by now. */
export type ThreadNews = { readonly is: 'loaded' | 'open' } | { readonly echoed: number };

/** Between two numbers that are told. */
const TOLD_EACH = 20;
const RETRIES = { transport: { ackTimeout: 14, retryCount: 7, rnrRetryCount: 7 } };

const { address, shm, port, peer } = workerData as ThreadPlan;
const tell = (news: ThreadNews): void => parentPort?.postMessage(news);

async function echoAll(connection: Connection): Promise<void> {
  try {
    for await (const message of connection) await connection.send(message.bytes);
  } catch {
    // The other thread has been ended: that is what the test is about.
  }
}

tell({ is: 'loaded' });
const ia = await openIa(softroce({ addresses: [address], shared: true, shm }));
if (port !== undefined) {
  const listener = await listen(ia, { port, keepAliveMs: 0, attributes: RETRIES });
  void (async (): Promise<void> => {
    for await (const connection of listener) void echoAll(connection);
  })();
}
tell({ is: 'open' });
if (peer !== undefined) {
  const connection = await connect(ia, {
    ...peer,
    timeoutMs: 60_000,
    keepAliveMs: 0,
    attributes: RETRIES,
  });
  const bytes = new Uint8Array(16_000);
  for (let i = 1; ; i++) {
    bytes.fill(i);
    await connection.send(bytes);
    const message = await connection.receive();
    if (message === undefined) break;
    if (Buffer.compare(message.bytes, bytes) !== 0) throw new Error(`message ${i} differs`);
    if (i % TOLD_EACH === 0) tell({ echoed: i });
  }
}
