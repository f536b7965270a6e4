/**
 * A process of `npm run bench:rstream`: our end of rstream's runs, in a guest. It takes calls over
 * TCP, and ends when that connection does.
 *
 *     worker.js <verbs | softroce> <own address> <control port>
 */
import { once } from 'node:events';
import { createServer as createControl, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import { rsocket } from '../../../../samples/ulp/rsocket/index.js';
import {
  createConnection,
  createServer,
  type RdmaSocket,
} from '../../../../samples/ulp/socket/index.js';
import { transfer } from './transfers.js';
import { type Call, RSTREAM_PORT, type Work } from './work.js';

const [provider = '', address = '', port = ''] = process.argv.slice(2);
const plugin = provider === 'verbs' ? verbs({ address }) : softroce({ addresses: [address] });
const ia = await openIa(plugin);
const protocol = rsocket(ia);
let serving: Promise<unknown> = Promise.resolve();

async function serve(work: Work): Promise<void> {
  const server = createServer({ protocol });
  server.listen(RSTREAM_PORT);
  await once(server, 'listening');
  serving = once(server, 'connection').then(([socket]) => {
    server.close();
    return transfer(socket as RdmaSocket, work, false);
  });
  serving.catch((error: unknown) => process.stderr.write(`server: ${String(error)}\n`));
}

async function run(host: string, work: Work): Promise<number> {
  const socket = createConnection({ protocol, host, port: RSTREAM_PORT });
  await once(socket, 'connect');
  return transfer(socket, work, true);
}

async function perform(call: Call): Promise<number | undefined> {
  switch (call.call) {
    case 'serve':
      await serve(call.work);
      return undefined;
    case 'run':
      return run(call.server, call.work);
    case 'stop':
      await serving;
      return undefined;
  }
}

async function answer(line: string): Promise<object> {
  try {
    const value = await perform(JSON.parse(line) as Call);
    return value === undefined ? {} : { value };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const control = createControl().listen(Number(port), address);
await once(control, 'listening');
process.stdout.write('ready\n');
const [socket] = (await once(control, 'connection')) as [Socket];
control.close();
socket.on('error', () => undefined);
for await (const line of createInterface({ input: socket })) {
  socket.write(`${JSON.stringify(await answer(line))}\n`);
}
socket.end();
await ia.close('abrupt');
