/** A peer that is a C program: two processes for each cell, which print what they have measured. */
import { type ChildProcess, spawn } from 'node:child_process';
import { type Interface, createInterface } from 'node:readline';
import { type Cell, type Measurement, slotsOfSet } from './cells.js';
import { measurementOf } from './measurement.js';
import { pinned } from './pinned.js';

/** Longer than a cell may take beyond its own time. */
const PATIENCE_MS = 30_000;

interface Result {
  readonly messages: number;
  readonly counted: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly p50?: number;
  readonly p99?: number;
}

export class ProgramPair {
  private readonly running = new Set<Side>();

  constructor(
    private readonly program: string,
    private readonly variant: string,
    private readonly local: string,
    private readonly remote: string,
  ) {}

  async measure(cell: Cell, seconds: number): Promise<Measurement> {
    const { workload, bytes, depth } = cell;
    const places = Math.max(depth, slotsOfSet(cell));
    const common = [workload, bytes, depth, seconds, this.variant, places].map(String);
    const server = this.start(1, ['server', this.remote, this.local, '0', ...common]);
    try {
      const { port } = await server.line<{ port: number }>(PATIENCE_MS);
      const client = this.start(0, ['client', this.local, this.remote, String(port), ...common]);
      const patienceMs = seconds * 1000 + PATIENCE_MS;
      const result = await client.line<Result>(patienceMs);
      const { cpuSeconds } = await server.line<Pick<Result, 'cpuSeconds'>>(patienceMs);
      return measurementOf(cell, result, result.cpuSeconds + cpuSeconds);
    } finally {
      this.kill();
    }
  }

  close(): Promise<void> {
    this.kill();
    return Promise.resolve();
  }

  kill(): void {
    for (const side of this.running) side.kill();
    this.running.clear();
  }

  private start(core: number, args: readonly string[]): Side {
    const side = new Side(this.program, core, args);
    this.running.add(side);
    return side;
  }
}

class Side {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string, undefined>;
  private readonly reader: Interface;
  private complaints = '';

  constructor(
    private readonly program: string,
    core: number,
    args: readonly string[],
  ) {
    const [command, ...rest] = pinned(core, [program, ...args]);
    this.child = spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.on('error', (error) => (this.complaints += error.message));
    this.child.stderr!.on('data', (text: Buffer) => (this.complaints += text.toString()));
    this.reader = createInterface({ input: this.child.stdout! });
    this.lines = this.reader[Symbol.asyncIterator]();
  }

  /** The next line of JSON. */
  async line<T>(patienceMs: number): Promise<T> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), patienceMs);
    const next = await this.lines.next();
    clearTimeout(timer);
    if (next.done !== true) return JSON.parse(next.value) as T;
    throw new Error(`${this.program}: ${this.complaints.trim() || 'ended without a result'}`);
  }

  kill(): void {
    this.reader.close();
    this.child.kill('SIGKILL');
  }
}
