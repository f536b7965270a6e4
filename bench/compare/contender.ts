/** Who takes part: what they are called, and how their processes are started. */
import { peerProgram } from '../peers/build.js';
import type { Cell, Measurement } from './cells.js';
import { NodeJobs } from './node-jobs.js';
import { ProgramPair } from './program-pair.js';

/** The processes of a contender, or the readiness to start them. */
export interface Pair {
  measure(cell: Cell, seconds: number): Promise<Measurement>;
  close(): Promise<void>;
  /** At once. */
  kill(): void;
}

interface Contender {
  readonly label: string;
  /** What the worker knows it by; absent of programs in C. */
  readonly kind?: string;
  /** The entry of this package that it is written with, where that is not `dapl` itself. */
  readonly entry?: string;
  /** What a reader of the report may want to know. */
  readonly about: string;
  /** @throws MissingPeer when something that it needs is not installed */
  open(local: string, remote: string): Promise<Pair>;
}

function inNode(label: string, kind: string, about: string): Contender {
  return { label, kind, about, open: (local, remote) => NodeJobs.open(kind, local, remote) };
}

function inPromises(kind: string, entry: string, about: string): Contender {
  const label = kind === 'flow-lend' ? `${entry}, lent` : entry;
  return { ...inNode(label, kind, about), entry };
}

function program(label: string, name: string, variant: string, about: string): Contender {
  const open = async (local: string, remote: string): Promise<Pair> =>
    new ProgramPair(await peerProgram(name), variant, local, remote);
  return { label, about, open };
}

export const CONTENDERS: Readonly<Record<string, Contender>> = {
  softroce: inNode('softroce', 'native', 'this project over UDP'),
  shm: inNode('softroce (shm)', 'shm', 'this project through shared memory'),
  dgram: inNode('softroce (dgram port)', 'dgram', 'this project without its native addon'),
  'mtu-4096': inNode('softroce (MTU 4096)', 'mtu-4096', 'this project, packets as IBTA has them'),
  kernel: inNode('softroce (as to a kernel)', 'kernel', 'this project with agreements: false'),
  flow: inPromises('flow', 'dapl/flow', 'conn.send and conn.receive, bytes copied'),
  'flow-lend': inPromises('flow-lend', 'dapl/flow', 'the same; segments sent, buffers lent'),
  channel: inPromises('channel', 'dapl/flow/channel', 'messages with credits over a connection'),
  'node-tcp': inNode('Node TCP', 'tcp', 'net.Socket, a write each message'),
  'node-uds': inNode('Node Unix socket', 'unix', 'the same over a Unix socket'),
  'node-framed': inNode('Node TCP, framed', 'framed', 'net.Socket, a length before each message'),
  'node-ws': inNode('ws', 'ws', 'messages of WebSocket, without compression'),
  'fabric-net': program('libfabric net', 'fabric', 'net', 'RDM over TCP, no CRC'),
  'fabric-rxm': program('libfabric tcp;ofi_rxm', 'fabric', 'tcp;ofi_rxm', 'RDM over TCP, no CRC'),
  'fabric-rxd': program('libfabric udp;ofi_rxd', 'fabric', 'udp;ofi_rxd', 'reliable RMA over UDP'),
  'fabric-shm': program('libfabric shm', 'fabric', 'shm', 'RDM through shared memory, and CMA'),
  'ucx-posix': program('UCX posix', 'ucx', 'posix', 'UCP through shared memory'),
  'ucx-tcp': program('UCX tcp', 'ucx', 'tcp', 'UCP over TCP, no CRC'),
  wall: program('C UDP GSO + ICRC', 'wall', 'wall', 'no protocol; an ACK each 64 KiB message'),
};

/** Contenders that are ours: never left out. */
export const OURS: readonly string[] = [
  ...['softroce', 'shm', 'dgram', 'mtu-4096', 'kernel'],
  ...['flow', 'flow-lend', 'channel'],
];
export const PEERS: readonly string[] = Object.keys(CONTENDERS).filter((id) => !OURS.includes(id));
