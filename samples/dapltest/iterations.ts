/** The iterations of a transaction test: all operations, repeated on each endpoint of a thread. */
import type { Lane } from './lane.js';
import type { TransactionCommand } from './messages.js';
import { BARRIER_COUNT, lengthOf, type Operation, type Role } from './operations.js';
import type { Traffic } from './report.js';

export class Iterations {
  private readonly operations: readonly Operation[];
  /** Sends (-f) whose completion is collected with a later receive, by index, oldest first. */
  private readonly deferred: number[] = [];
  readonly traffic: Traffic = { sent: 0, received: 0, read: 0, written: 0 };

  constructor(
    private readonly lanes: readonly Lane[],
    private readonly role: Role,
    private readonly command: TransactionCommand,
  ) {
    this.operations = command.operations;
  }

  /** Prepares the first iteration, before the other side may begin. */
  prepare(): void {
    for (const [index, op] of this.operations.entries()) {
      if (op.transfer === 'SR' && !this.isOurs(op)) this.each((lane) => lane.postReceive(index));
    }
    this.fill(0);
  }

  async run(): Promise<void> {
    const { iterations } = this.command;
    for (let iteration = 0; iteration < iterations; iteration++) {
      const isLast = iteration === iterations - 1;
      if (isLast) this.each((lane) => lane.expectSync());
      for (const [index, op] of this.operations.entries()) {
        this.count(op);
        if (this.isOurs(op)) await this.initiate(index, op);
        else if (op.transfer === 'SR') await this.take(index, op, !isLast);
        if (index === this.checkpoint) this.validate(iteration);
      }
    }
  }

  /** Posts on every endpoint, then waits for each. */
  private async initiate(index: number, op: Operation): Promise<void> {
    this.each((lane) => lane.post(index));
    if (op.reapSendOnReceive && op.initiator === 'client') this.deferred.push(index);
    else await this.all((lane) => lane.complete(index));
  }

  private async take(index: number, op: Operation, again: boolean): Promise<void> {
    await this.all((lane) => lane.receive(index));
    if (op.reapSendOnReceive && op.initiator === 'server') {
      const sent = this.deferred.shift();
      if (sent !== undefined) await this.all((lane) => lane.complete(sent));
    }
    if (again) this.each((lane) => lane.postReceive(index));
  }

  /**
   * The operation of the barrier after which data may be checked. At the end of a validated
   * iteration, the server tells the client that it touches nothing more, the client tells the
   * server the same, and the server goes on.
   */
  private get checkpoint(): number | undefined {
    if (!this.command.validate) return undefined;
    return this.operations.length - (this.role === 'client' ? BARRIER_COUNT : BARRIER_COUNT - 1);
  }

  private validate(iteration: number): void {
    for (const [index, op] of this.checked()) {
      // Check data that we received: by the peer's message or write, or by our own read.
      if (this.isOurs(op) !== (op.transfer === 'RR')) continue;
      this.each((lane) => lane.check(index, valueOf(iteration)));
    }
    this.fill(iteration + 1);
  }

  private fill(iteration: number): void {
    if (!this.command.validate || iteration >= this.command.iterations) return;
    for (const [index, op] of this.checked()) {
      if (this.isOurs(op) === (op.transfer === 'RR')) continue;
      this.each((lane) => lane.fill(index, valueOf(iteration)));
    }
  }

  private checked(): [number, Operation][] {
    return [...this.operations.entries()].slice(0, -BARRIER_COUNT);
  }

  private count(op: Operation): void {
    const bytes = lengthOf(op) * this.lanes.length;
    if (op.transfer === 'RR') this.traffic.read += bytes;
    else if (op.transfer === 'RW') this.traffic.written += bytes;
    else if (this.isOurs(op)) this.traffic.sent += bytes;
    else this.traffic.received += bytes;
  }

  private isOurs({ initiator }: Operation): boolean {
    return initiator === this.role;
  }

  private each(step: (lane: Lane) => void): void {
    for (const lane of this.lanes) step(lane);
  }

  private async all(step: (lane: Lane) => Promise<void>): Promise<void> {
    await Promise.all(this.lanes.map(step));
  }
}

/** The value of the bytes of an iteration: never zero at first, which is the initial memory. */
function valueOf(iteration: number): number {
  return (iteration + 1) & 0xff;
}
