/**
 * Processes of a shared address are killed, each at a step that a seed decides: a message of the
 * group, or a call of the system for it (deadly-addon.ts). What must hold after each, for those
 * that are left: data flows on, what the dead had is free again, nothing that others do hangs, and
 * no descriptor, slot or memory is lost.
 */
import { readFileSync } from 'node:fs';
import { gidFromIp } from '../../core/spi/index.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { emitMessage } from '../../providers/shared-address/messages.js';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';
import { groupNames } from '../../providers/softroce/shared/names.js';
import { patience, paused } from '../support/patience.js';
import type { TableUse, Usage } from './usage.js';
import { opened, Program } from './programs.js';
import { Comer, deathOfComer, DeathsOfStayers, type Ended, Stayer, type Where } from './victims.js';

const COMERS = 4;
const STAYERS = 2;
/** Of the killed and those that live: the lasting one and the keeper, too. */
const MOST_USED = COMERS + STAYERS + 2;
const LASTING_PORT = 2001;
const FIRST_STAYER_PORT = 10_001;
const FIRST_SERVICE = 0x7000000;
/** Others than the lasting one take the broker's place, where there are some; the keeper last. */
const SLOW_MS = 500;
const SLOWER_MS = 1_500;
const USAGE_EVERY = 25;
/** Of what must come to be after a kill, on an idle machine. */
const SETTLED_MS = 30_000;
/** A connection whose request a killed broker had is asked for again, twice if need be. */
const VISIT_MS = 60_000;
const STRANGER_EACH_MS = 250;
/**
 * A table is 3.3 MB, a client of the broker some KB: what a thousand kills would leave of them. The
 * heap of those with connections goes up and down with what is in timewait: a few hundred visits.
 */
const MOST_GROWTH_BYTES = { rss: 64e6, heap: 20e6, heapOfKeeper: 3e6 };

export interface KillReport {
  kills: number;
  brokerKills: number;
  joins: number;
  /** Messages that have come back on the connection of those that are not killed. */
  flowed: number;
  visits: number;
  /** How often a process was killed so: `before it sends HELLO, member`. */
  readonly at: Map<string, number>;
  readonly growth: { rssBytes: number; heapBytes: number; keeperHeapBytes: number };
  /** What went wrong, in words. */
  readonly failures: string[];
}

export async function killBySeed(seed: number, kills: number, where: Where): Promise<KillReport> {
  const soak = new KillSoak(new SeededRandom(seed), kills, where);
  return soak.run();
}

class KillSoak {
  private readonly report: KillReport = {
    kills: 0,
    brokerKills: 0,
    joins: 0,
    flowed: 0,
    visits: 0,
    at: new Map(),
    growth: { rssBytes: 0, heapBytes: 0, keeperHeapBytes: 0 },
    failures: [],
  };
  private lasting!: Program;
  /**
   * Is there while the lasting one comes again: a group whose processes are all killed at once
   * leaves none that could tell their peers.
   */
  private keeper!: Program;
  private watcher!: Program;
  private caller!: Program;
  private readonly calls = new Turns();
  private readonly checks = new Turns();
  private readonly stayers: Stayer[] = [];
  private readonly deaths: DeathsOfStayers;
  private service = FIRST_SERVICE;
  private port = FIRST_STAYER_PORT;
  private firstUsage: Usage[] | undefined;
  private isFirstGone = false;
  private lastFlowed = 0;
  private mostPlaces = 0;
  private lastingDescriptors = 0;

  constructor(
    private readonly random: SeededRandom,
    private readonly count: number,
    private readonly where: Where,
  ) {
    this.deaths = new DeathsOfStayers(random);
  }

  async run(): Promise<KillReport> {
    const { report } = this;
    const first = await this.begin();
    const comers = Array.from({ length: COMERS }, () => this.comeAndGo());
    const stayers = Array.from({ length: STAYERS }, () => this.stay());
    const others = [this.visit(), this.beStranger()];
    await this.until(() => this.stayers.length === STAYERS, 'those that stay are there');
    await first.kill();
    this.isFirstGone = true;
    this.leadNext();
    await this.note('the first one', { failures: [], joins: 1, at: 'at any moment, broker' });
    await Promise.all(comers);
    for (const each of this.stayers) each.kill();
    await Promise.all([...stayers, ...others]);
    await this.checkEnd();
    return report;
  }

  private get isOver(): boolean {
    return this.report.kills >= this.count || this.report.failures.length > 0;
  }

  private async begin(): Promise<Program> {
    const { shared, outside, udpPort } = this.where;
    const first = await opened(shared, udpPort);
    this.lasting = new Program();
    await this.lasting.ask(`slow ${SLOW_MS}`);
    await this.openLasting();
    this.keeper = new Program();
    await this.keeper.ask(`slow ${SLOWER_MS}`);
    await this.openKeeper();
    this.watcher = await opened(outside, udpPort, 'alone');
    await this.flow();
    const other = outside.replace(/\d+$/, (last) => String(Number(last) + 1));
    this.caller = await opened(other, udpPort, 'alone');
    const usage = JSON.parse(await this.lasting.ask('usage')) as Usage;
    this.lastingDescriptors = usage.descriptors;
    return first;
  }

