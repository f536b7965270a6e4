// Loss, duplicates, overtaking and delay, in either direction: every byte must come right.
import assert from 'node:assert/strict';

import type { RunningCommand, RunResult } from '../command.js';
import { impair, type Impairment, repair } from '../impair.js';
import { type Lab, PATH_MTUS, type PathMtu } from '../lab.js';
import type { Case } from '../suite.js';
import { captured, startPeer, transcript } from './captured.js';
import { putPeer } from './peer-programs.js';

const PORT = 7700;
const START_TIMEOUT_MS = 20_000;
const TRANSFER_TIMEOUT_MS = 120_000;
const FULL_TIMEOUT_MS = 300_000;
/** 33 ms, not rdma_cm's 2.15 s, for each lost tail. Our client adds the kernel's ACK delay. */
const ACK_TIMEOUT = 13;
/** Of our side; the kernel takes 7 for "for ever". */
const RETRIES = 7;
/** Four times that in each round: a message and its echo, a write, a read. */
const SIZE_BYTES = 150_001;
const ROUNDS = 5;

const ROLES = ['client', 'server'] as const;
const FAMILIES = ['ipv4', 'ipv6'] as const;
const WAYS = ['from us', 'to us', 'both ways'] as const;
/** Parameters of netem. */
const TROUBLES = [
  'loss 1%',
  'loss 5%',
  'loss 10%',
  'duplicate 20%',
  'delay 2ms reorder 25% 50%',
  'delay 5ms 1ms',
  'delay 1ms 1ms loss 3% duplicate 5% reorder 20%',
] as const;

interface Weather {
  readonly trouble: (typeof TROUBLES)[number];
  readonly way: (typeof WAYS)[number];
  readonly role: (typeof ROLES)[number];
  readonly family: (typeof FAMILIES)[number];
  readonly mtuBytes: PathMtu;
}

/** Each trouble, each way, role and family: once at least, in the small run. */
const IN_SMALL_RUN: readonly string[] = [
  nameOf({ trouble: 'loss 1%', way: 'both ways', role: 'client', family: 'ipv4', mtuBytes: 4096 }),
  nameOf({ trouble: 'loss 5%', way: 'to us', role: 'server', family: 'ipv6', mtuBytes: 1024 }),
  nameOf({ trouble: 'loss 5%', way: 'from us', role: 'server', family: 'ipv4', mtuBytes: 1024 }),
  nameOf({ trouble: 'loss 10%', way: 'both ways', role: 'client', family: 'ipv6', mtuBytes: 1024 }),
  nameOf({
    trouble: TROUBLES[3],
    way: 'both ways',
    role: 'server',
    family: 'ipv4',
    mtuBytes: 4096,
  }),
  nameOf({
    trouble: TROUBLES[4],
    way: 'both ways',
    role: 'client',
    family: 'ipv4',
    mtuBytes: 1024,
  }),
  nameOf({
    trouble: TROUBLES[5],
    way: 'both ways',
    role: 'server',
    family: 'ipv6',
    mtuBytes: 4096,
  }),
  nameOf({
    trouble: TROUBLES[6],
    way: 'both ways',
    role: 'client',
    family: 'ipv4',
    mtuBytes: 4096,
  }),
];

export function badLinkCases(lab: Lab, version: string): Case[] {
  return allWeather().map((weather): Case => {
    const { trouble, way, role, family, mtuBytes } = weather;
    const name = nameOf(weather);
    return {
      name,
      full: !IN_SMALL_RUN.includes(name),
      timeoutMs: FULL_TIMEOUT_MS,
      row: {
        counterpart: 'transfer-peer (librdmacm)',
        version,
        role,
        transport: `rdma_cm, RC, ${textOfFamily(family)}, SEND, WRITE and READ, ${trouble} ${way}`,
        mtuBytes,
      },
      run: () => transferInWeather(lab, weather),
    };
  });
}

