/** What is measured, against whom, and what is aimed at: the lines of the report as a table. */
import { named } from './arguments.js';
import {
  type Arrangement,
  type Cell,
  type CellOptions,
  KIB64,
  LARGE_SET,
  MIB,
  type Workload,
  cell,
} from './cells.js';

export type Unit = 'GB/s' | 'us' | 'M/s' | '%';

/** Somebody else's cell that ours is divided by. */
export interface Rival {
  readonly cell: Cell;
  /** Ours divided by theirs is to be at least (of a rate) or at most (of a time) this. */
  readonly goal?: number;
  /** Of times and rates of messages: microseconds a message that ours may take longer, at most. */
  readonly moreUsGoal?: number;
  /** CPU seconds per GiB, ours divided by theirs, at most. */
  readonly cpuGoal?: number;
}

export interface Row {
  readonly label: string;
  readonly unit: Unit;
  readonly ours: Cell;
  readonly rivals: readonly Rival[];
  /** In the row's unit: at least (of a rate) or at most (of a time, or of CPU). */
  readonly goal?: number;
  /** p99 divided by p50, at most. */
  readonly tailGoal?: number;
}

/** Goals of a throughput row, by contender. */
type Goals = Readonly<Record<string, number>>;

const MIB_GOALS: Goals = {
  'node-tcp': 1.5,
  'fabric-net': 0.8,
  'fabric-rxm': 0.8,
  'ucx-tcp': 0.8,
  'fabric-rxd': 15,
  wall: 0.8,
};
const KIB64_GOALS: Goals = { 'node-tcp': 1.2, 'fabric-net': 0.8, 'fabric-rxd': 8, wall: 0.8 };

const SOCKETS = ['node-tcp', 'node-uds'];
const LIBRARIES = ['fabric-net', 'fabric-rxm', 'fabric-rxd', 'ucx-tcp'];

const NAMES = { send: 'SEND', write: 'RDMA WRITE', read: 'RDMA READ' } as const;

function throughput(workload: keyof typeof NAMES, bytes: number, polling: Cell['polling']): Row {
  const goals = bytes === MIB ? MIB_GOALS : KIB64_GOALS;
  const rivals = [
    // Sockets and the wall know but one way to move bytes; they are as we, asleep when idle.
    ...SOCKETS.map((name) => cell(name, 'send', bytes, { polling: 'event' })),
    ...LIBRARIES.map((name) => cell(name, workload, bytes)),
    cell('wall', 'send', bytes),
  ].map((each): Rival => {
    const goal = goals[each.contender];
    return {
      cell: each,
      ...(goal !== undefined && { goal }),
      ...(each.contender === 'node-tcp' && { cpuGoal: 1 }),
    };
  });
  const size = bytes === MIB ? '1 MiB' : '64 KiB';
  const label = `${size} ${NAMES[workload]}, ${polling}`;
  return { label, unit: 'GB/s', ours: cell('softroce', workload, bytes, { polling }), rivals };
}

function latency(label: string, workload: Workload, options: CellOptions, rivals: Rival[]): Row {
  const ours = cell('softroce', workload, 8, options);
  return { label: `8 B half RTT, ${label}`, unit: 'us', ours, rivals, tailGoal: 3 };
}

const spinning: Rival[] = [...SOCKETS, ...LIBRARIES].map((name) => ({
  cell: cell(name, 'ping', 8),
  goal: 1,
}));
const wallPing: Rival = { cell: cell('wall', 'ping', 8) };
const polled: Rival = { cell: cell('node-tcp', 'ping', 8), goal: 1 };
const asleep: Rival[] = [
  { cell: cell('node-tcp', 'ping', 8, { polling: 'event' }), goal: 1 },
  { cell: cell('node-uds', 'ping', 8, { polling: 'event' }) },
];

const rateRivals: Rival[] = [
  ...SOCKETS.map((name): Rival => {
    return { cell: cell(name, 'send', 64, { polling: 'event' }), goal: 1 };
  }),
  ...LIBRARIES.map((name): Rival => ({ cell: cell(name, 'send', 64), goal: 1 })),
  { cell: cell('wall', 'send', 64) },
];

const oneEndpoint = cell('softroce', 'send', 64);

