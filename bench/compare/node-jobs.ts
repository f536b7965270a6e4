/**
 * The Node processes of a contender: two for each kind of job, which stay for all its cells. An
 * application does one of them, and V8 compiles code for what it has seen: in a process that has
 * been a bulk server, too, a ping takes a fifth longer.
 */
import type { Cell, Measurement } from './cells.js';
import { NodePair } from './node-pair.js';

const JOBS = ['bulk', 'small', 'ping'] as const;
type Job = (typeof JOBS)[number];

/** Between the last numbers of the addresses of two jobs. */
const ADDRESSES_EACH = 64;
const SMALL_BYTES = 4096;

function jobOf({ workload, bytes }: Cell): Job {
  if (workload === 'ping' || workload === 'ping-write' || workload === 'idle') return 'ping';
  return bytes < SMALL_BYTES ? 'small' : 'bulk';
}

export class NodeJobs {
  private readonly pairs = new Map<Job, NodePair>();

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
  ): Promise<NodeJobs> {
    const jobs = new NodeJobs(kind, local, remote, worker);
    await jobs.pairFor(JOBS[0]);
    return jobs;
  }

  private constructor(
    private readonly kind: string,
    private readonly local: string,
    private readonly remote: string,
    private readonly worker: string | undefined,
  ) {}

  async measure(cell: Cell, seconds: number): Promise<Measurement> {
    const pair = await this.pairFor(jobOf(cell));
    return pair.measure(cell, seconds);
  }

  async close(): Promise<void> {
    await Promise.all([...this.pairs.values()].map((pair) => pair.close()));
  }

  kill(): void {
    for (const pair of this.pairs.values()) pair.kill();
  }

  private async pairFor(job: Job): Promise<NodePair> {
    const present = this.pairs.get(job);
    if (present) return present;
    const [local, remote] = [this.local, this.remote].map((address) => addressFor(job, address));
    const pair = await NodePair.open(this.kind, local!, remote!, this.worker);
    this.pairs.set(job, pair);
    return pair;
  }
}

/** @param address of IPv4, its last number below 64 */
function addressFor(job: Job, address: string): string {
  const numbers = address.split('.').map(Number);
  numbers[3]! += ADDRESSES_EACH * JOBS.indexOf(job);
  return numbers.join('.');
}
