/** Rows: what is done, by which programs, in which places; and the goals beside a peer. */
import type { Job } from './link.js';

/** Places with the same goals: idle; busy processes, one core, half a core; between two hosts. */
export type Group = 'idle' | 'busy' | 'net' | 'flow';

/**
 * The figure of a goal, ours divided by the peer's. `rate` is the inverse of `mean`. Two are ours
 * alone: `share` of the link's bytes, and `cpuMs` of a message, a connection or a step.
 */
export type Metric = 'mean' | 'p99' | 'cpu' | 'rate' | 'share' | 'cpuMs';

export interface Goal {
  readonly program: string;
  readonly peer: string;
  readonly metric: Metric;
  /**
   * At most, of `mean`, `p99` and `cpu`; at least, of `rate`; from there to 1 less that, of
   * `share`.
   */
  readonly limit: number;
  /** Of a cold row. */
  readonly step?: string;
}

export interface Row {
  readonly label: string;
  readonly job: Job;
  /** By group: ours, and the peers. */
  readonly programs: Readonly<Partial<Record<Group, readonly string[]>>>;
  readonly goals: Readonly<Partial<Record<Group, readonly Goal[]>>>;
  /** Fresh processes each round, and no warm-up: a row for each step. */
  readonly isCold?: true;
  /** Of each measurement, where that is not the run's. */
  readonly seconds?: Readonly<Partial<Record<Group, number>>>;
  /** One of the rows of `--quick`. */
  readonly isQuick?: true;
}

const KIB4 = 4096;
const KIB64 = 65_536;
const MIB = 1 << 20;

function job(work: Job['work'], bytes: number, more: Partial<Job> = {}): Job {
  return { work, bytes, depth: 1, connections: 1, rate: 0, isJson: false, ...more };
}

/** `program`: limits beside Node TCP, or beside another peer. */
function goals(
  program: string,
  limits: Readonly<Partial<Record<Metric, number>>>,
  peer = 'tcp',
): Goal[] {
  const entries = Object.entries(limits) as [Metric, number][];
  return entries.map(([metric, limit]) => ({ program, peer, metric, limit }));
}

const BOTH = ['easy-shm', 'easy-udp'] as const;
const OURS = [
  ...BOTH,
  ...['event-shm', 'event-udp', 'channel-shm', 'channel-udp'],
  ...['rsocket-shm', 'rsocket-udp', 'dat-shm', 'dat-udp'],
];

function ask(label: string, bytes: number): Row {
  const small = bytes === 64;
  const long = bytes === KIB64;
  return {
    label: `${label}, request and answer`,
    job: job('ask', bytes),
    programs: {
      idle: [...OURS, 'tcp', 'unix', 'ws', 'ipc'],
      ...(small && {
        busy: [...BOTH, 'event-shm', 'event-udp', 'rsocket-shm', 'rsocket-udp', 'tcp', 'unix'],
        net: ['easy-udp', 'event-udp', 'rsocket-udp', 'tcp'],
      }),
      ...(long && { busy: ['easy-shm', 'tcp'] }),
    },
    goals: small
      ? ASK_GOALS
      : long
        ? {
            idle: goals('easy-shm', { rate: 2 }),
            busy: goals('easy-shm', { rate: 1.5 }),
          }
        : {},
    ...(small && { isQuick: true }),
  };
}

const ASK_GOALS: Row['goals'] = {
  idle: [
    ...goals('easy-shm', { mean: 0.5, p99: 1, cpu: 1.2 }),
    ...goals('easy-shm', { mean: 0.7 }, 'unix'),
    ...goals('easy-udp', { mean: 0.9, p99: 1, cpu: 1.5 }),
    ...goals('event-shm', { mean: 1, cpu: 1 }),
    ...goals('event-udp', { mean: 1, cpu: 1.3 }),
    ...goals('rsocket-shm', { mean: 1 }),
    ...goals('rsocket-udp', { mean: 1 }),
  ],
  busy: [
    ...goals('easy-shm', { mean: 1, p99: 1 }),
    ...goals('easy-udp', { mean: 1.2, p99: 1.2 }),
    ...goals('event-shm', { mean: 1.1 }),
    ...goals('event-udp', { mean: 1.1 }),
    ...goals('rsocket-shm', { mean: 1.1 }),
    ...goals('rsocket-udp', { mean: 1.1 }),
  ],
  net: goals('easy-udp', { mean: 1.2, cpu: 1.5 }),
};

function oneWay(label: string, bytes: number, depth: number): Row {
  const decides = bytes === 64 && depth === 32;
  const of = (limits: Parameters<typeof goals>[1]): Goal[] =>
    BOTH.flatMap((program) => goals(program, limits));
  return {
    label: `${label} one way, ${depth} in flight`,
    job: job('send', bytes, { depth }),
    programs: {
      idle: [...OURS, 'tcp', 'unix', 'ws', 'ipc'],
      ...(decides && { busy: [...BOTH, 'tcp'] }),
    },
    goals: decides ? { idle: of({ rate: 1 }), busy: of({ rate: 1 }) } : {},
    ...(decides && { isQuick: true }),
  };
}

function paced(rate: number): Row {
  return {
    label: `64 B, ${rate} requests a second`,
    job: job('paced', 64, { rate }),
    programs: { idle: [...BOTH, 'tcp'], busy: [...BOTH, 'tcp'], net: ['easy-udp', 'tcp'] },
    goals: {
      idle: [
        ...goals('easy-shm', { p99: 1, cpu: 1.2 }),
        ...goals('easy-udp', { p99: 1.2, cpu: 1.6 }),
      ],
      busy: BOTH.flatMap((program) => goals(program, { p99: 1.1, cpu: 1.1 })),
    },
    seconds: { idle: 5, busy: 1, net: 1 },
  };
}