/** Ours against ours: what a setting costs. */
function variant(
  workload: 'write' | 'read',
  label: string,
  contender: string,
  options: CellOptions,
): Row {
  const ours = cell(contender, workload, MIB, { polling: 'event', ...options });
  // What it is a variant of has packets of 56 KiB, which the two ends agree on.
  const rivals = [{ cell: cell('softroce', workload, MIB, { polling: 'event' }) }];
  return { label: `1 MiB ${NAMES[workload]}, ${label}`, unit: 'GB/s', ours, rivals };
}

/** A row again, as a peer of another make has it: no packets of 56 KiB, its ACKs before answers. */
function asToKernel({ label, unit, ours }: Row): Row {
  const foreign = cell('kernel', ours.workload, ours.bytes, ours);
  return { label: `${label}, as to a kernel`, unit, ours: foreign, rivals: [{ cell: ours }] };
}

const asToKernels: readonly Row[] = [
  latency('SEND, spin', 'ping', {}, []),
  latency('SEND, adaptive', 'ping', { polling: 'adaptive' }, []),
  latency('SEND, event', 'ping', { polling: 'event' }, []),
  latency('RDMA WRITE, spin', 'ping-write', {}, []),
  throughput('send', MIB, 'event'),
].map(asToKernel);

/** Ways of sending by a connection of dapl/flow. */
const FLOW_WAYS = { copied: 'flow', lent: 'flow-lend' } as const;
/** Modes that such connections have. */
const FLOW_POLLING = ['event', 'adaptive'] as const;
/** What promises may cost a message. */
const MOST_OVER_DAT_US = 1.5;

/** A connection of dapl/flow beside endpoints whose completions are told in the same way. */
function besideDat(label: string, unit: Unit, ours: Cell): Row {
  const dat = cell('softroce', ours.workload, ours.bytes, ours);
  return { label, unit, ours, rivals: [{ cell: dat, moreUsGoal: MOST_OVER_DAT_US }] };
}

const flowRows: readonly Row[] = Object.entries(FLOW_WAYS).flatMap(([way, contender]) => [
  ...FLOW_POLLING.map((polling) => {
    const label = `8 B half RTT, conn.send and receive, ${way}, ${polling}`;
    return besideDat(label, 'us', cell(contender, 'ping', 8, { polling }));
  }),
  besideDat(
    `64 B conn.send and receive, ${way}, 64 in flight, adaptive`,
    'M/s',
    cell(contender, 'send', 64, { polling: 'adaptive' }),
  ),
]);

/** What carries requests and answers in promises, and the rivals that cut messages out of TCP. */
const CALLERS = { conn: 'flow', channel: 'channel' } as const;
const MESSENGERS = ['node-framed', 'node-ws'];

/** @param goal beside TCP with a length before each message */
function calls(label: string, unit: Unit, ours: Cell, goal: number): Row {
  const { workload, bytes, depth, polling } = ours;
  const rivals = MESSENGERS.map((contender): Rival => {
    // A socket that is polled is so by an event loop that does not sleep.
    const theirs = { depth, polling: polling === 'event' ? polling : 'spin' } as const;
    const each = cell(contender, workload, bytes, theirs);
    return { cell: each, ...(contender === 'node-framed' && { goal }) };
  });
  return { label, unit, ours, rivals };
}

const callRows: readonly Row[] = Object.entries(CALLERS).flatMap(([who, contender]) => [
  ...FLOW_POLLING.map((polling) => {
    const label = `64 B half RTT, request and answer, ${who}, ${polling}`;
    const ours = cell(contender, 'ping', 64, { polling, depth: 1 });
    return calls(label, 'us', ours, polling === 'event' ? 0.5 : 1);
  }),
  calls(
    `64 B requests and answers, ${who}, 64 in flight, adaptive`,
    'M/s',
    cell(contender, 'calls', 64, { polling: 'adaptive' }),
    1,
  ),
]);

/** A row beside Node TCP in the same arrangement. */
function besideTcp(
  label: string,
  unit: Unit,
  ours: Cell,
  theirs: Cell['polling'],
  goal?: number,
): Row {
  const { workload, bytes, arrangement, workingSetBytes } = ours;
  const options = { polling: theirs, arrangement, workingSetBytes };
  // Sockets know but one way to move bytes.
  const tcp = cell('node-tcp', workload === 'ping' ? 'ping' : 'send', bytes, options);
  return { label, unit, ours, rivals: [{ cell: tcp, ...(goal !== undefined && { goal }) }] };
}

