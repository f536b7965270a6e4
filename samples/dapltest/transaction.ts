/** The transaction test: threads (tasks, here) of endpoints that do the same operations. */
import type { Ia } from 'dapl';

import { ended } from '../endpoint.js';
import { Iterations } from './iterations.js';
import { Lane, type Peer } from './lane.js';
import type { TransactionCommand } from './messages.js';
import type { Role } from './operations.js';
import { type Print, reportTransaction, sumOf } from './report.js';
import { range, Service } from './service.js';

export async function transactionClient(
  ia: Ia,
  server: Peer & { readonly address: string; readonly firstPort: number },
  command: TransactionCommand,
  print: Print,
): Promise<void> {
  const { threads, endpointsPerThread } = command;
  const everybody = new Countdown(threads);
  let seconds = 0;
  const parts = await Promise.all(
    range(0, threads).map(async (thread) => {
      const lanes = makeLanes(ia, 'client', command);
      const firstPort = server.firstPort + thread * endpointsPerThread;
      for (const [index, lane] of lanes.entries()) {
        await lane.connect(server.address, firstPort + index, server);
      }
      const work = new Iterations(lanes, 'client', command);
      work.prepare();
      await all(lanes, (lane) => lane.awaitSync());
      // No thread begins before the server is ready for all.
      await everybody.arrive();
      for (const lane of lanes) lane.sendSync();
      const start = performance.now();
      await work.run();
      await all(lanes, (lane) => lane.awaitSync());
      seconds = Math.max(seconds, (performance.now() - start) / 1000);
      await all(lanes, (lane) => lane.leave());
      return work.traffic;
    }),
  );
  reportTransaction(print, command, sumOf(parts), seconds);
}

/** The server's side; all ports are served once it is created. */
export class TransactionServer {
  private readonly threads: readonly (readonly Place[])[];

  constructor(
    ia: Ia,
    firstPort: number,
    private readonly command: TransactionCommand,
    private readonly print: Print,
  ) {
    const { threads, endpointsPerThread } = command;
    this.threads = range(0, threads).map((thread) => {
      const port = firstPort + thread * endpointsPerThread;
      return makeLanes(ia, 'server', command).map((lane, index) => ({
        lane,
        service: new Service(ia, lane.endpoint, port + index, command.useRsp),
      }));
    });
  }

  async run(client: Peer): Promise<void> {
    await Promise.all(this.threads.map((thread) => this.runThread(thread, client)));
    this.print('Server: Transaction Test Finished for this client');
  }

  private async runThread(places: readonly Place[], client: Peer): Promise<void> {
    for (const { lane, service } of places) {
      const isUsual = await lane.accept(await service.request(), client);
      if (!isUsual) this.print('--Private Data mismatch!');
    }
    const lanes = places.map(({ lane }) => lane);
    const work = new Iterations(lanes, 'server', this.command);
    work.prepare();
    for (const lane of lanes) lane.sendSync();
    await all(lanes, (lane) => lane.awaitSync());
    await work.run();
    for (const lane of lanes) lane.sendSync();
    await all(lanes, (lane) => lane.awaitSync());
    await all(lanes, (lane) => ended(lane.endpoint));
  }
}

/** An endpoint, and the service point that its client connects to. */
interface Place {
  readonly lane: Lane;
  readonly service: Service;
}

function makeLanes(ia: Ia, role: Role, command: TransactionCommand): Lane[] {
  const pz = ia.createPz();
  return range(0, command.endpointsPerThread).map(() => new Lane(ia, pz, role, command));
}

async function all(lanes: readonly Lane[], step: (lane: Lane) => Promise<void>): Promise<void> {
  await Promise.all(lanes.map(step));
}

/** A barrier: each caller of `arrive` waits for the last one. */
class Countdown {
  private readonly last: Promise<void>;
  private open!: () => void;

  constructor(private left: number) {
    this.last = new Promise((resolve) => (this.open = resolve));
  }

  arrive(): Promise<void> {
    if (--this.left === 0) this.open();
    return this.last;
  }
}
