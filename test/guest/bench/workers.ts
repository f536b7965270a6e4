// Our two ends of a cell, each a Node process in a guest, and what is said to them.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import type { Call, Result, Target, Work } from '../../../bench/verbs/workload.js';
import type { RunningCommand } from '../command.js';
import { repositoryRoot } from '../paths.js';
import type { Place, Provider } from './places.js';

const WORKER = join('bench', 'verbs', 'worker.js');
const CONTROL_PORT = 9100;
/** Node takes seconds to start under emulation. */
const START_TIMEOUT_MS = 180_000;
const CALL_TIMEOUT_MS = 120_000;

/** A process of ours that takes calls: a line of JSON each, and one for the answer. */
export class Worker {
  /** @param program its path, below dist */
  static async start(program: string, provider: Provider, place: Place): Promise<Worker> {
    const { guest, address, prefix = '' } = place;
    const file = join(repositoryRoot, 'dist', program);
    const words = `'${process.execPath}' '${file}' ${provider} ${address} ${CONTROL_PORT}`;
    const command = guest.spawn(`exec ${prefix} ${words}`, { cwd: repositoryRoot });
    await command.waitForOutput(/^ready/m, START_TIMEOUT_MS);
    const socket = connect({ host: address, port: CONTROL_PORT, noDelay: true });
    await once(socket, 'connect');
    return new Worker(address, command, socket);
  }

  private readonly lines: AsyncIterator<string, undefined>;

  private constructor(
    readonly address: string,
    private readonly command: RunningCommand,
    private readonly socket: Socket,
  ) {
    socket.on('error', () => undefined);
    this.lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  }

  /** @returns the value of the answer; undefined where it has none */
  async ask(call: { readonly call: string }): Promise<unknown> {
    this.socket.write(`${JSON.stringify(call)}\n`);
    const timer = setTimeout(() => this.socket.destroy(), CALL_TIMEOUT_MS);
    const line = await this.lines.next();
    clearTimeout(timer);
    const where = `${call.call} on ${this.address}`;
    if (line.done === true) {
      throw new Error(`${where}: no answer. ${this.command.stderr.slice(-2000)}`);
    }
    const answer = JSON.parse(line.value) as { readonly value?: unknown; readonly error?: string };
    if (answer.error !== undefined) {
      throw new Error(`${where}: ${answer.error}${this.command.stderr}`);
    }
    return answer.value;
  }

  async close(): Promise<void> {
    this.socket.end();
    await this.command.finish(CALL_TIMEOUT_MS);
  }
}

type Ask = (call: Call) => Promise<unknown>;

export class WorkerPair {
  static async start(provider: Provider, places: readonly [Place, Place]): Promise<WorkerPair> {
    const [client, server] = await Promise.all([
      Worker.start(WORKER, provider, places[0]),
      Worker.start(WORKER, provider, places[1]),
    ]);
    return new WorkerPair(client, server);
  }

  private constructor(
    private readonly client: Worker,
    private readonly server: Worker,
  ) {}

  async measure(work: Work): Promise<Result> {
    const [client, server] = [this.client, this.server].map(
      (worker) => (call: Call) => worker.ask(call),
    ) as [Ask, Ask];
    const mine = (await client({ call: 'prepare', work, listens: false })) as Target;
    const theirs = (await server({ call: 'prepare', work, listens: true })) as Target;
    await server({ call: 'serve', target: mine });
    const result = await client({ call: 'run', server: this.server.address, target: theirs });
    await server({ call: 'stop' });
    await client({ call: 'stop' });
    return result as Result;
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }
}
