/** Two Node processes of a contender. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cell, Counters, Measurement } from './cells.js';
import type { Count, Target } from './end.js';
import { measurementOf } from './measurement.js';
import { Neighbour } from './neighbour.js';
import { WorkerProcess } from './worker-process.js';

/** Idle processes are watched for so long at least. */
const IDLE_SECONDS = 1;

export class NodePair {
  /**
   * @param kind that the worker knows
   * @param worker of another build, when two are compared
   * @throws Error when an address or its UDP port cannot be had
   */
  static async open(
    kind: string,
    local: string,
    remote: string,
    worker?: string,
  ): Promise<NodePair> {
    const ends = [
      new WorkerProcess(kind, local, remote, { core: 0 }, worker),
      new WorkerProcess(kind, remote, local, { core: 1 }, worker),
    ] as const;
    try {
      await Promise.all(ends.map((end) => end.answer()));
    } catch (error) {
      for (const end of ends) end.kill();
      throw error;
    }
    return new NodePair(...ends);
  }

  private constructor(
    private readonly client: WorkerProcess,
    private readonly server: WorkerProcess,
  ) {}

  async measure(cell: Cell, seconds: number): Promise<Measurement> {
    const { arrangement } = cell;
    for (const end of [this.client, this.server]) end.place(arrangement !== 'unpinned');
    if (arrangement !== 'neighbour') return this.measureAlone(cell, seconds);
    const neighbour = await Neighbour.on(this.client.core);
    try {
      return await this.measureAlone(cell, seconds);
    } finally {
      neighbour.leave();
    }
  }

  private async measureAlone(cell: Cell, seconds: number): Promise<Measurement> {
    const listening = await this.server.ask({ call: 'listen', cell });
    const target = listening.value as Target;
    const counted = await this.counters();
    const before = this.client.cpuSeconds + this.server.cpuSeconds;
    const run = await this.client.ask({ call: 'run', cell, target, seconds });
    if (cell.workload === 'idle') return this.idle(Math.max(seconds, IDLE_SECONDS));
    const ended = await this.server.ask({ call: 'stop' });
    const cpuSeconds = run.cpuSeconds + ended.cpuSeconds - before;
    await this.client.ask({ call: 'stop' });
    const measurement = measurementOf(cell, run.value as Count, cpuSeconds);
    if (counted === undefined) return measurement;
    const now = (await this.counters()) ?? {};
    const entries = Object.keys(counted).map(
      (name) => [name, now[name]! - counted[name]!] as const,
    );
    return { ...measurement, counters: Object.fromEntries(entries) };
  }

  /** Of both ends together; undefined without a device, and from a build that tells none. */
  private async counters(): Promise<Counters | undefined> {
    const ends = [this.client, this.server];
    const answers = await Promise.all(ends.map((end) => end.ask({ call: 'counters' })));
    const [client, server] = answers.map(({ value }) => value as Counters | undefined);
    if (client === undefined || server === undefined) return undefined;
    const names = Object.keys(client);
    return Object.fromEntries(names.map((name) => [name, client[name]! + server[name]!]));
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }

  kill(): void {
    this.client.kill();
    this.server.kill();
  }

  /** What both use while nothing happens, in percent of a core. */
  private async idle(seconds: number): Promise<Measurement> {
    const ends = [this.client, this.server];
    await Promise.all(ends.map((end) => end.ask({ call: 'look' })));
    const before = this.client.cpuSeconds + this.server.cpuSeconds;
    await sleep(seconds * 1000);
    await Promise.all(ends.map((end) => end.ask({ call: 'look' })));
    const cpuSeconds = this.client.cpuSeconds + this.server.cpuSeconds - before;
    await this.server.ask({ call: 'stop' });
    await this.client.ask({ call: 'stop' });
    return { value: (100 * cpuSeconds) / seconds, bytes: 0, cpuSeconds };
  }
}
