/** What is measured, and against what: a table of cells, each a workload on a transport. */

export type Transport = 'softroce' | 'dgram' | 'tcp';
/** Throughput and rate are streams: so many messages in flight, each completion consumed. */
export type Workload = 'write' | 'send' | 'ping';

export interface Cell {
  readonly name: string;
  readonly transport: Transport;
  readonly workload: Workload;
  readonly bytes: number;
  /** Messages in flight. */
  readonly depth: number;
  /** `spin`: both sides look for completions without sleeping; `event`: they are woken. */
  readonly mode: 'spin' | 'event';
}

/** A line of the report: ours, and the peer's that it is divided by. */
export interface Row {
  readonly label: string;
  readonly unit: 'GB/s' | 'us' | 'M/s';
  readonly ours: Cell;
  readonly peer: Cell;
}

const KIB = 1024;
const MIB = 1024 * KIB;

function cell(
  transport: Transport,
  workload: Workload,
  bytes: number,
  depth: number,
  mode: Cell['mode'],
): Cell {
  const name = `${transport}-${workload}-${bytes}-${mode}`;
  return { name, transport, workload, bytes, depth, mode };
}

const tcpMib = cell('tcp', 'send', MIB, 4, 'event');
const tcp64Kib = cell('tcp', 'send', 64 * KIB, 32, 'event');
const tcpPing = cell('tcp', 'ping', 8, 1, 'event');
const tcpPingSpin = cell('tcp', 'ping', 8, 1, 'spin');
const tcpRate = cell('tcp', 'send', 64, 64, 'event');

function throughput(
  label: string,
  transport: Transport,
  workload: Workload,
  bytes: number,
  mode: Cell['mode'] = 'event',
): Row {
  const peer = bytes === MIB ? tcpMib : tcp64Kib;
  const ours = cell(transport, workload, bytes, peer.depth, mode);
  return { label, unit: 'GB/s', ours, peer };
}

export const ROWS: readonly Row[] = [
  throughput('1 MiB RDMA WRITE', 'softroce', 'write', MIB),
  throughput('1 MiB RDMA WRITE, spin', 'softroce', 'write', MIB, 'spin'),
  throughput('1 MiB SEND', 'softroce', 'send', MIB),
  throughput('64 KiB RDMA WRITE', 'softroce', 'write', 64 * KIB),
  throughput('64 KiB SEND', 'softroce', 'send', 64 * KIB),
  throughput('1 MiB RDMA WRITE, dgram port', 'dgram', 'write', MIB),
  {
    label: '8 B half RTT, spin',
    unit: 'us',
    ours: cell('softroce', 'ping', 8, 1, 'spin'),
    peer: tcpPingSpin,
  },
  {
    label: '8 B half RTT, event',
    unit: 'us',
    ours: cell('softroce', 'ping', 8, 1, 'event'),
    peer: tcpPing,
  },
  {
    label: '64 B SEND, 64 in flight',
    unit: 'M/s',
    ours: cell('softroce', 'send', 64, 64, 'spin'),
    peer: tcpRate,
  },
];

/** What a run of a cell came to. */
export interface Measurement {
  /** GB/s or M/s; for `ping` the median half round trip in microseconds. */
  readonly value: number;
  /** 99th percentile of the half round trip, in microseconds; `ping` only. */
  readonly p99?: number;
  readonly bytes: number;
  /** User and system time of both sides, in seconds. */
  readonly cpuSeconds: number;
}
