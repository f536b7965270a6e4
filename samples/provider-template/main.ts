/** An application: the main thread asks a worker, over RDMA in shared memory. */
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { openIa } from 'dapl';
import { connect, listen } from 'dapl/flow';
import { createLink, type ThreadLink, threads } from './index.js';

const SERVER = '10.0.0.1';
const CLIENT = '10.0.0.2';
const PORT = 7000;

/** The worker: answers each message in capitals, until its client disconnects. */
async function serve(link: ThreadLink): Promise<void> {
  const ia = await openIa(threads({ link, address: SERVER, peer: CLIENT }));
  const listener = await listen(ia, { port: PORT });
  const conn = await listener.accept();
  for await (const message of conn) {
    const text = new TextDecoder().decode(message.bytes);
    await conn.send(new TextEncoder().encode(text.toUpperCase()));
  }
  await listener.close();
  await ia.close();
}

async function ask(link: ThreadLink): Promise<void> {
  const ia = await openIa(threads({ link, address: CLIENT, peer: SERVER }));
  const conn = await connect(ia, { address: SERVER, port: PORT, timeoutMs: 10_000 });
  await conn.send(new TextEncoder().encode('hello from another thread'));
  console.log(new TextDecoder().decode((await conn.receive()).bytes));
  await conn.close();
  await ia.close();
}

if (isMainThread) {
  const [mine, theirs] = createLink();
  const worker = new Worker(new URL(import.meta.url), {
    workerData: theirs,
    transferList: [theirs.wake],
  });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  await ask(mine);
  await ended;
} else {
  await serve(workerData as ThreadLink);
}