function allWeather(): Weather[] {
  return PATH_MTUS.flatMap((mtuBytes) =>
    FAMILIES.flatMap((family) =>
      ROLES.flatMap((role) =>
        TROUBLES.flatMap((trouble) =>
          WAYS.map((way) => ({ mtuBytes, family, role, trouble, way })),
        ),
      ),
    ),
  );
}

function nameOf({ trouble, way, role, family, mtuBytes }: Weather): string {
  return `bad link, our ${role}, ${textOfFamily(family)}, MTU ${mtuBytes}, ${trouble} ${way}`;
}

function textOfFamily(family: 'ipv4' | 'ipv6'): string {
  return family === 'ipv4' ? 'IPv4' : 'IPv6';
}

async function transferInWeather(lab: Lab, weather: Weather): Promise<void> {
  const { role, family, trouble, way, mtuBytes } = weather;
  await lab.setPathMtu(mtuBytes);
  const guest = lab.guest(0);
  await captured(lab, guest, nameOf(weather).replaceAll(/\W+/g, '-'), async () => {
    const { ours, kernels, kill } = await startTransfer(lab, role, family, {
      sizeBytes: SIZE_BYTES,
      rounds: ROUNDS,
      ackTimeout: ACK_TIMEOUT,
      retryCount: RETRIES,
    });
    try {
      await ours.waitForOutput(/^connected$/m, START_TIMEOUT_MS);
      await impair(guest, impairmentOf(trouble, way));
      ours.kill('SIGUSR2');
      await ours.waitForOutput(/^(transferred|served \d+)$/m, TRANSFER_TIMEOUT_MS);
      await repair(guest);
      ours.kill('SIGUSR2');
      const [driver, server] = role === 'client' ? [ours, kernels] : [kernels, ours];
      assertSaid(await driver.finish(), `done ${ROUNDS - 1}`);
      assertSaid(await server.finish(), `served ${ROUNDS}`);
    } finally {
      kill();
      await repair(guest);
    }
  });
}

export interface Transfer {
  readonly sizeBytes: number;
  readonly rounds: number;
  readonly ackTimeout: number;
  /** Of our side. */
  readonly retryCount: number;
}

export interface Ends {
  readonly ours: RunningCommand;
  readonly kernels: RunningCommand;
  readonly kill: () => void;
}

/** Both ends of a transfer. Ours waits for SIGUSR2 when it is connected, and before it ends. */
export async function startTransfer(
  lab: Lab,
  role: Weather['role'],
  family: Weather['family'],
  { sizeBytes, rounds, ackTimeout, retryCount }: Transfer,
): Promise<Ends> {
  const guest = lab.guest(0);
  const program = `exec ${putPeer(guest, 'transfer-peer')}`;
  const ourArgs = `${sizeBytes} ${rounds} ${ackTimeout} ${retryCount}`;
  const address = role === 'client' ? guest[family] : lab.host[family];
  const server =
    role === 'client'
      ? guest.spawn(`${program} serve ${address} ${PORT} ${sizeBytes}`)
      : startPeer(lab, `transfer-server ${address} ${ourArgs}`);
  await server.waitForOutput(/listening/, START_TIMEOUT_MS);
  const driver =
    role === 'client'
      ? startPeer(lab, `transfer-client ${address} ${ourArgs}`)
      : guest.spawn(`${program} drive ${address} ${PORT} ${sizeBytes} ${rounds} ${ackTimeout}`);
  const [ours, kernels] = role === 'client' ? [driver, server] : [server, driver];
  const kill = (): void => [server, driver].forEach((command) => command.kill());
  return { ours, kernels, kill };
}

function assertSaid(result: RunResult, line: string): void {
  assert.equal(result.code, 0, transcript(result));
  assert.ok(result.stdout.includes(`${line}\n`), transcript(result));
}

/** As the guest sees it. */
function impairmentOf(trouble: string, way: Weather['way']): Impairment {
  return {
    ...(way === 'from us' ? {} : { outgoing: trouble }),
    ...(way === 'to us' ? {} : { incoming: trouble }),
  };
}
