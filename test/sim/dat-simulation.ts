/**
 * The simulator through the whole DAT API: interface adapters, CM connections over lossy links,
 * DTOs, all ways to take events, disconnecting and breaking, and teardown without leftovers.
 */
import { type Ia, openIa } from '../../core/index.js';
import { Fabric, SeededRandom, mock } from '../../providers/mock/index.js';
import { DatEndpoint, type DatWorld, TAKING } from './dat-endpoint.js';
import { DAT_PLANTS } from './dat-plants.js';
import { FaultSchedule } from './fault-schedule.js';
import { DatShared } from './dat-shared.js';
import type { SimOptions } from './options.js';
import type { SimReport } from './simulation.js';
import { Trace, Violation } from './trace.js';

const FIRST_PORT = 7000;
const MEAN_ACTION_US = 200;
const PAIRS = 2;
const MEAN_LIFE_US = 30_000;
/** Many times what a request takes when nothing is stuck. */
const US_PER_REQUEST = 5000;
/** A side that has not heard of the end by then ends it itself. */
const DEAF_US = 200_000;
/** Virtual time within which every connection must end once the faults have. */
const DRAIN_LIMIT_US = 20_000_000;

interface Pair {
  readonly name: string;
  readonly port: number;
  readonly clientIa: Ia;
  readonly serverIa: Ia;
  client: DatEndpoint | undefined;
  server: DatEndpoint | undefined;
  life: number;
}

export class DatSimulation implements DatWorld {
  readonly random: SeededRandom;
  readonly fabric: Fabric;
  readonly trace: Trace;
  private readonly faults: FaultSchedule;
  private readonly addresses: readonly string[];
  private readonly ias: Ia[] = [];
  private readonly pairs: Pair[] = [];
  private readonly shared = new Map<Ia, DatShared>();
  private readonly marks = new Map<string, number>();
  private violation: unknown;
  private posted = 0;
  private connects = 0;
  private steps = 0;
  private ending = false;

  constructor(readonly options: SimOptions) {
    this.random = new SeededRandom(options.seed);
    this.fabric = new Fabric({ seed: this.random.u32() });
    this.trace = new Trace(() => this.fabric.clock.now(), options.log);
    this.fabric.tap = (_event, packet) => this.trace.packet(packet);
    const count = options.nodes || this.random.between(2, 3);
    this.addresses = Array.from({ length: count }, (_, i) => `10.0.0.${i + 1}`);
    const { fabric, trace } = this;
    this.faults = new FaultSchedule(fabric, this.addresses, this.random.fork(), trace, options);
  }

  mark(name: string): void {
    this.marks.set(name, (this.marks.get(name) ?? 0) + 1);
  }