function connects(label: string, depth: number): Row {
  return {
    label: `connect and close, ${label}`,
    job: job('connect', 64, { depth }),
    programs: { idle: [...BOTH, 'rsocket-shm', 'rsocket-udp', 'tcp', 'unix', 'ws'] },
    goals: {
      idle: [...BOTH, 'rsocket-shm', 'rsocket-udp'].flatMap((each) => goals(each, { cpuMs: 3 })),
    },
  };
}

const COLD = ['easy-shm', 'easy-udp', 'rsocket-shm', 'dat-shm', 'tcp'];

/** Messages from the first, up to which a cold row adds up. */
export const COLD_MESSAGES = [10, 100, 1000, 10_000] as const;

export function coldStep(messages: number): string {
  return `messages 1 to ${messages.toLocaleString('en')}`;
}

const COLD_GOALS: readonly Goal[] = BOTH.flatMap((each) => [
  ...goals(each, { cpuMs: 150 }).map((goal) => ({ ...goal, step: 'import and listen' })),
  ...goals(each, { cpu: 3 }).map((goal) => ({ ...goal, step: coldStep(1000) })),
]);

export const ROWS: readonly Row[] = [
  ask('64 B', 64),
  ask('4 KiB', KIB4),
  ask('64 KiB', KIB64),
  {
    label: '30 B of JSON, 100 requests in flight',
    job: job('ask', 64, { depth: 100, isJson: true }),
    programs: {
      idle: [...OURS, 'tcp', 'unix', 'ws', 'ipc'],
      busy: ['channel-shm', 'channel-udp', 'tcp'],
    },
    goals: {
      idle: ['channel-shm', 'channel-udp'].flatMap((each) => goals(each, { rate: 0.7 })),
      busy: ['channel-shm', 'channel-udp'].flatMap((each) => goals(each, { rate: 0.7 })),
    },
    isQuick: true,
  },
  ...[1, 32].flatMap((depth) => [oneWay('64 B', 64, depth), oneWay('4 KiB', KIB4, depth)]),
  {
    label: '1 MiB one way',
    job: job('send', MIB),
    programs: {
      idle: [...BOTH, 'channel-shm', 'rsocket-shm', 'rsocket-udp', 'tcp', 'unix'],
      busy: ['easy-shm', 'tcp'],
      net: ['easy-udp', 'rsocket-udp', 'tcp'],
      flow: ['easy-udp', 'rsocket-udp', 'tcp'],
    },
    goals: {
      idle: goals('easy-shm', { rate: 2 }),
      busy: goals('easy-shm', { rate: 1.5 }),
      net: goals('easy-udp', { rate: 0.9 }),
      flow: goals('easy-udp', { share: 0.3 }),
    },
  },
  {
    label: '50 connections, a request on each',
    job: job('ask', 64, { connections: 50 }),
    programs: { idle: [...BOTH, 'rsocket-shm', 'rsocket-udp', 'tcp', 'unix', 'ws'] },
    goals: {},
  },
  {
    label: '64 B, through two relays',
    job: job('ask', 64),
    programs: { idle: ['forward', 'relays'], busy: ['forward', 'relays'] },
    goals: {
      idle: goals('forward', { rate: 0.8 }, 'relays'),
      busy: goals('forward', { rate: 0.8 }, 'relays'),
    },
    isQuick: true,
  },
  {
    label: '64 B, 50 connections through two relays',
    job: job('ask', 64, { connections: 50 }),
    programs: { idle: ['forward', 'relays'], busy: ['forward', 'relays'] },
    goals: {
      idle: goals('forward', { rate: 0.8 }, 'relays'),
      busy: goals('forward', { rate: 0.8 }, 'relays'),
    },
  },
  connects('one after the other', 1),
  connects('50 at once', 50),
  paced(100),
  paced(1000),
  {
    label: 'cold',
    job: job('ask', 64),
    programs: { idle: COLD },
    goals: { idle: COLD_GOALS },
    isCold: true,
  },
];

/** In each place: whether it can be measured in at all. */
export const CONTROL: Row = {
  label: 'Node TCP against itself',
  job: job('ask', 64),
  programs: {
    idle: ['tcp', 'again'],
    busy: ['tcp', 'again'],
    net: ['tcp', 'again'],
    flow: ['tcp', 'again'],
  },
  goals: {},
};

/** Where a row is not the first of its programs. */
const FEW = ['easy-shm', 'easy-udp', 'tcp'];

/** The first row with all its programs, and relays; of the others, and elsewhere, few. */
export function shortRows(): Row[] {
  const [first, ...others] = ROWS as [Row, ...Row[]];
  const few = (programs: readonly string[] = []): string[] =>
    FEW.filter((each) => programs.includes(each));
  const { idle = [], busy, net } = first.programs;
  const rest = others.map((row) => {
    const own = row.programs.idle ?? [];
    const isRelayed = own.includes('relays');
    return {
      ...row,
      programs: { idle: isRelayed ? own : few(own).slice(0, 1), flow: few(row.programs.flow) },
    };
  });
  return [{ ...first, programs: { idle, busy: few(busy), net: few(net) } }, ...rest];
}
