/**
 * A DAT end over the verbs provider, for RemoteEnd (verbs/remote-end.ts): a call a line, an answer
 * a line, in order. It ends when the connection does.
 *
 *     verbs-end <control address> <control port> <own address>
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';

import { DatEnd } from '../verbs/dat-end.js';
import { fromWire, toWire } from '../verbs/wire-values.js';

type Method = (...args: readonly unknown[]) => Promise<unknown>;

async function answer(end: DatEnd, line: string): Promise<{ value?: unknown; error?: string }> {
  const { method, args } = fromWire(JSON.parse(line)) as { method: string; args: unknown[] };
  try {
    const call = (end as unknown as Record<string, Method>)[method];
    if (call === undefined) throw new Error('there is no such call');
    return { value: await call.apply(end, args) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const [host = '', port = '', address = ''] = process.argv.slice(2);
const end = new DatEnd(await openIa(verbs({ address })));
const server = createServer().listen(Number(port), host);
await once(server, 'listening');
process.stdout.write('listening\n');
const [socket] = (await once(server, 'connection')) as [Socket];
server.close();
socket.setNoDelay(true).on('error', () => undefined);
for await (const line of createInterface({ input: socket })) {
  socket.write(`${toWire(await answer(end, line))}\n`);
}
socket.end();
await end.close();
