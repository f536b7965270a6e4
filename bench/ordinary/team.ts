/** The processes of a program: a client and a server, and relays between them. */
import { fileURLToPath } from 'node:url';
import type { Settling } from '../compare/settle.js';
import { type Seat, WorkerProcess } from '../compare/worker-process.js';
import type { Job } from './link.js';
import { PROGRAMS } from './programs.js';
import { COLD_MESSAGES, coldStep } from './rows.js';
import { together, type Usage, used } from './usage.js';
import type { Count } from './work.js';
import type { OrdinaryCall } from './worker.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const PATIENCE_MS = 60_000;
/** Ports of relays, which have addresses of their own. */
const RELAY_PORT = 7471;
const RELAY_HOSTS = ['103', '104'];
/**
 * A side polls if it makes more turns in vain than that for a message, or sleeps less than that.
 */
const POLLING_TURNS = 0.5;
const POLLING_IDLE = 0.1;

/** Where the processes run: namespaces and addresses. */
export interface Where {
  readonly client: Seat & { readonly address: string };
  readonly server: Seat & { readonly address: string };
}

/** A measurement: microseconds and counts for each message. */
export interface Sample {
  readonly messages: number;
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
  /** CPU time of all processes. */
  readonly cpu: number;
  readonly voluntary: number;
  readonly involuntary: number;
  readonly turns: number;
  readonly emptyTurns: number;
  readonly polls: string;
  /** Bytes a second. */
  readonly bytesPerSecond: number;
  /** Of the bytes that went over the link, beside a flow. */
  readonly share?: number;
}

type Worker = WorkerProcess<OrdinaryCall>;

export class Team {
  /**
   * Starts the processes.
   * @param plant a delay that a test plants into the server
   * @param worker of another build, when two are compared
   */
  static async open(program: string, where: Where, plant = '', worker = WORKER): Promise<Team> {
    const { kind, relay, isAlone } = PROGRAMS[program]!;
    const { client, server } = where;
    const start = (what: string, seat: Where['client'], remote: string): Worker =>
      new WorkerProcess<OrdinaryCall>(what, seat.address, remote, seat, worker);
    const relays = (relay === undefined ? [] : RELAY_HOSTS).map((host) => {
      return { ...client, address: client.address.replace(/\d+$/, host) };
    });
    const served = plant === '' ? kind : `${kind}-${plant}`;
    const team = new Team(
      start(kind, client, server.address),
      isAlone ? undefined : start(served, server, client.address),
      relays.map((seat) => ({ address: seat.address, process: start(relay!, seat, '') })),
      server.address,
      relay === 'forward',
    );
    try {
      await Promise.all(team.processes.map((each) => each.answer(PATIENCE_MS)));
    } catch (error) {
      team.kill();
      throw error;
    }
    return team;
  }

  private job: Job | undefined;

  private constructor(
    private readonly client: Worker,
    private readonly server: Worker | undefined,
    private readonly relays: readonly { readonly address: string; readonly process: Worker }[],
    private readonly serverAddress: string,
    private readonly isForwarded: boolean,
  ) {}

  get pids(): readonly number[] {
    return this.processes.map(({ pid }) => pid);
  }

  /** Listens and connects. */
  async start(job: Job): Promise<void> {
    await this.connect(job, await this.listen(job));
  }

  /** Works until windows agree. */
  async warm(limitSeconds: number): Promise<Settling> {
    const patienceMs = limitSeconds * 1000 + PATIENCE_MS;
    const { value } = await this.client.ask({ call: 'warm', limitSeconds }, patienceMs);
    return value as Settling;
  }

  async measure(seconds: number, messages = Infinity): Promise<Sample> {
    const before = await this.look();
    const patienceMs = seconds * 1000 + PATIENCE_MS;
    const { value } = await this.client.ask({ call: 'run', seconds, messages }, patienceMs);
    const after = await this.look();
    return sampleOf(this.job!, value as Count, before, after);
  }

