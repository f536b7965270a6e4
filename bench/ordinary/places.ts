/** Places: what else goes on where a program runs. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pin } from '../compare/pinned.js';
import { networkPlaces } from './network.js';
import type { Group } from './rows.js';
import type { Where } from './team.js';

/** A burden that lies on processes; the call takes it away. */
export type Lift = () => void;

/** A place that is set up. */
export interface Site {
  /** @param n of the team, from 0 */
  where(n: number): Where;
  /** Begins behind the warm-up, which is of the code and not of the place. */
  burden(pids: readonly number[]): Lift;
  /** A TCP flow goes beside each measurement. */
  readonly hasFlow?: boolean;
  close(): void;
}

export interface Place {
  readonly label: string;
  readonly group: Group;
  /** One of the places of `--quick`. */
  readonly isQuick?: true;
  /** Why it cannot be had here; undefined if it can. */
  lack(): string | undefined;
  open(): Promise<Site>;
}

/** Teams on loopback, on a network each, so that each program finds addresses of its own. */
const FIRST_NETWORK = 20;

function onLoopback(burden: Site['burden']): Place['open'] {
  return async () => ({
    where: (n) => ({
      client: { address: `127.${FIRST_NETWORK + n}.0.1` },
      server: { address: `127.${FIRST_NETWORK + n}.0.2` },
    }),
    burden,
    close: () => undefined,
  });
}

/** Processes that compute, at normal priority and unpinned. */
function busy(processes: number): Lift {
  const children = Array.from({ length: processes }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
  const end = (): void => {
    for (const child of children) child.kill('SIGKILL');
    process.off('exit', end);
  };
  process.on('exit', end);
  return end;
}

function onOneCore(pids: readonly number[]): Lift {
  for (const pid of pids) pin(pid, 0);
  return () => pids.forEach((pid) => pin(pid));
}

const GROUPS = '/sys/fs/cgroup';
const PERIOD_US = 100_000;
const QUOTA_US = 50_000;

/** How the CPU controller is had: mounted by itself (v1), or one of the unified tree (v2). */
function controller(): 'v1' | 'v2' | undefined {
  if (existsSync(join(GROUPS, 'cpu/cpu.cfs_quota_us'))) return 'v1';
  const unified = join(GROUPS, 'cgroup.controllers');
  if (existsSync(unified) && /\bcpu\b/.test(readFileSync(unified, 'utf8'))) return 'v2';
  return undefined;
}

function inHalfACore(pids: readonly number[]): Lift {
  const isV1 = controller() === 'v1';
  const parent = isV1 ? join(GROUPS, 'cpu') : GROUPS;
  const group = join(parent, `dapl-bench-${process.pid}`);
  if (!isV1) writeFileSync(join(parent, 'cgroup.subtree_control'), '+cpu');
  mkdirSync(group);
  if (isV1) writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
  if (isV1) writeFileSync(join(group, 'cpu.cfs_quota_us'), String(QUOTA_US));
  else writeFileSync(join(group, 'cpu.max'), `${QUOTA_US} ${PERIOD_US}`);
  const move = (to: string): void => {
    for (const pid of pids) writeFileSync(join(to, 'cgroup.procs'), String(pid));
  };
  move(group);
  const lift = (): void => {
    process.off('exit', lift);
    move(parent);
    rmdirSync(group);
  };
  process.on('exit', lift);
  return lift;
}

function lackOfGroup(): string | undefined {
  if (process.geteuid?.() !== 0) return 'a cgroup of half a core needs root';
  return controller() === undefined ? `no CPU controller of cgroups in ${GROUPS}` : undefined;
}

const nothing = (): undefined => undefined;

export const PLACES: readonly Place[] = [
  {
    label: 'idle',
    group: 'idle',
    isQuick: true,
    lack: nothing,
    open: onLoopback(() => () => undefined),
  },
  {
    label: 'busy1',
    group: 'busy',
    isQuick: true,
    lack: nothing,
    open: onLoopback(() => busy(1)),
  },
  { label: 'busy2', group: 'busy', lack: nothing, open: onLoopback(() => busy(2)) },
  { label: 'onecore', group: 'busy', lack: nothing, open: onLoopback(onOneCore) },
  {
    label: 'half',
    group: 'busy',
    isQuick: true,
    lack: lackOfGroup,
    open: onLoopback(inHalfACore),
  },
  ...networkPlaces(),
];
