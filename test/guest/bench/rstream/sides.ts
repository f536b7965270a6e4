// Who talks to whom in a cell of `npm run bench:rstream`: librdmacm's rstream, or a worker of ours.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { kernelListens } from '../../cases/rsocket-programs.js';
import { transcript } from '../../cases/captured.js';
import type { Guest } from '../../guest.js';
import type { PathMtu } from '../../lab.js';
import { placeOf, type Provider } from '../places.js';
import { Worker } from '../workers.js';
import { type Call, RSTREAM_PORT, type Work } from './work.js';

const RUN_TIMEOUT_MS = 120_000;
const PROGRAM = join('test', 'guest', 'bench', 'rstream', 'worker.js');

/** One end, wherever it is. */
interface End {
  readonly address: string;
  /** Resolves when it listens. */
  serve(work: Work): Promise<void>;
  /** What was served has ended. */
  stop(): Promise<void>;
  /** Microseconds a transfer. */
  run(server: string, work: Work): Promise<number>;
  close(): Promise<void>;
}

/** Client and server of each side: `c` is rstream over rxe. */
export const SIDES = {
  rstream: ['c', 'c'],
  verbs: ['verbs', 'verbs'],
  'rstream to verbs': ['c', 'verbs'],
  'rstream to softroce': ['c', 'softroce'],
} as const satisfies Readonly<Record<string, readonly ['c' | Provider, 'c' | Provider]>>;
export type Side = keyof typeof SIDES;

/** The last column of what rstream prints, behind the heading: microseconds a transfer. */
export function microsecondsOf(output: string): number {
  const last = output.trim().split('\n').at(-1) ?? '';
  const microseconds = Number(last.trim().split(/\s+/).at(-1));
  assert.ok(/s\s/.test(last) && microseconds > 0, `rstream printed no result: ${output}`);
  return microseconds;
}

class Rstream implements End {
  private serving: ReturnType<Guest['spawn']> | undefined = undefined;

  constructor(private readonly guest: Guest) {}

  get address(): string {
    return this.guest.ipv4;
  }

  async serve(work: Work): Promise<void> {
    this.serving = this.guest.spawn(`rstream -b ${this.address} ${lettersOf(work)}`);
    await kernelListens(this.guest, RSTREAM_PORT);
  }

  async stop(): Promise<void> {
    await this.serving?.finish(RUN_TIMEOUT_MS);
  }

  async run(server: string, work: Work): Promise<number> {
    const options = { timeoutMs: RUN_TIMEOUT_MS };
    const ran = await this.guest.run(`rstream -s ${server} ${lettersOf(work)}`, options);
    assert.equal(ran.code, 0, transcript(ran));
    return microsecondsOf(ran.stdout);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Both ends sleep where there is nothing to do. */
function lettersOf({ bytes, transfers, rounds }: Work): string {
  return `-S ${bytes} -C ${transfers} -I ${rounds} -T b`;
}

class Ours implements End {
  constructor(private readonly worker: Worker) {}

  get address(): string {
    return this.worker.address;
  }

  async serve(work: Work): Promise<void> {
    await this.ask({ call: 'serve', work });
  }

  async stop(): Promise<void> {
    await this.ask({ call: 'stop' });
  }

  async run(server: string, work: Work): Promise<number> {
    return (await this.ask({ call: 'run', server, work })) as number;
  }

  close(): Promise<void> {
    return this.worker.close();
  }

  private ask(call: Call): Promise<unknown> {
    return this.worker.ask(call);
  }
}

/** The ends of two guests, each made once: a process of Node takes seconds to start there. */
export class Ends {
  private readonly made = new Map<string, Promise<End>>();

  constructor(
    private readonly guests: readonly [Guest, Guest],
    private readonly mtu: PathMtu,
  ) {}

  async measure(side: Side, work: Work): Promise<number> {
    const [client, server] = await Promise.all(SIDES[side].map((kind, at) => this.end(kind, at)));
    if (client === undefined || server === undefined) throw new Error(`${side} has no two ends`);
    await server.serve(work);
    const microseconds = await client.run(server.address, work);
    await server.stop();
    return microseconds;
  }

  async close(): Promise<void> {
    for (const end of this.made.values()) await (await end).close();
  }

  private end(kind: 'c' | Provider, at: number): Promise<End> {
    const key = `${kind} ${at}`;
    const present = this.made.get(key);
    if (present !== undefined) return present;
    const end = this.make(kind, this.guests[at] as Guest);
    this.made.set(key, end);
    return end;
  }

  private async make(kind: 'c' | Provider, guest: Guest): Promise<End> {
    if (kind === 'c') return new Rstream(guest);
    return new Ours(await Worker.start(PROGRAM, kind, await placeOf(guest, kind, this.mtu)));
  }
}
