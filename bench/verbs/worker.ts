/**
 * A process of `npm run bench:verbs`: one side of every cell of a provider. It takes calls from the
 * benchmark over TCP, as it may be in a guest, and ends when that connection does.
 *
 *     worker.js <verbs | softroce> <own address> <control port>
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import { End } from './end.js';
import { measure, serve } from './loops.js';
import type { Answer, Call, Result, Target } from './workload.js';

const CONN_QUAL = 7500;
const CONNECT_TIMEOUT_MS = 30_000;

class Worker {
  private end: End | undefined;
  private serving: Promise<void> | undefined;

  constructor(private readonly ia: Ia) {}

  async perform(call: Call): Promise<Target | Result | undefined> {
    if (call.call === 'prepare') {
      this.end = new End(this.ia, call.work);
      if (call.listens) this.listen(this.end);
      return this.end.target(CONN_QUAL);
    }
    const { end } = this;
    if (end === undefined) throw new Error(`${call.call} without an endpoint`);
    switch (call.call) {
      case 'serve':
        this.serving = serve(end, call.target);
        this.serving.catch((error: unknown) => {
          process.stderr.write(`server: ${String(error)}\n`);
        });
        return undefined;
      case 'run': {
        const established = end.established();
        const { server: address, target } = call;
        end.ep.connect({ address, connQual: target.port, timeoutMs: CONNECT_TIMEOUT_MS });
        await established;
        return measure(end, target);
      }
      case 'stop':
        end.stop();
        await this.serving?.catch(() => undefined);
        this.serving = undefined;
        this.end = undefined;
        await end.free();
        return undefined;
    }
  }

  private listen(end: End): void {
    const psp = this.ia.createPsp({ connQual: CONN_QUAL });
    psp.requests$.subscribe(({ cr }) => {
      cr?.accept(end.ep);
      psp.free();
    });
  }
}

async function answer(worker: Worker, line: string): Promise<Answer> {
  try {
    const value = await worker.perform(JSON.parse(line) as Call);
    return value === undefined ? {} : { value };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const [provider = '', address = '', port = ''] = process.argv.slice(2);
const plugin =
  provider === 'verbs' ? verbs({ address }) : softroce({ addresses: [address], shm: false });
const ia = await openIa(plugin);
const server = createServer().listen(Number(port), address);
await once(server, 'listening');
process.stdout.write('ready\n');
const [socket] = (await once(server, 'connection')) as [Socket];
server.close();
socket.on('error', () => undefined);
const worker = new Worker(ia);
for await (const line of createInterface({ input: socket })) {
  socket.write(`${JSON.stringify(await answer(worker, line))}\n`);
}
socket.end();
await ia.close('abrupt');
