/**
 * The simulator for endurance: connections made, used once and ended, one after another in several
 * lanes, while management datagrams, and with them all of the CM's messages, are lost, repeated,
 * delayed and overtaken. Beside them an agent of its own carries transfers by RMPP. Nothing may
 * leak and memory must stay flat.
 */
import { type Ia, type ManagementAgent, openIa } from '../../core/index.js';
import { Fabric, mock, type MockNode, SeededRandom } from '../../providers/mock/index.js';
import { heldBytes } from '../support/heap.js';
import { CycleSide } from './cycle-side.js';
import { disturbMads, type MadFaultCounts } from './mad-faults.js';
import { Trace, Violation } from './trace.js';

export interface CycleOptions {
  readonly seed: number;
  /** Connections to make in all. */
  readonly cycles: number;
  readonly log?: (line: string) => void;
}

export interface CycleReport {
  readonly hash: string;
  readonly cycles: number;
  /** Connections that came about; the others were given up by one side. */
  readonly established: number;
  readonly transfers: number;
  readonly packets: number;
  readonly mads: MadFaultCounts;
  readonly virtualUs: number;
  readonly wallMs: number;
  /** Bytes held after a tenth of the cycles and after all, timewait being over. */
  readonly heldEarlyBytes: number;
  readonly heldLateBytes: number;
}

const [CLIENT, SERVER] = ['10.0.0.1', '10.0.0.2'] as const;
const LANES = 16;
const FIRST_PORT = 7000;
/** A transfer by RMPP with every so many connections. */
const CYCLES_PER_TRANSFER = 50;
const VENDOR = { managementClass: 0x30, oui: 0x0d0a0b, rmpp: true } as const;
/** Longer than timewait, and than an RMPP transfer is remembered. */
const REST_US = 60_000_000;
/** Virtual time that a lane's connection may take at most: all of the CM's retries. */
const CYCLE_LIMIT_US = 150_000_000;

export class CycleSimulation {
  readonly trace: Trace;
  private readonly random: SeededRandom;
  private readonly fabric: Fabric;
  private readonly nodes: MockNode[] = [];
  private client: Ia | undefined;
  private server: Ia | undefined;
  private agent: ManagementAgent | undefined;
  private target = 0;
  private started = 0;
  private done = 0;
  private established = 0;
  private transfers = 0;
  private violation: unknown;

  constructor(readonly options: CycleOptions) {
    this.random = new SeededRandom(options.seed);
    this.fabric = new Fabric({ seed: this.random.u32() });
    this.trace = new Trace(() => this.fabric.clock.now(), options.log);
    this.fabric.tap = (_event, packet) => this.trace.packet(packet);
  }

  async run(): Promise<CycleReport> {
    const startedMs = performance.now();
    await this.open();
    const mads = disturbMads(this.fabric, this.random.fork());
    await this.runTo(Math.ceil(this.options.cycles / 10));
    const heldEarlyBytes = await this.rest();
    await this.runTo(this.options.cycles);
    const heldLateBytes = await this.rest();
    const virtualUs = Math.round(this.fabric.clock.now());
    await this.close();
    return {
      hash: this.trace.hash,
      cycles: this.done,
      established: this.established,
      transfers: this.transfers,
      packets: this.fabric.counters.sent,
      mads,
      virtualUs,
      wallMs: performance.now() - startedMs,
      heldEarlyBytes,
      heldLateBytes,
    };
  }

  private async open(): Promise<void> {
    const fabric = this.fabric;
    for (const address of [CLIENT, SERVER]) {
      const ia = await openIa(mock({ fabric, address }));
      if (address === CLIENT) this.client = ia;
      else this.server = ia;
      const node = fabric.node(address);
      if (node) this.nodes.push(node);
    }
    const server = this.ia('server');
    server.mad.registerAgent({
      ...VENDOR,
      methods: [1],
      onRequest: async (request) => {
        // A peer that has its answer may not say so any more.
        await request.respond({ data: request.data.slice().reverse() }).catch(() => undefined);
      },
    });
    this.agent = this.ia('client').mad.registerAgent(VENDOR);
    for (let lane = 0; lane < LANES; lane++) {
      server.createPsp({ connQual: FIRST_PORT + lane }).requests$.subscribe(({ cr }) => {
        this.guard(() => {
          const side = new CycleSide(
            server,
            (error) => this.fail(error),
            () => undefined,
          );
          side.disconnectsWhenReceived = this.random.percent(50);
          cr.accept(side.ep);
        });
      });
    }
  }

  private async runTo(target: number): Promise<void> {
    this.target = target;
    for (let lane = 0; lane < LANES; lane++) this.next(lane);
    const limitUs = this.fabric.clock.now() + target * CYCLE_LIMIT_US;
    const until = (): boolean =>
      this.done >= target || this.violation !== undefined || this.fabric.clock.now() > limitUs;
    await this.fabric.run({ until });
    this.throwViolation();
    if (this.done < target) throw new Violation(`${this.done} of ${target} cycles have ended`);
  }

  /** One connection: made, used, ended by either side. */
  private next(lane: number): void {
    if (this.started >= this.target) return;
    const number = this.started++;
    if (number % CYCLES_PER_TRANSFER === 0) this.transfer();
    const side = new CycleSide(
      this.ia('client'),
      (error) => this.fail(error),
      (established) => {
        this.done++;
        if (established) this.established++;
        this.next(lane);
      },
    );
    side.sends(this.random.below(1000) + 1, this.random.u32());
    side.ep.connect({ address: SERVER, connQual: FIRST_PORT + lane });
  }

  private transfer(): void {
    const data = new Uint8Array(this.random.below(5000)).fill(7);
    const options = { address: SERVER, attributeId: 1, data, timeoutMs: 3000, retries: 20 };
    this.agent?.request(options).then(
      (response) => {
        this.transfers++;
        if (Buffer.compare(response.data, data) !== 0) this.fail(new Violation('wrong bytes'));
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Lets timewait pass; what is left then is what was there before the first connection. */
  private async rest(): Promise<number> {
    await this.fabric.run({ forUs: REST_US });
    this.throwViolation();
    for (const node of this.nodes) {
      const { queuePairs, memory } = node.device.hca;
      // QP1, and the two regions of its buffers.
      const counts = [queuePairs.size, memory.size, node.driver.timers.size];
      const expected = [1, 2, 0];
      if (counts.join() !== expected.join()) {
        const what = `${counts.join(', ')} queue pairs, regions, timers`;
        throw new Violation(`${node.device.name} holds ${what}: not ${expected.join(', ')}`);
      }
    }
    return heldBytes();
  }

  private async close(): Promise<void> {
    this.fabric.faults.clear();
    const closing = Promise.all([this.ia('client').close(), this.ia('server').close()]);
    await this.fabric.run({ untilIdle: true });
    await closing;
    const { inUse } = this.fabric.pool;
    if (inUse !== 0) throw new Violation(`${inUse} packets are neither delivered nor lost`);
    for (const { device } of this.nodes) {
      const left = device.hca.queuePairs.size + device.hca.memory.size;
      if (left > 0) throw new Violation(`${device.name} leaks ${left} objects`);
    }
  }

  private ia(which: 'client' | 'server'): Ia {
    const ia = which === 'client' ? this.client : this.server;
    if (!ia) throw new Error('not open');
    return ia;
  }

  private guard(what: () => void): void {
    try {
      what();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.violation ??= error;
  }

  private throwViolation(): void {
    const violation = this.violation;
    if (violation === undefined) return;
    throw violation instanceof Error ? violation : new Error('a violation', { cause: violation });
  }
}
