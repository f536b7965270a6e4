/**
 * Two network namespaces and a link between them: veth with a rate and loss, or TUN with a delay.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { peerProgram } from '../peers/build.js';
import type { Lift, Place, Site } from './places.js';

/** Teams that have addresses at a time. */
const TEAMS = 40;
const MTU_BYTES = 1500;
/** Longest GSO train, and what a switch may hold back. */
const BURST = '64kb';
const QUEUE = '5ms';

interface Link {
  readonly gigabits?: number;
  /** Of packets, on either side. */
  readonly loss?: number;
  readonly delayMs?: number;
  readonly hasFlow?: boolean;
}

/** By the name of the place. */
const LINKS: Readonly<Record<string, Link>> = {
  'net-1g': { gigabits: 1 },
  'net-10g': { gigabits: 10 },
  'net-1g-loss': { gigabits: 1, loss: 0.001 },
  'net-10g-loss': { gigabits: 10, loss: 0.001 },
  'net-1g-flow': { gigabits: 1, hasFlow: true },
  'net-10g-flow': { gigabits: 10, hasFlow: true },
  // The cost of the relay itself stands beside its delays.
  'net-relay': { delayMs: 0 },
  'net-0.2ms': { delayMs: 0.2 },
  'net-20ms': { delayMs: 20 },
};

export function networkPlaces(): Place[] {
  return Object.entries(LINKS).map(([label, link]) => ({
    label,
    group: link.hasFlow ? 'flow' : 'net',
    lack: () => lackOf(link),
    open: () => openLink(link),
  }));
}

function lackOf({ loss, delayMs }: Link): string | undefined {
  if (process.geteuid?.() !== 0) return 'network namespaces need root';
  const program = ['ip', 'tc', 'nsenter', ...(loss ? ['iptables'] : [])].find(
    (each) => spawnSync('which', [each]).status !== 0,
  );
  if (program !== undefined) return `${program} is not installed: apt install iproute2 iptables`;
  if (delayMs !== undefined && !existsSync('/dev/net/tun')) return 'there is no /dev/net/tun';
  return undefined;
}

async function openLink(link: Link): Promise<Site> {
  const ends = ['a', 'b'].map((end) => `dapl-${end}-${process.pid}`) as [string, string];
  let relay: ChildProcess | undefined;
  const close = (): void => {
    process.off('exit', close);
    relay?.kill('SIGKILL');
    for (const end of ends) spawnSync('ip', ['netns', 'del', end]);
  };
  process.on('exit', close);
  try {
    for (const end of ends) run('ip', 'netns', 'add', end);
    const { delayMs } = link;
    if (delayMs === undefined) join(ends, link);
    else relay = await startRelay(ends, delayMs);
    for (const [i, end] of ends.entries()) configure(end, i + 1);
  } catch (error) {
    close();
    throw error;
  }
  return {
    where: (n) => ({
      client: { address: addressOf(1, n), namespace: ends[0] },
      server: { address: addressOf(2, n), namespace: ends[1] },
    }),
    burden: () => lose(ends, link.loss),
    ...(link.hasFlow && { hasFlow: true }),
    close,
  };
}

function addressOf(side: number, n: number): string {
  return `10.77.${side}.${n + 1}`;
}

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
}

/** A cable; trains of packets are cut before it, as a network does. */
function join([a, b]: readonly [string, string], { gigabits }: Link): void {
  run('ip', 'link', 'add', 'wire', 'netns', a, 'type', 'veth', 'peer', 'name', 'wire', 'netns', b);
  for (const end of [a, b]) {
    run('ip', '-n', end, 'link', 'set', 'wire', 'mtu', String(MTU_BYTES), 'gso_max_segs', '1');
    const rate = ['rate', `${gigabits}gbit`, 'burst', BURST, 'latency', QUEUE];
    run('tc', '-n', end, 'qdisc', 'add', 'dev', 'wire', 'root', 'tbf', ...rate);
  }
}

/** Addresses for all teams. */
function configure(end: string, side: number): void {
  run('ip', '-n', end, 'link', 'set', 'lo', 'up');
  run('ip', '-n', end, 'link', 'set', 'wire', 'up');
  for (let n = 0; n < TEAMS; n++) {
    run('ip', '-n', end, 'addr', 'add', `${addressOf(side, n)}/16`, 'dev', 'wire');
  }
}

/** Loses packets that come, at random. */
function lose(ends: readonly string[], probability = 0): Lift {
  if (probability === 0) return () => undefined;
  const rule = ['-m', 'statistic', '--mode', 'random', '--probability', String(probability)];
  const change = (how: '-A' | '-D'): void => {
    for (const end of ends) {
      run('nsenter', `--net=/run/netns/${end}`, 'iptables', how, 'INPUT', ...rule, '-j', 'DROP');
    }
  };
  change('-A');
  return () => change('-D');
}

/** Carries packets between a TUN device of each namespace, each after its delay. */
async function startRelay(ends: readonly string[], delayMs: number): Promise<ChildProcess> {
  const program = await peerProgram('relay');
  const args = [...ends.map((end) => `/run/netns/${end}`), 'wire', String(delayMs * 1000)];
  const relay = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  // Its first line says that both devices are there.
  await Promise.race([
    once(relay.stdout, 'data'),
    once(relay, 'exit').then(() => Promise.reject(new Error('the relay could not start'))),
  ]);
  for (const end of ends) run('ip', '-n', end, 'link', 'set', 'wire', 'mtu', String(MTU_BYTES));
  return relay;
}
