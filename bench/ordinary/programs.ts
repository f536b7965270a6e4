/** The programs that are measured, and the peers beside them. */

export interface ProgramInfo {
  readonly label: string;
  /** The worker's name for its two sides, with flags. */
  readonly kind: string;
  /** Two relays of that kind between a client and a server of TCP. */
  readonly relay?: 'relay' | 'forward';
  /** The server is a child of the client. */
  readonly isAlone?: boolean;
}

function ours(label: string, kind: string): ProgramInfo {
  return { label, kind };
}

export const PROGRAMS: Readonly<Record<string, ProgramInfo>> = {
  'easy-shm': ours('dapl/easy, shm', 'easy'),
  'easy-udp': ours('dapl/easy, UDP', 'easy-udp'),
  'event-shm': ours('dapl/easy, event, shm', 'easy-event'),
  'event-udp': ours('dapl/easy, event, UDP', 'easy-udp-event'),
  'channel-shm': ours('channel, shm', 'channel'),
  'channel-udp': ours('channel, UDP', 'channel-udp'),
  'rsocket-shm': ours('rsocket, shm', 'rsocket'),
  'rsocket-udp': ours('rsocket, UDP', 'rsocket-udp'),
  'dat-shm': ours('DAT completions$, shm', 'dat'),
  'dat-udp': ours('DAT completions$, UDP', 'dat-udp'),
  forward: { label: 'two dapl forward', kind: 'tcp', relay: 'forward' },
  tcp: { label: 'Node TCP', kind: 'tcp' },
  again: { label: 'Node TCP, again', kind: 'tcp' },
  unix: { label: 'Node Unix socket', kind: 'unix' },
  ws: { label: 'ws', kind: 'ws' },
  ipc: { label: 'child_process IPC', kind: 'ipc', isAlone: true },
  relays: { label: 'two Node relays', kind: 'tcp', relay: 'relay' },
};

const PEERS = ['tcp', 'again', 'unix', 'ws', 'ipc', 'relays'];

export function isOurs(program: string): boolean {
  return !PEERS.includes(program);
}
