/**
 * The ring protocol of a channel (producer.cc, consumer.cc in softroce's native/shm) in steps, of
 * which each is one access to memory that both sides see: so all orders of them can be searched. A
 * state is numbers and is never changed; a step makes the next one.
 */

/** Slots of the ring: few, so that it is full soon. */
const SLOTS = 2;
/** Packets that the consumer claims at a time. */
const MOST = 2;

export interface RingState {
  // Shared memory: what the producer writes, then what the consumer writes.
  readonly produced: number;
  readonly wanted: number;
  /** Number of the packet in each slot, and -1 for one that was withdrawn. */
  readonly slots: readonly number[];
  readonly taken: number;
  readonly consumed: number;
  readonly armed: number;
  // What wakes each of them.
  readonly wakesProducer: boolean;
  readonly wakesConsumer: boolean;
  /** Payload left in place, until its owner writes there again. */
  readonly intact: readonly boolean[];
  // The producer's own.
  readonly p: string;
  readonly put: number;
  readonly known: number;
  readonly woken: number;
  readonly wants: boolean;
  readonly withdrawing: number;
  // The consumer's own.
  readonly c: string;
  readonly done: number;
  readonly claimed: number;
  readonly reading: number;
  readonly arm: number;
  readonly got: readonly number[];
  /** Withdrawn before they were read. */
  readonly lost: number;
}

export interface RingScenario {
  readonly packets: number;
  /** At its end the producer takes the memory back of what was not read. */
  readonly withdraws: boolean;
  /** At any time one of them stops for ever: its process has been killed. */
  readonly kills: 'producer' | 'consumer' | 'nobody';
  /** A step is left out, to see that the search finds what comes of it. */
  readonly flaw?: 'looks once' | 'claims nothing' | 'writes early';
}

type Step = (s: RingState, scenario: RingScenario) => Partial<RingState>;
type Steps = Readonly<Record<string, Step>>;

const PRODUCER: Steps = {
  begin: (s, { packets, withdraws, flaw }) => {
    if (s.put === packets) return { p: withdraws ? 'withdraw' : 'done', withdrawing: s.known };
    const room = s.put - s.known < SLOTS + (flaw === 'writes early' ? 1 : 0);
    return { p: room ? 'write' : 'look' };
  },
  look: (s) => ({ known: s.consumed, p: s.put - s.consumed < SLOTS ? 'write' : 'want' }),
  want: () => ({ wanted: 1, wants: true, p: 'lookAgain' }),
  lookAgain: (s) => ({ known: s.consumed, p: s.put - s.consumed < SLOTS ? 'write' : 'sleep' }),
  sleep: () => ({ wakesProducer: false, p: 'begin' }),
  write: (s) => ({
    slots: s.slots.map((packet, i) => (i === s.put % SLOTS ? s.put : packet)),
    put: s.put + 1,
    p: s.wants ? 'wantNoMore' : 'publish',
  }),
  wantNoMore: () => ({ wanted: 0, wants: false, p: 'publish' }),
  publish: (s) => ({ produced: s.put, p: 'lookAtArmed' }),
  lookAtArmed: (s) =>
    s.armed % 2 === 1 && s.armed !== s.woken ? { woken: s.armed, p: 'wake' } : { p: 'begin' },
  wake: () => ({ wakesConsumer: true, p: 'begin' }),
  /** Each of those not known to be consumed. */
  withdraw: (s) => {
    if (s.withdrawing === s.put) return { p: 'lookAtTaken' };
    const slots = s.slots.map((packet, i) => (i === s.withdrawing % SLOTS ? -1 : packet));
    return { slots, withdrawing: s.withdrawing + 1 };
  },
  lookAtTaken: (s) => ({ p: s.taken > s.known ? 'lookAtConsumed' : 'reuse' }),
  lookAtConsumed: (s) => ({ known: s.consumed, p: s.consumed < s.put ? 'lookAtTaken' : 'reuse' }),
  reuse: (s) => ({ intact: s.intact.map(() => false), p: 'done' }),
};