const largeSets: readonly Row[] = (['send', 'write', 'read'] as const).map((workload) => {
  const ours = cell('softroce', workload, MIB, { polling: 'event', workingSetBytes: LARGE_SET });
  const label = `1 MiB ${NAMES[workload]}, event, going round 256 MiB`;
  return besideTcp(label, 'GB/s', ours, 'event');
});

const PLACES = { unpinned: 'both unpinned', neighbour: 'a busy neighbour' } as const;

/** @param goal what is asked of `event` and `adaptive`, which sleep when there is nothing to do */
function arranged(arrangement: Exclude<Arrangement, 'pinned'>, goal?: number): readonly Row[] {
  return (['event', 'adaptive', 'spin'] as const).flatMap((polling) => {
    const row = (what: string, unit: Unit, workload: Workload, bytes: number): Row => {
      const ours = cell('softroce', workload, bytes, { polling, arrangement });
      // A stream of sockets sleeps as a rule; a ping is polled beside one that is.
      const theirs = workload === 'ping' && polling !== 'event' ? 'spin' : 'event';
      const label = `${what}, ${polling}, ${PLACES[arrangement]}`;
      return besideTcp(label, unit, ours, theirs, polling === 'spin' ? undefined : goal);
    };
    return [
      row('1 MiB SEND', 'GB/s', 'send', MIB),
      row('64 B SEND, 64 in flight', 'M/s', 'send', 64),
      row('8 B half RTT, SEND', 'us', 'ping', 8),
    ];
  });
}

/** What carries bytes between two processes of one host, beside UDP. */
const SHARING = ['fabric-shm', 'ucx-posix'];

/** Ours through shared memory beside ours over UDP and what others have of the kind. */
function throughShm(
  label: string,
  workload: keyof typeof NAMES,
  bytes: number,
  options: CellOptions,
  overUdp: number,
): Row {
  const isLong = bytes === MIB;
  const udp = cell('softroce', workload, bytes, options);
  const sockets = { ...options, polling: 'event', delivery: 'upcall' } as const;
  const { workingSetBytes = 0 } = options;
  const others: Rival[] = [
    { cell: cell('node-tcp', 'send', bytes, sockets) },
    { cell: cell('node-uds', 'send', bytes, sockets), ...(isLong && { goal: 2 }) },
    ...SHARING.map((name): Rival => {
      const theirs = cell(name, workload, bytes, { workingSetBytes });
      return { cell: theirs, ...(isLong && name === 'fabric-shm' && { goal: 0.8 }) };
    }),
  ];
  return {
    label,
    unit: bytes < 4096 ? 'M/s' : 'GB/s',
    ours: cell('shm', workload, bytes, options),
    rivals: [{ cell: udp, goal: overUdp, ...(isLong && { cpuGoal: 0.6 }) }, ...others],
  };
}

function pingThroughShm(label: string, options: CellOptions, goal: number): Row {
  const theirs = options.polling === 'event' ? ({ polling: 'event' } as const) : {};
  const others = options.polling === 'event' ? SOCKETS : [...SOCKETS, ...SHARING];
  return {
    label: `8 B half RTT, SEND, shm, ${label}`,
    unit: 'us',
    ours: cell('shm', 'ping', 8, options),
    rivals: [
      { cell: cell('softroce', 'ping', 8, options), goal },
      ...others.map((name): Rival => ({ cell: cell(name, 'ping', 8, theirs) })),
    ],
    tailGoal: 3,
  };
}

const WORKLOADS = ['send', 'write', 'read'] as const;
const shmRows: readonly Row[] = [
  { ...pingThroughShm('spin', {}, 0.5), goal: 1.6 },
  pingThroughShm('adaptive', { polling: 'adaptive' }, 1),
  pingThroughShm('event', { polling: 'event' }, 1),
  ...WORKLOADS.flatMap((workload) => [
    ...(['spin', 'event'] as const).map((polling) =>
      throughShm(`1 MiB ${NAMES[workload]}, shm, ${polling}`, workload, MIB, { polling }, 1.8),
    ),
    throughShm(
      `1 MiB ${NAMES[workload]}, shm, spin, 256 MiB`,
      workload,
      MIB,
      { workingSetBytes: LARGE_SET },
      1.8,
    ),
    throughShm(`64 KiB ${NAMES[workload]}, shm, spin`, workload, KIB64, {}, 1.5),
  ]),
  throughShm('64 B SEND, shm, 64 in flight', 'send', 64, {}, 1.2),
  {
    label: 'CPU of two idle processes, connected, shm',
    unit: '%',
    ours: cell('shm', 'idle', 8, { polling: 'adaptive' }),
    rivals: [],
    goal: 0.5,
  },
];