  /** A row for each step of processes that have done nothing yet. */
  async measureCold(job: Job): Promise<Readonly<Record<string, Sample>>> {
    const opened = await Promise.all(
      this.processes.map(async (each) => {
        return (await each.ask({ call: 'opening' })).value as readonly [Usage, Usage];
      }),
    );
    const [atFirst, imported] = [opened.map(([first]) => first), opened.map(([, last]) => last)];
    const idle = await this.look();
    const port = await this.listen(job);
    const listening = await this.look();
    await this.connect(job, port);
    const connected = await this.look();
    const serverImport = stepOf(atFirst.slice(1), imported.slice(1));
    const listen = stepOf(idle.slice(1), listening.slice(1));
    const { cpu, mean } = listen;
    const steps: Record<string, Sample> = {
      import: stepOf(atFirst.slice(0, 1), imported.slice(0, 1)),
      listen,
      'import and listen': {
        ...listen,
        cpu: serverImport.cpu + cpu,
        mean: serverImport.mean + mean,
      },
      connect: stepOf(listening, connected),
    };
    let done = 0;
    for (const messages of COLD_MESSAGES) {
      await this.client.ask({ call: 'run', seconds: Infinity, messages: messages - done });
      done = messages;
      steps[coldStep(messages)] = stepOf(connected, await this.look());
    }
    return steps;
  }

  async close(): Promise<void> {
    // The client first: what is left of its connections ends with its process.
    for (const each of this.processes) await each.close();
  }

  kill(): void {
    for (const each of this.processes) each.kill();
  }

  private get processes(): readonly Worker[] {
    const relays = this.relays.map(({ process }) => process);
    return [this.client, ...(this.server ? [this.server] : []), ...relays];
  }

  private async listen(job: Job): Promise<number> {
    this.job = job;
    const answer = await this.server?.ask({ call: 'listen', job }, PATIENCE_MS);
    return (answer?.value ?? 0) as number;
  }

  private async connect(job: Job, serverPort: number): Promise<void> {
    const [near, far] = this.relays;
    let port = serverPort;
    if (near !== undefined && far !== undefined) {
      const between = `${this.isForwarded ? 'rsocket' : 'tcp'}:${far.address}:${RELAY_PORT}`;
      const [entry, exit] = [RELAY_PORT, port].map((each) => `tcp:${this.serverAddress}:${each}`);
      for (const [{ process, address }, listen, to] of [
        [far, between, exit!],
        [near, entry!, between],
      ] as const) {
        await process.ask({ call: 'relay', relay: { listen, to, from: address } }, PATIENCE_MS);
      }
      port = RELAY_PORT;
    }
    await this.client.ask({ call: 'connect', job, port }, PATIENCE_MS);
  }

  /** Client, server, relays. */
  private async look(): Promise<readonly Usage[]> {
    const answers = await Promise.all(this.processes.map((each) => each.ask({ call: 'look' })));
    return answers.map(({ value }) => value as Usage);
  }
}

function sampleOf(
  job: Job,
  count: Count,
  before: readonly Usage[],
  after: readonly Usage[],
): Sample {
  const sides = before.map((each, i) => used(each, after[i]!));
  const all = together(sides);
  const { messages, seconds } = count;
  return {
    messages,
    mean: count.meanUs,
    p50: count.p50Us,
    p99: count.p99Us,
    cpu: all.cpuUs / messages,
    voluntary: all.voluntary / messages,
    involuntary: all.involuntary / messages,
    turns: all.turns / messages,
    emptyTurns: all.emptyTurns / messages,
    polls: pollingOf(job, count, sides),
    bytesPerSecond: (messages * job.bytes) / seconds,
  };
}

/**
 * Sides that poll. Each turn in vain shows it; with one request in flight a side also has time to
 * sleep while the other one works.
 */
function pollingOf(job: Job, { messages, seconds }: Count, sides: readonly Usage[]): string {
  const sleeps = job.work === 'paced' || (job.work === 'ask' && job.depth * job.connections === 1);
  const polls = sides.map(({ emptyTurns, idleMs }) => {
    return (
      emptyTurns > POLLING_TURNS * messages || (sleeps && idleMs < POLLING_IDLE * seconds * 1000)
    );
  });
  const names = ['client', 'server', 'relay', 'relay'].filter((_, i) => polls[i]);
  return names.length === 0 ? 'no' : names.length === sides.length ? 'all' : names.join(' and ');
}

/** A step as if it were a message. */
function stepOf(before: readonly Usage[], after: readonly Usage[]): Sample {
  const sides = before.map((each, i) => used(each, after[i]!));
  const { cpuUs, voluntary, involuntary, turns, emptyTurns } = together(sides);
  const mean = sides[0]!.ms * 1000;
  const times = { mean, p50: mean, p99: mean, cpu: cpuUs };
  const counts = { voluntary, involuntary, turns, emptyTurns, messages: 1, bytesPerSecond: 0 };
  return { ...times, ...counts, polls: '' };
}
