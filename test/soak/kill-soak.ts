/**
 * Processes are killed, stopped for good, or stopped for a while, by seed: in both roles and every
 * phase of a connection. What must hold for the survivor: each of its connections with the victim
 * ends within its bound, a pause shorter than that ends none, its other connections go on, and
 * nothing is left over.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type EpAttributeOptions, type Ia, openIa } from '../../core/index.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { softroce } from '../../providers/softroce/index.js';
import { patience } from '../support/patience.js';
import { isChurn, keepConnecting, type Phase, PHASES, Side, Talker } from './talker.js';
import type { VictimPlan } from './victim.js';
import { establish, startVictim, type Victim } from './victims.js';

const STRIKES = ['kill', 'stop', 'pause'] as const;
type Strike = (typeof STRIKES)[number];

const KEEP_ALIVE_MS = 300;
const ACK_TIMEOUT = 13;
const RETRIES = 3;
const ATTRIBUTES: EpAttributeOptions = {
  keepAliveMs: KEEP_ALIVE_MS,
  transport: { ackTimeout: ACK_TIMEOUT, retryCount: RETRIES, rnrRetryCount: 7 },
};
/** The ACK timeout of the side that has connected has the peer's ACK delay in it. */
const ACK_TIMEOUT_MS = { accepted: 4.096e-3 * 2 ** ACK_TIMEOUT, connected: 4.096e-3 * 2 ** 15 };
/** The least time that retries take: timeouts of 1, 2, 4 and 4 times the ACK timeout. */
const LEAST_TIMEOUTS = 11;
/** Handshakes under way end by the CM's time limits. */
const HANDSHAKE_MS = 30_000;
/** What a busy machine may be late by, besides what is measured. */
const SLACK_MS = 1000;

export interface KillCase {
  readonly index: number;
  readonly strike: Strike;
  readonly role: VictimPlan['role'];
  readonly phase: Phase;
  /** Who sends, writes or reads. */
  readonly victimMoves: boolean;
  readonly survivorMoves: boolean;
  readonly connections: number;
  readonly afterMs: number;
  readonly pauseMs: number;
}

/** The same for the same seed; each kind of case comes in turn. */
export function killCases(seed: number, count: number): KillCase[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const phase = PHASES[(index >> 1) % PHASES.length] ?? 'idle';
    const strike = random.pick(STRIKES);
    const mover = random.pick(['victim', 'survivor', 'both']);
    return {
      index,
      // A handshake with a process that only sleeps ends by time limits far longer than these.
      strike: isChurn(phase) && strike === 'stop' ? 'kill' : strike,
      role: index % 2 === 0 ? 'connect' : 'accept',
      phase,
      victimMoves: mover !== 'survivor',
      survivorMoves: mover !== 'victim',
      connections: random.between(1, 4),
      afterMs: random.between(0, 60),
      pauseMs: random.between(20, 150),
    };
  });
}

export interface KillReport {
  readonly cases: number;
  readonly ends: Record<string, number>;
  /** The longest that a connection has outlived its peer, in milliseconds. */
  readonly worstMs: Record<string, number>;
  /** Pauses that the machine has made too long to say anything. */
  tooSlow: number;
  readonly failures: string[];
}

/** A connection with nobody who dies. */
class Bystander {
  talker: Talker | undefined;
  private peer: Talker | undefined;

  constructor(
    private readonly side: Side,
    private readonly other: Side,
  ) {}

  async start(address: string, connQual: number): Promise<void> {
    const options = { attributes: ATTRIBUTES, phase: 'send', moves: true } as const;
    const evd = this.other.ia.createEvd({
      qlen: 8,
      policy: 'ONE',
      handler: (event) => {
        if (event.type !== 'connection-request') return;
        this.peer = new Talker(this.other, { ...options, moves: false });
        void this.peer.accept(event.cr);
      },
    });
    const psp = this.other.ia.createPsp({ connQual, evd });
    const to = { address, connQual };
    void keepConnecting(
      this.side,
      options,
      to,
      () => false,
      (talker) => (this.talker = talker),
    );
    while (this.talker?.established !== true) await delay(1);
    psp.free();
    void evd.free();
  }

  /** Before its adapter is closed. */
  leave(): void {
    this.talker?.leave();
    this.peer?.leave();
  }

  /** Waits until it has moved on. @returns what is wrong with it */
  async look(): Promise<string | undefined> {
    const { talker } = this;
    if (talker === undefined) return 'the bystander has never started';
    const before = talker.moved;
    const endMs = performance.now() + patience(SLACK_MS);
    while (talker.moved === before && performance.now() < endMs) await delay(1);
    if (talker.ended !== undefined) return `the bystander has ended: ${talker.ended}`;
    return talker.moved > before ? undefined : 'the bystander stands still';
  }
}

export class KillSoak {
  readonly report: KillReport;
  private side!: Side;
  private bystander!: Bystander;
  private lateMs = 0;

  /** @param net first three bytes of loopback addresses that are free for it */
  constructor(
    private readonly cases: readonly KillCase[],
    private readonly net: string,
    private readonly log: (line: string) => void = () => undefined,
  ) {
    this.report = { cases: cases.length, ends: {}, worstMs: {}, tooSlow: 0, failures: [] };
  }