  private async openLasting(): Promise<void> {
    const { shared, udpPort } = this.where;
    await this.said(this.lasting, `open ${shared} ${udpPort}`, 'open');
    await this.said(this.lasting, `listen ${LASTING_PORT}`, 'listening');
  }

  private openKeeper(): Promise<void> {
    const { shared, udpPort } = this.where;
    return this.said(this.keeper, `open ${shared} ${udpPort}`, 'open');
  }

  private async flow(): Promise<void> {
    const number = await this.watcher.ask(`connect ${this.where.shared} ${LASTING_PORT}`);
    await this.said(this.watcher, `flow ${number}`, 'flows');
    this.lastFlowed = 0;
  }

  /** One has become broker in spite of all: it leaves, and comes again, so that others are. */
  private async resign(): Promise<void> {
    if (await this.presides(this.keeper)) {
      await this.said(this.keeper, 'close', 'closed');
      await this.openKeeper();
    } else if (await this.presides(this.lasting)) {
      await this.said(this.watcher, 'rest', 'rests');
      await this.said(this.lasting, 'close', 'closed');
      await this.openLasting();
      await this.flow();
    }
  }

  private async presides(program: Program): Promise<boolean> {
    return (await program.ask('presides')) === 'true';
  }

  private async comeAndGo(): Promise<void> {
    while (!this.isOver) {
      const death = deathOfComer(this.random);
      const comer = new Comer(this.where, this.service++, death);
      const ended = await comer.ended();
      if (ended.at === undefined) {
        this.report.failures.push(`one that comes and goes hangs before ${JSON.stringify(death)}`);
      }
      await this.note('one that comes and goes', ended);
    }
  }

  private async stay(): Promise<void> {
    while (!this.isOver) {
      const port = this.port++;
      const stayer = await Stayer.open(this.where, port, this.deaths.next());
      let call: Promise<string> | undefined;
      if (stayer.isOpen) {
        this.stayers.push(stayer);
        if (this.isOver) stayer.kill();
        this.leadNext();
        call = this.callStayer(stayer);
      }
      const ended = await stayer.ended();
      const at = this.stayers.indexOf(stayer);
      if (at >= 0) this.stayers.splice(at, 1);
      this.leadNext();
      await this.note('one that stays', ended);
      await this.hangUp(await call);
    }
  }

  /** The next broker is not left to wait for its step, where another can take its place. */
  private leadNext(): void {
    if (this.isFirstGone && this.stayers.length === STAYERS) this.stayers[0]!.lead();
  }

  /** @returns the number of a connection to it, or what went wrong: it may have been killed */
  private async callStayer(stayer: Stayer): Promise<string> {
    const { shared } = this.where;
    const said = await this.call(`connect ${shared} ${stayer.port}`);
    if (!/^\d+$/.test(said) && this.stayers.includes(stayer)) {
      this.report.failures.push(`to one that stays: ${said}`);
    }
    return said;
  }

  private async hangUp(number = ''): Promise<void> {
    if (!/^\d+$/.test(number)) return;
    const end = await this.call(`ended ${number}`);
    if (end !== 'DAT_CONN_ENDED') this.report.failures.push(`its peer learns: ${end}`);
  }

  /** Requests for connections to the lasting one, which the broker hands over. */
  private async visit(): Promise<void> {
    while (!this.isOver) {
      const said = await this.call(`visit ${this.where.shared} ${LASTING_PORT}`);
      if (said !== 'echoed') this.report.failures.push(`a visit: ${said}`);
      this.report.visits++;
      await paused(20);
    }
  }

  /** Says that it has a slot that is not its own: it is refused, or the broker has just died. */
  private async beStranger(): Promise<void> {
    const addon = loadNativeAddon()!;
    const { broker } = groupNames([gidFromIp(this.where.shared)], this.where.udpPort);
    while (!this.isOver) {
      await paused(STRANGER_EACH_MS);
      try {
        const socket = addon.connectUnix(broker);
        socket.send(emitMessage({ kind: 'HELLO', slot: 200, nodeGuid: 1n }), []);
        await this.until(() => socket.take() !== undefined, 'a stranger hears that it is none');
        socket.close();
      } catch (error) {
        const { code } = error as { code?: string };
        if (!['ECONNREFUSED', 'EAGAIN', 'EPIPE', 'ECONNRESET'].includes(code ?? '')) throw error;
      }
    }
  }

  private call(command: string): Promise<string> {
    return this.calls.take(() =>
      this.caller.ask(command, VISIT_MS).catch((error: Error) => error.message),
    );
  }