export const ROWS: readonly Row[] = [
  throughput('send', MIB, 'event'),
  throughput('write', MIB, 'event'),
  throughput('read', MIB, 'event'),
  throughput('send', MIB, 'spin'),
  throughput('write', MIB, 'spin'),
  throughput('read', MIB, 'spin'),
  throughput('send', KIB64, 'event'),
  throughput('write', KIB64, 'event'),
  throughput('read', KIB64, 'event'),
  throughput('send', KIB64, 'spin'),
  throughput('write', KIB64, 'spin'),
  throughput('read', KIB64, 'spin'),
  { ...latency('SEND, spin', 'ping', {}, [...spinning, wallPing]), goal: 3.7 },
  { ...latency('RDMA WRITE, spin', 'ping-write', {}, [...spinning, wallPing]), goal: 3.7 },
  latency('SEND, adaptive', 'ping', { polling: 'adaptive' }, [polled]),
  latency('SEND, adaptive, events$', 'ping', { polling: 'adaptive', delivery: 'events$' }, [
    polled,
  ]),
  latency('SEND, adaptive, for await', 'ping', { polling: 'adaptive', delivery: 'for-await' }, [
    polled,
  ]),
  latency('SEND, event', 'ping', { polling: 'event' }, asleep),
  {
    label: '64 B SEND, 64 in flight',
    unit: 'M/s',
    ours: oneEndpoint,
    rivals: rateRivals,
    goal: 1.5,
  },
  {
    label: '64 B SEND, 64 in flight over 1,000 EPs',
    unit: 'M/s',
    ours: cell('softroce', 'send', 64, { endpoints: 1000 }),
    rivals: [{ cell: oneEndpoint, goal: 0.7 }],
  },
  {
    label: '64 B SEND, 64 in flight, adaptive, for await',
    unit: 'M/s',
    ours: cell('softroce', 'send', 64, { polling: 'adaptive', delivery: 'for-await' }),
    rivals: [{ cell: oneEndpoint }],
  },
  {
    label: '4 KiB SEND, 64 in flight, spin',
    unit: 'GB/s',
    ours: cell('softroce', 'send', 4096, { depth: 64 }),
    rivals: [{ cell: throughput('send', KIB64, 'spin').ours }],
  },
  ...flowRows,
  ...callRows,
  ...shmRows,
  ...asToKernels,
  variant('write', 'MTU 4096', 'mtu-4096', {}),
  variant('read', 'MTU 4096', 'mtu-4096', {}),
  variant('write', 'MTU 2048', 'softroce', { mtuBytes: 2048 }),
  variant('write', 'MTU 1024', 'softroce', { mtuBytes: 1024 }),
  variant('write', 'dgram port', 'dgram', {}),
  {
    label: '8 B half RTT, SEND, dgram port, event',
    unit: 'us',
    ours: cell('dgram', 'ping', 8, { polling: 'event' }),
    rivals: [{ cell: cell('softroce', 'ping', 8, { polling: 'event' }) }],
  },
  {
    label: '64 B SEND, 64 in flight, dgram port',
    unit: 'M/s',
    ours: cell('dgram', 'send', 64),
    rivals: [{ cell: oneEndpoint }],
  },
  ...largeSets,
  ...arranged('unpinned'),
  ...arranged('neighbour', 1),
  {
    label: 'CPU of two idle processes, connected',
    unit: '%',
    ours: cell('softroce', 'idle', 8, { polling: 'adaptive' }),
    rivals: [],
    goal: 0.5,
  },
];

/** Rows whose label contains one of the texts, whatever its case; in the order of the report. */
export function rowsNamed(texts: readonly string[]): Row[] {
  return named(ROWS, texts);
}