  /** @param abreast cases under way at a time */
  async run(abreast: number): Promise<KillReport> {
    const before = descriptors();
    const ias: Ia[] = [];
    for (const last of [1, 2])
      ias.push(await openIa(softroce({ addresses: [`${this.net}.${last}`], shm: false })));
    const [own, other] = ias.map((ia) => new Side(ia)) as [Side, Side];
    this.side = own;
    this.bystander = new Bystander(own, other);
    await this.bystander.start(`${this.net}.2`, 1);
    const watch = this.watchLateness();
    const left = [...this.cases];
    const worker = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift()) await this.runCase(next);
    };
    await Promise.all(Array.from({ length: abreast }, worker));
    clearInterval(watch);
    this.bystander.leave();
    await Promise.all(ias.map((ia) => ia.close()));
    await delay(50);
    const leaked = descriptors() - before;
    if (leaked > 0) this.report.failures.push(`${leaked} descriptors are left open`);
    return this.report;
  }

  /** How late this process itself is: nobody can expect more of it. */
  private watchLateness(): NodeJS.Timeout {
    let lastMs = performance.now();
    return setInterval(() => {
      const nowMs = performance.now();
      this.lateMs = Math.max(this.lateMs * 0.9, nowMs - lastMs - 20);
      lastMs = nowMs;
    }, 20);
  }

  private async runCase(kill: KillCase): Promise<void> {
    const { index, phase, role, connections } = kill;
    const plan: VictimPlan = {
      role,
      own: `${this.net}.${10 + (index % 200)}`,
      peer: `${this.net}.1`,
      connQual: 1000 + index,
      phase,
      moves: kill.victimMoves,
      connections,
      port: 'native',
      attributes: ATTRIBUTES,
    };
    const victim = startVictim(plan);
    const name = `case ${index} (${kill.strike}, victim's role ${role}, ${phase})`;
    const fail = (what: string): void => void this.report.failures.push(`${name}: ${what}`);
    let alive = true;
    try {
      const talkers = await establish(this.side, plan, victim, kill.survivorMoves, () => alive);
      await delay(kill.afterMs);
      if (kill.strike === 'pause') await this.pause(kill, victim, talkers, fail);
      alive = false;
      const startMs = performance.now();
      victim.child.kill(kill.strike === 'stop' ? 'SIGSTOP' : 'SIGKILL');
      await this.awaitEnds(kill, talkers, startMs, fail);
    } catch (error) {
      fail(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    alive = false;
    await victim.end();
    const wrong = await this.bystander.look();
    if (wrong !== undefined) fail(wrong);
    this.log(name);
  }

  /** Stops the victim for less than its peers wait: nothing may end by that. */
  private async pause(
    kill: KillCase,
    victim: Victim,
    talkers: readonly Talker[],
    fail: (what: string) => void,
  ): Promise<void> {
    const startMs = performance.now();
    victim.child.kill('SIGSTOP');
    await delay(kill.pauseMs);
    victim.child.kill('SIGCONT');
    victim.tell('ping');
    await victim.hears('pong');
    const pausedMs = performance.now() - startMs;
    const leastMs = LEAST_TIMEOUTS * this.ackTimeoutMs(kill);
    if (isChurn(kill.phase)) return;
    if (pausedMs + this.lateMs > leastMs) {
      this.report.tooSlow++;
      return;
    }
    const before = talkers.map(({ moved }) => moved);
    const moving = kill.phase !== 'idle';
    const endMs = performance.now() + patience(SLACK_MS * 2);
    const resumed = (): boolean =>
      !moving || talkers.every((talker, i) => talker.moved > (before[i] ?? 0) || !this.sees(kill));
    while (!resumed() && performance.now() < endMs) await delay(2);
    for (const { ended } of talkers) {
      if (ended !== undefined)
        fail(`a pause of ${Math.round(pausedMs)} ms has ended one: ${ended}`);
    }
    if (!resumed()) fail('nothing moves after the pause');
  }

  /** Whether completions here tell of what the victim moves. */
  private sees({ phase, survivorMoves }: KillCase): boolean {
    return survivorMoves || phase === 'send';
  }

  private ackTimeoutMs({ role }: KillCase): number {
    // Where the victim has connected, the survivor has accepted.
    return role === 'connect' ? ACK_TIMEOUT_MS.accepted : ACK_TIMEOUT_MS.connected * 2;
  }

  /** Every connection has to end: those that were established in the time that is promised. */
  private async awaitEnds(
    kill: KillCase,
    talkers: readonly Talker[],
    startMs: number,
    fail: (what: string) => void,
  ): Promise<void> {
    const { report } = this;
    const boundMs = KEEP_ALIVE_MS + 4 * (RETRIES + 1) * this.ackTimeoutMs(kill);
    const before = new Set(talkers.filter(({ established }) => established));
    const waits = (limitMs: number): boolean => {
      const lateMs = performance.now() - startMs - limitMs - patience(SLACK_MS) - this.lateMs;
      return lateMs < 0;
    };
    const open = (): Talker[] => talkers.filter(({ ended }) => ended === undefined);
    const bound = (talker: Talker): number =>
      before.has(talker) ? boundMs : patience(HANDSHAKE_MS);
    while (open().some((talker) => waits(bound(talker)))) await delay(5);
    const tookMs = performance.now() - startMs;
    for (const { ep } of open()) fail(`CONNECTED after ${Math.round(tookMs)} ms, as ${ep.state}`);
    const key = `${kill.strike}, survivor ${kill.role === 'connect' ? 'accepted' : 'connected'}`;
    if (!isChurn(kill.phase))
      report.worstMs[key] = Math.max(report.worstMs[key] ?? 0, Math.round(tookMs));
    for (const { ended = 'nothing' } of talkers) report.ends[ended] = (report.ends[ended] ?? 0) + 1;
    for (const { ep, ended } of talkers) if (ended === undefined) ep.disconnect();
  }
}

/** Sockets and what else is ours; pipes and /dev/null are what Node starts processes with. */
function descriptors(): number {
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // The descriptor that the directory was read with.
      return '/dev/null';
    }
  });
  return targets.filter((target) => !/^(?:pipe:|\/dev\/null)/.test(target)).length;
}
