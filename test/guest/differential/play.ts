/** Plays a script to two ends and writes down what they say. */
import { paused } from '../../support/patience.js';
import { Access, WrOpcode } from '../../../core/spi/index.js';
import type { Completion, ManualEnd, Region, Request, Segment, Window } from '../verbs/end.js';
import { type Connected, connectPair, type Ends, EVERYTHING } from '../verbs/manual-pair.js';
import { split } from '../verbs/round.js';
import {
  isAtomic,
  type Life,
  RESULT_BYTES,
  type Script,
  type ScriptRequest,
  takesReceive,
  TARGET_BYTES,
  WINDOWS,
} from './script.js';

const { LOCAL_WRITE, MW_BIND, REMOTE_WRITE } = Access;
const { RDMA_READ, SEND_WITH_INV } = WrOpcode;
const SOURCE_SEED = 3;
const TARGET_SEED = 8;
const LATE_MS = 40;
/** 2.56 ms: a few times while receives are late. */
export const RNR_TIMER = 16;
/** The low bytes are for atomics; windows are above what requests reach without one. */
const WINDOW_BYTES = 1 << 14;
const WINDOWS_OFFSET = 1 << 15;
/** Of the queue pair of the life that has this fault. */
const WITHOUT_READS = LOCAL_WRITE | REMOTE_WRITE;

/** What one side has said of one queue pair, and what is in its memory. */
export interface LifeRecord {
  readonly life: Life;
  readonly sends: readonly Completion[];
  readonly receives: readonly Completion[];
  /** States before both ends were turned to ERR. */
  readonly states: { readonly requester: string; readonly responder: string };
  /** What READs and atomics have brought, and what messages have left; only if they succeeded. */
  readonly results: readonly number[];
  readonly messages: readonly number[];
  readonly target: number;
  /** Of the responder's windows. */
  readonly keys: readonly number[];
  readonly qpns: { readonly requester: number; readonly responder: number };
}

export async function playScript(ends: Ends, script: Script): Promise<LifeRecord[]> {
  const records: LifeRecord[] = [];
  for (const life of script.lives) {
    records.push(await new LifePlayer(ends, script.mtuBytes, life).play());
  }
  return records;
}

interface Memory {
  readonly source: Region;
  readonly gone: Region;
  readonly results: Region;
  readonly target: Region;
  readonly closed: Region;
  readonly inbox: Region;
}

class LifePlayer {
  private readonly asks: ManualEnd;
  private readonly answers: ManualEnd;
  private readonly requests: readonly ScriptRequest[];
  private readonly sizes: readonly number[];
  private readonly slots: Segment[] = [];
  private keys: readonly number[] = [];
  private posted = 0;
  private received = 0;

  constructor(
    private readonly ends: Ends,
    private readonly mtuBytes: number,
    private readonly life: Life,
  ) {
    this.asks = ends.requester.end;
    this.answers = ends.responder.end;
    this.requests = life.rounds.flatMap(({ requests }) => requests);
    this.sizes = life.rounds.flatMap(({ receives, late }) => [...receives, ...late]);
  }

  async play(): Promise<LifeRecord> {
    const { asks, answers, life } = this;
    const { rnrRetryCount, fault } = life;
    const access = fault === 'no permission in the queue pair' ? WITHOUT_READS : EVERYTHING;
    // Reads and atomics may be anywhere in a life: this fault takes them from all of it.
    const options = { mtuBytes: this.mtuBytes, rnrRetryCount, access, minRnrTimer: RNR_TIMER };
    const pairs = await connectPair(this.ends, options);
    const memory = await this.memory();
    this.keys = await this.openWindows(pairs, memory.target);
    const sends: Completion[] = [];
    for (const round of life.rounds) {
      await this.postReceives(pairs, memory, round.receives);
      for (const request of round.requests) await this.postRequest(pairs, memory, request);
      await asks.post(pairs.requester);
      if (round.late.length > 0) {
        await paused(LATE_MS);
        await this.postReceives(pairs, memory, round.late);
      }
      if (round.requests.some((request) => request.fault === 'ended while waiting')) {
        await paused(LATE_MS);
        await asks.toError(pairs.requester);
        // What has left before that must not find a receive of the next round.
        await paused(LATE_MS);
      }
      sends.push(...(await asks.poll(pairs.requester, round.requests.length, 0)).sends);
    }
    const states = {
      requester: await asks.state(pairs.requester),
      responder: await answers.state(pairs.responder),
    };
    await asks.toError(pairs.requester);
    await answers.toError(pairs.responder);
    const { receives } = await answers.poll(pairs.responder, 0, this.received);
    const { requester, responder } = pairs;
    const qpns = { requester: requester.qpn, responder: responder.qpn };
    const bytes = await this.digests(memory, sends, receives);
    return { life, sends, receives, states, keys: this.keys, qpns, ...bytes };
  }