  guard(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.violation ??= error;
    }
  }

  onEnd(endpoint: DatEndpoint): void {
    const pair = this.pairs.find(({ client, server }) => [client, server].includes(endpoint));
    if (!pair) return;
    const { life } = pair;
    const { peer } = endpoint;
    if (!peer || peer.end) this.after(100, () => this.renew(pair, life));
    else {
      this.after(DEAF_US, () => {
        if (pair.life === life && !peer.end && peer.ep.state === 'CONNECTED') peer.ep.disconnect();
      });
    }
  }

  async run(): Promise<SimReport> {
    const started = performance.now();
    await this.open();
    this.faults.start();
    await this.work();
    await this.drain();
    const ended = this.fabric.clock.now();
    await this.close();
    return {
      hash: this.trace.hash,
      ops: this.posted,
      packets: this.fabric.counters.sent,
      steps: this.steps,
      connections: this.connects,
      virtualUs: Math.round(ended),
      wallMs: performance.now() - started,
      fabric: { ...this.fabric.counters },
      marks: this.marks,
    };
  }

  /** Posts what is to be posted; consumers that hear nothing any more do not get on. */
  private async work(): Promise<void> {
    const { ops } = this.options;
    const limitUs = ops * US_PER_REQUEST + DEAF_US;
    await this.runWhile(() => this.posted < ops && this.fabric.clock.now() < limitUs);
    if (this.posted >= ops) return;
    throw new Violation(`only ${this.posted} of ${ops} requests were posted in ${limitUs} us`);
  }

  private async open(): Promise<void> {
    for (const address of this.addresses) {
      this.ias.push(await openIa(mock({ fabric: this.fabric, address })));
      this.plant(address);
    }
    for (const ia of this.ias) this.shared.set(ia, new DatShared(ia));
    for (const clientIa of this.ias) {
      for (const serverIa of this.ias) {
        for (let i = 0; i < PAIRS; i++)
          if (serverIa !== clientIa) this.makePair(clientIa, serverIa);
      }
    }
  }

  private plant(address: string): void {
    const { plant } = this.options;
    const node = this.fabric.node(address);
    if (plant === undefined || !node) return;
    const apply = DAT_PLANTS[plant];
    if (!apply) {
      throw new RangeError(`no plant "${plant}": there are ${Object.keys(DAT_PLANTS).join(', ')}`);
    }
    apply(node);
  }

  private makePair(clientIa: Ia, serverIa: Ia): void {
    const name = `d${this.pairs.length}`;
    const port = FIRST_PORT + this.pairs.length;
    const sides = { client: undefined, server: undefined };
    const pair: Pair = { name, port, clientIa, serverIa, ...sides, life: 0 };
    this.pairs.push(pair);
    serverIa.createPsp({ connQual: port }).requests$.subscribe(({ cr }) => {
      this.guard(() => this.answer(pair, cr));
    });
    this.connect(pair);
  }

  private connect(pair: Pair, old?: DatEndpoint): void {
    pair.life++;
    this.connects++;
    const { name, life, clientIa, port } = pair;
    const client = old ?? this.makeEndpoint(`${name}c#${life}`, clientIa);
    pair.client = client;
    client.postReceives(8);
    client.ep.connect({ address: this.addressOf(pair.serverIa), connQual: port });
    this.trace.note(`${client.name} connects`);
    this.act(client);
    this.after(this.random.exponential(MEAN_LIFE_US), () => {
      const side = this.random.pick([client, client.peer]);
      if (side && !side.end && side.ep.state === 'CONNECTED') this.disconnect(side);
      else if (!client.end) this.disconnectLater(client);
    });
  }

  private makeEndpoint(name: string, ia: Ia): DatEndpoint {
    const taking = this.random.pick(TAKING);
    const shared = this.random.percent(40) ? this.shared.get(ia) : undefined;
    const kind = shared ? `${taking}, SRQ` : taking;
    return new DatEndpoint(`${name} (${kind})`, ia, taking, shared, this);
  }

  private disconnectLater(client: DatEndpoint): void {
    this.after(MEAN_LIFE_US, () => {
      if (client.end) return;
      if (client.ep.state === 'CONNECTED') this.disconnect(client);
      else this.disconnectLater(client);
    });
  }

  private disconnect(side: DatEndpoint): void {
    const flag = this.random.pick(['abrupt', 'graceful'] as const);
    this.trace.note(`${side.name} disconnects (${flag})`);
    side.ep.disconnect(flag);
  }

  private answer(pair: Pair, cr: { accept(ep: DatEndpoint['ep']): void; reject(): void }): void {
    const { client, name, life, serverIa } = pair;
    if (this.random.percent(10) || !client || client.end || client.peer) {
      cr.reject();
      return;
    }
    const server = this.makeEndpoint(`${name}s#${life}`, serverIa);
    pair.server = server;
    server.peer = client;
    client.peer = server;
    server.postReceives(8);
    cr.accept(server.ep);
    this.act(server);
  }

  private act(side: DatEndpoint): void {
    this.after(this.random.exponential(MEAN_ACTION_US), () => {
      if (side.end || this.ending) return;
      const before = side.posted;
      if (side.ep.state === 'CONNECTED') {
        side.postReceives(this.random.below(4));
        side.postRequests(this.random.below(4));
      }
      this.posted += side.posted - before;
      this.act(side);
    });
  }

  /** Frees both sides of an ended connection and makes another one. */
  private renew(pair: Pair, life: number): void {
    if (pair.life !== life || !pair.client?.end) return;
    if (pair.server && !pair.server.end) return;
    const { client } = pair;
    pair.server?.free();
    pair.client = pair.server = undefined;
    const again = !this.ending && this.random.percent(40) && client.ep.state === 'DISCONNECTED';
    if (again) {
      client.reset(`${pair.name}c#${life + 1} (again)`);
      this.connect(pair, client);
      return;
    }
    client.free();
    this.after(this.random.exponential(500), () => {
      if (!this.ending) this.connect(pair);
    });
  }

  private async drain(): Promise<void> {
    this.ending = true;
    this.faults.stop();
    const limitUs = this.fabric.clock.now() + DRAIN_LIMIT_US;
    const left = (): DatEndpoint[] =>
      this.pairs.flatMap(({ client, server }) => [client, server].filter((side) => !!side));
    const end = (): void => {
      for (const side of left()) {
        if (side.ep.state === 'CONNECTED') side.ep.disconnect();
        else if (side.end && !side.peer) this.onEnd(side);
      }
      if (left().length > 0) this.after(DEAF_US, end);
    };
    this.guard(end);
    await this.runWhile(() => left().length > 0 && this.fabric.clock.now() < limitUs);
    const names = left().map(({ name, ep }) => `${name} is ${ep.state}`);
    if (names.length > 0) throw new Violation(`connections do not end: ${names.join(', ')}`);
  }

  private async close(): Promise<void> {
    const nodes = this.addresses.map((address) => this.fabric.node(address));
    const closing = Promise.all(this.ias.map((ia) => ia.close('abrupt')));
    await this.fabric.run({ untilIdle: true });
    await closing;
    if (this.violation !== undefined) this.throw();
    for (const [i, node] of nodes.entries()) {
      const queuePairs = node?.device.hca.queuePairs.size;
      const regions = node?.device.hca.memory.size;
      const timers = node?.driver.timers.size;
      if (queuePairs !== 0 || regions !== 0 || timers !== 0) {
        const counts = `${queuePairs} queue pairs, ${regions} regions, ${timers} timers`;
        throw new Violation(`${this.addresses[i]} leaks: ${counts}`);
      }
    }
    const { inUse } = this.fabric.pool;
    if (inUse !== 0) throw new Violation(`${inUse} packets are neither delivered nor lost`);
  }

  private async runWhile(condition: () => boolean): Promise<void> {
    const until = (): boolean => {
      this.steps++;
      return !condition() || this.violation !== undefined;
    };
    await this.fabric.run({ until });
    if (this.violation !== undefined) this.throw();
  }

  private throw(): never {
    throw this.violation instanceof Error ? this.violation : new Error(String(this.violation));
  }

  private addressOf(ia: Ia): string {
    return this.addresses[this.ias.indexOf(ia)] ?? '';
  }

  private after(us: number, task: () => void): void {
    const { clock } = this.fabric;
    clock.at(clock.now() + us, () => this.guard(task));
  }
}
