// Our two ends of a cell, each a Node process in a guest, and what is said to them.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import type { Answer, Call, Result, Target, Work } from '../../../bench/verbs/workload.js';
import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import { repositoryRoot } from '../paths.js';

const WORKER = join(repositoryRoot, 'dist', 'bench', 'verbs', 'worker.js');
const CONTROL_PORT = 9100;
/** Node takes seconds to start under emulation. */
const START_TIMEOUT_MS = 180_000;
const CALL_TIMEOUT_MS = 120_000;

/** Where a worker runs: in the guest itself, or in a network namespace of it. */
export interface Place {
  readonly guest: Guest;
  readonly address: string;
  /** The beginning of its command. */
  readonly prefix?: string;
}

class Worker {
  static async start(provider: 'verbs' | 'softroce', place: Place): Promise<Worker> {
    const { guest, address, prefix = '' } = place;
    const words = `'${process.execPath}' '${WORKER}' ${provider} ${address} ${CONTROL_PORT}`;
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

  async ask(call: Call): Promise<Target | Result | undefined> {
    this.socket.write(`${JSON.stringify(call)}\n`);
    const timer = setTimeout(() => this.socket.destroy(), CALL_TIMEOUT_MS);
    const line = await this.lines.next();
    clearTimeout(timer);
    const where = `${call.call} on ${this.address}`;
    if (line.done === true) {
      throw new Error(`${where}: no answer. ${this.command.stderr.slice(-2000)}`);
    }
    const answer = JSON.parse(line.value) as Answer;
    if ('error' in answer) throw new Error(`${where}: ${answer.error}${this.command.stderr}`);
    return answer.value;
  }

  async close(): Promise<void> {
    this.socket.end();
    await this.command.finish(CALL_TIMEOUT_MS);
  }
}

export class WorkerPair {
  static async start(
    provider: 'verbs' | 'softroce',
    places: readonly [Place, Place],
  ): Promise<WorkerPair> {
    const [client, server] = await Promise.all([
      Worker.start(provider, places[0]),
      Worker.start(provider, places[1]),
    ]);
    return new WorkerPair(client, server);
  }

  private constructor(
    private readonly client: Worker,
    private readonly server: Worker,
  ) {}

  async measure(work: Work): Promise<Result> {
    const { client, server } = this;
    const mine = (await client.ask({ call: 'prepare', work, listens: false })) as Target;
    const theirs = (await server.ask({ call: 'prepare', work, listens: true })) as Target;
    await server.ask({ call: 'serve', target: mine });
    const result = await client.ask({ call: 'run', server: server.address, target: theirs });
    await server.ask({ call: 'stop' });
    await client.ask({ call: 'stop' });
    return result as Result;
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }
}
