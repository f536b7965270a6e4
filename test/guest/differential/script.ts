/**
 * A script of operations, made by a seed: lives of connections, each with rounds of requests, most
 * of them with a fault somewhere. The same script is played to several pairs of ends.
 */
import { SeededRandom } from 'dapl/providers/mock';
import { WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { withoutFences } from '../verbs/fences.js';

/** What ends a life, in the way that only ends know: see `compare.ts` for what is known of them. */
export const FAULTS = [
  'bad key',
  'out of bounds',
  'no permission',
  'no permission in the queue pair',
  'shut window',
  'receive too short',
  'bad key to invalidate',
  'source deregistered',
  'never a receive',
  'ended while waiting',
] as const;
export type Fault = (typeof FAULTS)[number];

/** The requester is told that all is well. */
const SILENT: ReadonlySet<Fault> = new Set(['bad key to invalidate']);
/** The requester waits for a receive that does not come. */
const WAITING: ReadonlySet<Fault> = new Set(['never a receive', 'ended while waiting']);
/**
 * Comes first in its round, when nothing is outstanding: rxe 6.1 drops acknowledgements as soon as
 * a request has failed at home, and then nothing of that queue ever completes.
 */
const FIRST: ReadonlySet<Fault> = new Set(['source deregistered']);

export interface ScriptRequest {
  readonly opcode: WrOpcode;
  readonly flags: number;
  readonly length: number;
  readonly pieces: number;
  /** Of the source or of the place that a READ goes to. */
  readonly localOffset: number;
  readonly remoteOffset: number;
  readonly immediate: number;
  readonly compareAdd: bigint;
  readonly swap: bigint;
  /** The window that a WRITE goes through, or that a SEND_WITH_INV shuts. */
  readonly window: number | undefined;
  readonly fault: Fault | undefined;
}

export interface Round {
  /** Bytes of the receives that are posted before the requests. */
  readonly receives: readonly number[];
  readonly requests: readonly ScriptRequest[];
  /** Bytes of those that come when some of the requests have been waiting for them. */
  readonly late: readonly number[];
}

export interface Life {
  readonly rounds: readonly Round[];
  readonly fault: Fault | undefined;
  readonly rnrRetryCount: number;
}

export interface Script {
  readonly seed: number;
  readonly mtuBytes: number;
  readonly lives: readonly Life[];
}

export const WINDOWS = 3;
export const TARGET_BYTES = 1 << 16;
export const RESULT_BYTES = 1 << 14;
/** Of the target, below the windows and above the words of the atomics. */
const HALF_BYTES = 12_288;
const LIVES = 6;
const LONGEST_PACKETS = 3;

const { SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM } = WrOpcode;
const { RDMA_READ, ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD } = WrOpcode;
const OPCODES = [
  ...[SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM],
  ...[RDMA_READ, RDMA_WRITE, RDMA_READ, ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD],
];
const TAKES_RECEIVE: ReadonlySet<number> = new Set([
  ...[SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE_WITH_IMM],
]);
const ATOMICS: ReadonlySet<number> = new Set([ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD]);
/** Longest inline payload of the queue pairs that scripts are played on. */
const INLINE_BYTES = 64;

export function takesReceive({ opcode }: { readonly opcode: number }): boolean {
  return TAKES_RECEIVE.has(opcode);
}

export function isAtomic(opcode: number): boolean {
  return ATOMICS.has(opcode);
}

export function makeScript(seed: number, mtuBytes: number): Script {
  const random = new SeededRandom(seed);
  const lives = Array.from({ length: LIVES }, () => new LifeMaker(random, mtuBytes).make());
  return { seed, mtuBytes, lives };
}

/** For rxe as the requester. */
export function scriptWithoutFences(script: Script): Script {
  const lives = script.lives.map((life) => ({
    ...life,
    rounds: life.rounds.map((round) => ({ ...round, requests: withoutFences(round.requests) })),
  }));
  return { ...script, lives };
}

class LifeMaker {
  private readonly openWindows = new Set(Array.from({ length: WINDOWS }, (_, index) => index));

  private roundIndex = 0;

  constructor(
    private readonly random: SeededRandom,
    private readonly mtuBytes: number,
  ) {}

  make(): Life {
    const fault = this.chance(85) ? this.pick(FAULTS) : undefined;
    const rounds: Round[] = [];
    for (let count = 1 + this.below(3); count > 0; count--) rounds.push(this.round(undefined));
    if (fault !== undefined) rounds.push(this.round(fault));
    // A responder that has failed in silence is found out by time-outs: nothing is asked of it.
    if (fault !== undefined && !SILENT.has(fault)) rounds.push(this.round(undefined, false));
    const rnrRetryCount = fault === 'never a receive' ? this.below(3) : 7;
    return { rounds, fault, rnrRetryCount };
  }

  /** @param mayBeLate whether receives may come after the requests that want them */
  private round(fault: Fault | undefined, mayBeLate = true): Round {
    const requests = Array.from({ length: 1 + this.below(6) }, () => this.request());
    if (fault !== undefined) {
      const at = FIRST.has(fault) ? 0 : this.below(requests.length + 1);
      requests.splice(at, SILENT.has(fault) ? Infinity : 0, this.faulty(fault));
      if (fault === 'shut window') this.shutFirst(requests);
    }
    const waits = fault !== undefined && WAITING.has(fault);
    const before = waits ? requests.slice(0, indexOfFault(requests)) : requests;
    const receives = before.filter(takesReceive).map((request) => this.receiveFor(request));
    const isLate = mayBeLate && fault === undefined && this.chance(40);
    const split = isLate ? this.below(receives.length + 1) : receives.length;
    const late = receives.slice(split);
    const placed = this.placed(requests);
    this.roundIndex += 1;
    return {
      receives: receives.slice(0, split),
      requests: placed,
      late,
    };
  }

  /**
   * A READ may bring what a later WRITE has written (IBTA 10.8.3.3), so the one goes to
   * where the other is not. A READ behind a WRITE brings what that has written.
   */
  private placed(requests: readonly ScriptRequest[]): ScriptRequest[] {
    const half = this.roundIndex % 2;
    let isRead = false;
    return requests.map((request) => {
      const { opcode, window } = request;
      if (isAtomic(opcode) || window !== undefined) return request;
      isRead ||= opcode === RDMA_READ;
      const isElsewhere = isRead && opcode !== RDMA_READ;
      const base = (isElsewhere ? 1 - half : half) * HALF_BYTES;
      return { ...request, remoteOffset: base + request.remoteOffset };
    });
  }

  private request(): ScriptRequest {
    const opcode = this.pick(OPCODES);
    const length = isAtomic(opcode) ? 8 : this.length();
    const window = this.windowFor(opcode, length);
    // A SEND_WITH_INV that finds no window left is a SEND.
    const plain = opcode === SEND_WITH_INV && window === undefined ? SEND : opcode;
    const mayBeInline = length <= INLINE_BYTES && plain !== RDMA_READ && !isAtomic(plain);
    const flags =
      WrFlags.SIGNALED |
      (this.chance(10) ? WrFlags.FENCE : 0) |
      (this.chance(20) ? WrFlags.SOLICITED : 0) |
      (mayBeInline && this.chance(30) ? WrFlags.INLINE : 0);
    return {
      opcode: plain,
      flags,
      length,
      window,
      pieces: isAtomic(plain) ? 1 : 1 + this.below(4),
      localOffset: this.below(64),
      remoteOffset: isAtomic(plain) ? 8 * this.below(16) : this.below(256),
      immediate: this.random.u32(),
      // Some of the swaps must come true: zeros are what is there at first.
      compareAdd: this.chance(50) ? 0n : BigInt(this.random.u32()) << 20n,
      swap: BigInt(this.random.u32()) << 30n,
      fault: undefined,
    };
  }

  private windowFor(opcode: number, length: number): number | undefined {
    const open = [...this.openWindows];
    if (open.length === 0) return undefined;
    const window = this.pick(open);
    if (opcode === SEND_WITH_INV) {
      this.openWindows.delete(window);
      return window;
    }
    return opcode === RDMA_WRITE && length > 0 && this.chance(30) ? window : undefined;
  }

  private faulty(fault: Fault): ScriptRequest {
    const request = { ...this.request(), window: undefined, fault };
    const length = Math.max(1, request.length);
    const opcode = ((): WrOpcode => {
      switch (fault) {
        case 'bad key':
        case 'out of bounds':
          return this.pick([RDMA_WRITE, RDMA_READ, RDMA_WRITE_WITH_IMM, ATOMIC_FETCH_AND_ADD]);
        case 'no permission':
        case 'no permission in the queue pair':
          return this.pick([RDMA_READ, ATOMIC_CMP_AND_SWP]);
        case 'shut window':
          return RDMA_WRITE;
        case 'source deregistered':
          return this.pick([SEND, RDMA_WRITE]);
        case 'bad key to invalidate':
          return SEND_WITH_INV;
        case 'receive too short':
        case 'never a receive':
        case 'ended while waiting':
          return this.pick([SEND, SEND_WITH_IMM]);
      }
    })();
    const flags = request.flags & ~WrFlags.INLINE;
    const size = isAtomic(opcode) ? { length: 8, pieces: 1, remoteOffset: 8 } : { length };
    return { ...request, opcode, flags, ...size };
  }

  /** Puts a SEND that shuts a window in front of the WRITE that goes through it. */
  private shutFirst(requests: ScriptRequest[]): void {
    const at = indexOfFault(requests);
    const write = requests[at];
    const [window] = this.openWindows;
    if (write === undefined) return;
    if (window === undefined) {
      // All have been shut before.
      requests[at] = { ...write, window: 0 };
      return;
    }
    this.openWindows.delete(window);
    const flags = WrFlags.SIGNALED;
    const shut = { ...write, opcode: SEND_WITH_INV, flags, window, fault: undefined };
    requests.splice(at, 1, shut, { ...write, window });
  }

  private receiveFor({ fault, length }: ScriptRequest): number {
    return fault === 'receive too short' ? length - 1 : length + this.below(40);
  }

  private length(): number {
    const { mtuBytes } = this;
    const edge = mtuBytes * (1 + this.below(LONGEST_PACKETS - 1));
    return this.pick([0, 1, this.below(64), this.below(mtuBytes), edge - 1, edge, edge + 1]);
  }

  private below(limit: number): number {
    return this.random.u32() % limit;
  }

  private chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  private pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

function indexOfFault(requests: readonly ScriptRequest[]): number {
  return requests.findIndex(({ fault }) => fault !== undefined);
}