  private async memory(): Promise<Memory> {
    const { asks, answers, ends } = this;
    const own = (bytes: number, access: number): Promise<Region> =>
      asks.region(ends.requester.domain, Math.max(1, bytes), access);
    const theirs = (bytes: number, access: number): Promise<Region> =>
      answers.region(ends.responder.domain, Math.max(1, bytes), access);
    const inboxBytes = this.sizes.reduce((sum, size) => sum + size, 0);
    const memory = {
      source: await own(TARGET_BYTES, LOCAL_WRITE),
      gone: await own(TARGET_BYTES, LOCAL_WRITE),
      results: await own(this.requests.length * RESULT_BYTES, LOCAL_WRITE),
      target: await theirs(TARGET_BYTES, EVERYTHING | MW_BIND),
      closed: await theirs(TARGET_BYTES, LOCAL_WRITE | REMOTE_WRITE),
      inbox: await theirs(inboxBytes, LOCAL_WRITE),
    };
    await asks.deregister(memory.gone);
    await asks.fill({ region: memory.source, offset: 0, length: TARGET_BYTES }, SOURCE_SEED);
    // The first bytes are the words of the atomics, and zero at first.
    const above = { region: memory.target, offset: 256, length: TARGET_BYTES - 256 };
    await answers.fill(above, TARGET_SEED);
    return memory;
  }

  private async openWindows(pairs: Connected, target: Region): Promise<number[]> {
    const { answers, ends } = this;
    const keys: number[] = [];
    for (let index = 0; index < WINDOWS; index++) {
      const window: Window = await answers.window(ends.responder.domain);
      const offset = WINDOWS_OFFSET + index * 64;
      const segment = { region: target, offset, length: WINDOW_BYTES };
      const bind = { wr: 9000 + index, window, segment, access: REMOTE_WRITE };
      keys.push(await answers.bind(pairs.responder, bind));
    }
    await answers.post(pairs.responder);
    const { sends } = await answers.poll(pairs.responder, WINDOWS, 0);
    if (sends.some(({ status }) => status !== 'SUCCESS')) throw new Error('windows');
    return keys;
  }

  private async postReceives(
    pairs: Connected,
    { inbox }: Memory,
    sizes: readonly number[],
  ): Promise<void> {
    for (const length of sizes) {
      const last = this.slots.at(-1);
      const offset = last === undefined ? 0 : last.offset + last.length;
      const slot = { region: inbox, offset, length };
      this.slots.push(slot);
      await this.answers.receive(pairs.responder, 500 + this.received++, split(slot, 2));
    }
  }

  private async postRequest(
    pairs: Connected,
    memory: Memory,
    request: ScriptRequest,
  ): Promise<void> {
    const { fault, opcode, flags, length, pieces, localOffset, compareAdd, swap } = request;
    const wr = this.posted++;
    const brings = opcode === RDMA_READ || isAtomic(opcode);
    const region = brings
      ? memory.results
      : fault === 'source deregistered'
        ? memory.gone
        : memory.source;
    const offset = brings ? wr * RESULT_BYTES + localOffset : localOffset;
    const entry: Request = {
      ...{ opcode, flags, wr, compareAdd, swap },
      segments: split({ region, offset, length }, pieces),
      ...this.remote(memory, request),
    };
    await this.asks.send(pairs.requester, entry);
  }

  private remote(
    { closed, target }: Memory,
    { fault, immediate, length, opcode, remoteOffset, window }: ScriptRequest,
  ): Pick<Request, 'immediate' | 'remoteAddress' | 'rkey'> {
    const key = window === undefined ? undefined : this.keys[window];
    const nowhere = (target.rkey ^ 0x00f0f000) >>> 0;
    const immediateOrKey =
      opcode !== SEND_WITH_INV ? immediate : fault === undefined ? (key ?? 0) : nowhere;
    const region = fault === 'no permission' ? closed : target;
    const offset = ((): number => {
      if (fault === 'out of bounds') return TARGET_BYTES - (isAtomic(opcode) ? 0 : length - 1);
      if (key !== undefined && window !== undefined)
        return WINDOWS_OFFSET + window * 64 + remoteOffset;
      return isAtomic(opcode) ? remoteOffset : 256 + remoteOffset;
    })();
    const rkey = fault === 'bad key' ? nowhere : (key ?? region.rkey);
    return { immediate: immediateOrKey, remoteAddress: region.address + BigInt(offset), rkey };
  }

  /** Bytes of what succeeded: IBTA leaves open what a failed request has done to its own place. */
  private async digests(
    memory: Memory,
    sends: readonly Completion[],
    receives: readonly Completion[],
  ): Promise<Pick<LifeRecord, 'results' | 'messages' | 'target'>> {
    const results: number[] = [];
    for (const { wr, status } of sends) {
      const request = this.requests[wr];
      if (request === undefined || status !== 'SUCCESS' || takesReceive(request)) continue;
      const place = { region: memory.results, offset: wr * RESULT_BYTES, length: RESULT_BYTES };
      results.push(await this.asks.digest(place));
    }
    const messages: number[] = [];
    for (const [index, { status }] of receives.entries()) {
      const slot = this.slots[index];
      if (slot !== undefined && status === 'SUCCESS')
        messages.push(await this.answers.digest(slot));
    }
    const whole = { region: memory.target, offset: 0, length: TARGET_BYTES };
    return { results, messages, target: await this.answers.digest(whole) };
  }
}