  private async note(which: string, { at, joins, failures }: Ended): Promise<void> {
    const { report } = this;
    report.kills++;
    report.joins += joins;
    const moment = at ?? 'at any moment, member';
    report.at.set(moment, (report.at.get(moment) ?? 0) + 1);
    if (moment.endsWith('broker')) report.brokerKills++;
    report.failures.push(...failures.map((each) => `${which}: ${each}`));
    await this.checks.take(() => this.checkAfterKill());
  }

  private async checkAfterKill(): Promise<void> {
    const { report } = this;
    const before = this.lastFlowed;
    await this.until(async () => {
      const said = await this.watcher.ask('flowed');
      if (!/^\d+$/.test(said)) throw new Error(`the connection of the others: ${said}`);
      this.lastFlowed = Number(said);
      return this.lastFlowed > before;
    }, 'data flows');
    report.flowed += this.lastFlowed - before;
    await this.until(async () => {
      const { USED, RESTING, stale } = await this.table();
      this.mostPlaces = Math.max(this.mostPlaces, USED + RESTING);
      return USED <= MOST_USED && stale === 0;
    }, 'slots and services of the killed are free');
    if (report.kills % USAGE_EVERY === 0) await this.checkUsage();
    if (this.stayers.length === STAYERS) await this.calls.take(() => this.resign());
  }

  private async table(): Promise<TableUse> {
    return JSON.parse(await this.lasting.ask('table')) as TableUse;
  }

  private async usage(): Promise<Usage[]> {
    const all: Usage[] = [];
    for (const program of [this.lasting, this.watcher, this.keeper]) {
      all.push(JSON.parse(await program.ask('usage')) as Usage);
    }
    return all;
  }

  /** A descriptor for each place, and for each process that is connected to a broker. */
  private async checkUsage(): Promise<void> {
    const { report } = this;
    const usage = await this.usage();
    this.firstUsage ??= usage;
    const [lasting] = usage;
    const places = socketsOf(this.where);
    const most = this.lastingDescriptors + places + MOST_USED + 8;
    this.expect(lasting!.descriptors <= most, `${lasting!.descriptors} descriptors of ${most}`);
    this.expect(lasting!.tables === 1, `${lasting!.tables} descriptors of tables`);
    this.expect(lasting!.mapped === 1, `${lasting!.mapped} tables are mapped`);
    this.expect(places <= this.mostPlaces + 8, `${places} places, ${this.mostPlaces} in use`);
    usage.forEach(({ rssBytes, heapBytes }, i) => {
      const rss = rssBytes - this.firstUsage![i]!.rssBytes;
      const heap = heapBytes - this.firstUsage![i]!.heapBytes;
      report.growth.rssBytes = Math.max(report.growth.rssBytes, rss);
      report.growth.heapBytes = Math.max(report.growth.heapBytes, heap);
      this.expect(rss <= MOST_GROWTH_BYTES.rss, `${rss} bytes more are resident`);
      this.expect(heap <= MOST_GROWTH_BYTES.heap, `${heap} bytes more are in use`);
    });
    const kept = usage[2]!.heapBytes - this.firstUsage[2]!.heapBytes;
    report.growth.keeperHeapBytes = Math.max(report.growth.keeperHeapBytes, kept);
    this.expect(kept <= MOST_GROWTH_BYTES.heapOfKeeper, `${kept} bytes more are kept`);
  }

  /** All are killed but the lasting one and the keeper: they have the device for themselves. */
  private async checkEnd(): Promise<void> {
    await this.until(async () => {
      const { USED, RESTING, stale } = await this.table();
      return USED === 2 && RESTING === 0 && stale === 0;
    }, 'no slot rests, or is lost');
    await this.checkUsage();
    await this.checkAfterKill();
  }

  private async said(program: Program, command: string, expected: string): Promise<void> {
    const said = await program.ask(command);
    this.expect(said === expected, `${command}: ${said}`);
  }

  private expect(condition: boolean, what: string): void {
    if (!condition) this.report.failures.push(`after ${this.report.kills} kills: ${what}`);
  }

  private async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    try {
      for (const endMs = performance.now() + patience(SETTLED_MS); !(await condition());) {
        if (performance.now() > endMs) throw new Error(`not within ${SETTLED_MS} ms`);
        await paused(5);
      }
    } catch (error) {
      this.expect(false, `${what}: ${(error as Error).message}`);
    }
  }
}

/** One after the other, in order. */
class Turns {
  private last: Promise<unknown> = Promise.resolve();

  take<T>(body: () => Promise<T>): Promise<T> {
    const mine = this.last.then(body);
    this.last = mine.catch(() => undefined);
    return mine;
  }
}

/** UDP sockets that are bound to the IPv4 address. */
function socketsOf({ shared, udpPort }: Where): number {
  const bytes = shared.split('.').map(Number).reverse();
  const hex = bytes
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase();
  const name = `${hex}:${udpPort.toString(16).toUpperCase()}`;
  return readFileSync('/proc/net/udp', 'utf8').split(name).length - 1;
}