const CONSUMER: Steps = {
  take: (s, { flaw }) => {
    const claimed = Math.min(s.produced - s.done, MOST);
    if (claimed === 0) return { c: 'arm' };
    return { claimed, reading: 0, c: flaw === 'claims nothing' ? 'read' : 'claim' };
  },
  claim: (s) => ({ taken: s.done + s.claimed, c: 'read' }),
  read: (s) => {
    const packet = s.slots[(s.done + s.reading) % SLOTS]!;
    if (packet === -1) return { lost: s.lost + 1, ...readOn(s) };
    return { got: [...s.got, packet], c: 'place' };
  },
  /** The payload is read where it lies. */
  place: (s) => {
    const packet = s.got.at(-1)!;
    if (s.intact[packet] !== true) throw new Error(`packet ${packet} has bytes of later`);
    return readOn(s);
  },
  release: (s) => ({ consumed: s.done + s.claimed, done: s.done + s.claimed, c: 'lookAtWanted' }),
  lookAtWanted: (s) => ({ claimed: 0, c: s.wanted === 1 ? 'wake' : 'take' }),
  wake: () => ({ wakesProducer: true, c: 'take' }),
  arm: (s, { flaw }) => {
    const c = flaw === 'looks once' ? 'sleep' : 'lookAgain';
    return { arm: s.arm + 1, armed: s.arm + 1, c };
  },
  lookAgain: (s) => ({ c: s.produced === s.done ? 'sleep' : 'disarm' }),
  sleep: () => ({ wakesConsumer: false, c: 'disarm' }),
  disarm: (s) => ({ arm: s.arm + 1, armed: s.arm + 1, c: 'take' }),
};

function readOn(s: RingState): Partial<RingState> {
  const reading = s.reading + 1;
  return { reading, c: reading === s.claimed ? 'release' : 'read' };
}

function beginning({ packets }: RingScenario): RingState {
  return {
    ...{ produced: 0, wanted: 0, slots: new Array<number>(SLOTS).fill(-2) },
    ...{ taken: 0, consumed: 0, armed: 0, wakesProducer: false, wakesConsumer: false },
    intact: new Array<boolean>(packets).fill(true),
    ...{ p: 'begin', put: 0, known: 0, woken: 0, wants: false, withdrawing: 0 },
    ...{ c: 'take', done: 0, claimed: 0, reading: 0, arm: 0, got: [], lost: 0 },
  };
}

/** What can happen next. */
function next(s: RingState, scenario: RingScenario): RingState[] {
  const states: RingState[] = [];
  const { p, c } = s;
  if (p !== 'done' && p !== 'dead' && (p !== 'sleep' || s.wakesProducer)) {
    states.push({ ...s, ...PRODUCER[p]!(s, scenario) });
  }
  if (c !== 'dead' && (c !== 'sleep' || s.wakesConsumer)) {
    states.push({ ...s, ...CONSUMER[c]!(s, scenario) });
  }
  if (scenario.kills === 'producer' && p !== 'dead') states.push({ ...s, p: 'dead' });
  if (scenario.kills === 'consumer' && c !== 'dead') states.push({ ...s, c: 'dead' });
  return states;
}

/**
 * All states that any order of steps leads to.
 * @param atRest is shown each one in which nothing can happen any more
 * @throws Error when a packet is read out of order, or with bytes that are not its own
 */
export function searchRing(scenario: RingScenario, atRest: (state: RingState) => void): number {
  const first = beginning(scenario);
  const seen = new Set([JSON.stringify(first)]);
  const open = [first];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    checkOrder(state);
    const following = next(state, scenario);
    if (following.length === 0) atRest(state);
    for (const one of following) {
      const key = JSON.stringify(one);
      if (seen.has(key)) continue;
      seen.add(key);
      open.push(one);
    }
  }
  return seen.size;
}

function checkOrder({ got }: RingState): void {
  const inOrder = got.every((packet, i) => i === 0 || packet > got[i - 1]!);
  if (!inOrder) throw new Error(`packets came as ${got.join(', ')}`);
}
