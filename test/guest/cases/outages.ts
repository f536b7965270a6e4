// A link that is gone for a while, or for good; and the ends of programs in mid-transfer.
import assert from 'node:assert/strict';

import { paused } from '../../support/patience.js';
import type { RunningCommand } from '../command.js';
import { impair, repair } from '../impair.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import type { Case, InteropRow } from '../suite.js';
import { readPcapRecords } from '../pcap.js';
import { dissect, type Dissection } from '../tshark.js';
import { startTransfer } from './bad-link.js';
import { captured, capturedFile, startPeer, transcript } from './captured.js';
import { MEMORY_PORT, putMemoryPeer } from './peer-programs.js';

type Family = 'ipv4' | 'ipv6';

const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 60_000;
const OUTAGE_MS = 1000;
const LONG_OUTAGE_MS = 5000;
const TRAFFIC_MS = 300;
const MEMORY_BYTES = 65_536;
const PIECE_BYTES = 20_000;
const PIECES = 200;
/** More than any case lets them have time for. */
const MANY_ROUNDS = 10_000;
const SIZE_BYTES = 50_000;
/** Exponents of the ACK timeout: 134 ms and, for what shall fail soon, 17 ms. */
const [PATIENT, HASTY] = [15, 12];
const RETRIES = 3;
/** RC SEND first is 0, middle is 1. IBTA 9.2, table 38. */
const SEND_MIDDLE = 1;

/** Two ways to have no link. */
const CUTS = {
  /** Between the two: neither side's own link goes down. */
  unplugged: {
    cut: async (lab: Lab, guest: Guest): Promise<void> => lab.unplug(guest),
    mend: async (lab: Lab, guest: Guest): Promise<void> => lab.plug(guest),
  },
  'eth0 down': {
    cut: (_: Lab, guest: Guest): Promise<void> => guest.linkDown(),
    mend: (_: Lab, guest: Guest): Promise<void> => guest.linkUp(),
  },
  /** Our system refuses every packet meanwhile: ENETUNREACH. */
  'our own down': {
    cut: async (lab: Lab): Promise<void> => lab.linkDown(),
    mend: async (lab: Lab): Promise<void> => lab.linkUp(),
  },
} as const;
type Cut = keyof typeof CUTS;

export function outageCases(lab: Lab, version: string): Case[] {
  const row = (peer: string, role: string, what: string, family: Family): InteropRow => ({
    counterpart: `${peer} (librdmacm)`,
    version,
    role,
    transport: `rdma_cm, RC, ${family === 'ipv4' ? 'IPv4' : 'IPv6'}, ${what}`,
    mtuBytes: 1024,
  });
  const outages = (
    [
      ['client', 'unplugged', 'ipv6', OUTAGE_MS],
      ['client', 'eth0 down', 'ipv4', OUTAGE_MS],
      ['server', 'unplugged', 'ipv4', OUTAGE_MS],
      // With the attributes that an endpoint has by default.
      ['client', 'our own down', 'ipv4', LONG_OUTAGE_MS],
    ] as const
  ).map(([role, cut, family, forMs]): Case => {
    const what = `no link (${cut}) for ${forMs} ms`;
    return {
      name: `fault: ${what} in mid-transfer, our ${role}`,
      row: row('memory-peer', role === 'client' ? 'requester' : 'responder', what, family),
      run: () => outage(lab, role, cut, family, forMs),
    };
  });
  return [
    ...outages,
    {
      name: `fault: no answer any more, our requester tries ${RETRIES} times again`,
      row: row('transfer-peer', 'client', `${RETRIES} retries in vain, then BROKEN`, 'ipv4'),
      run: () => noAnswer(lab),
    },
    {
      name: 'fault: our client is killed in mid-transfer, its successor transfers',
      row: row('transfer-peer', 'client', 'our process killed', 'ipv6'),
      run: () => ourClientKilled(lab),
    },
    {
      name: 'fault: the kernel client is killed in mid-transfer',
      row: row('transfer-peer', 'server', 'client killed', 'ipv6'),
      run: () => kernelClientKilled(lab),
    },
  ];
}

/** Shorter than the retries last: the transfer goes on, on the same connection. */
async function outage(
  lab: Lab,
  role: 'client' | 'server',
  kind: Cut,
  family: Family,
  forMs: number,
): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  const { cut, mend } = CUTS[kind];
  const program = `exec ${putMemoryPeer(guest)}`;
  const sizes = new Array<number>(PIECES).fill(PIECE_BYTES).join(' ');
  const said = `done ${PIECE_BYTES}\n`.repeat(PIECES);
  const file = await capturedFile(lab, guest, `outage-${role}-${family}-${forMs}`, async () => {
    const server =
      role === 'client'
        ? guest.spawn(`${program} serve ${guest[family]} ${MEMORY_PORT} ${MEMORY_BYTES}`)
        : startPeer(lab, `memory-server ${lab.host[family]} ${MEMORY_BYTES}`);
    let client: RunningCommand | undefined;
    try {
      await server.waitForOutput(/listening/, START_TIMEOUT_MS);
      client =
        role === 'client'
          ? startPeer(lab, `memory-client ${guest[family]} ${sizes}`)
          : guest.spawn(`${program} drive ${lab.host[family]} ${MEMORY_PORT} ${sizes}`);
      await client.waitForOutput(/done/, START_TIMEOUT_MS);
      await cut(lab, guest);
      await paused(forMs);
      assert.ok(!client.stdout.includes(said), 'done too early');
      await mend(lab, guest);
      const result = await client.finish(END_TIMEOUT_MS);
      assert.equal(result.stdout, said, transcript(result));
      const served = await server.finish();
      assert.equal(served.code, 0, transcript(served));
    } finally {
      server.kill();
      client?.kill();
      await mend(lab, guest);
    }
  });
  // Either we see what is said again, or that for so long nothing was said at all.
  const packets = await dissect(file);
  const repeated = packets.some(isRepeated(packets));
  assert.ok(repeated || longestSilenceMs(file) > forMs / 2, 'the outage was not felt');
}

function longestSilenceMs(file: string): number {
  const times = readPcapRecords(file).map(({ timeUs }) => timeUs);
  return Math.max(...times.map((timeUs, i) => timeUs - (times[i - 1] ?? timeUs))) / 1000;
}

/** True for requests and data that the capture has more than once. */
function isRepeated(packets: readonly Dissection[]): (packet: Dissection) => boolean {
  const keyOf = ({ source, destinationQpn, opcode, psn }: Dissection): string =>
    `${source} ${destinationQpn} ${opcode} ${psn}`;
  const counts = new Map<string, number>();
  for (const packet of packets) {
    counts.set(keyOf(packet), (counts.get(keyOf(packet)) ?? 0) + 1);
  }
  return (packet) => (counts.get(keyOf(packet)) ?? 0) > 1;
}

/** From one moment on nothing reaches the guest: so many retries, an error, and BROKEN. */
async function noAnswer(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  let told = '';
  const packets = await captured(lab, guest, 'no-answer', async () => {
    const ends = await startTransfer(lab, 'client', 'ipv4', {
      sizeBytes: SIZE_BYTES,
      rounds: MANY_ROUNDS,
      ackTimeout: HASTY,
      retryCount: RETRIES,
    });
    try {
      await ends.ours.waitForOutput(/^connected$/m, START_TIMEOUT_MS);
      await impair(guest, { incoming: 'loss 100%' });
      ends.ours.kill('SIGUSR2');
      const result = await ends.ours.finish(END_TIMEOUT_MS);
      assert.match(result.stdout, /^(send|write|read): TRANSPORT\nBROKEN/m, transcript(result));
      told = result.stdout;
      for (const part of ['ep', 'qp', 'cm']) {
        assert.match(told, new RegExp(`^ {2}${part}: `, 'm'), 'flight record');
      }
    } finally {
      ends.kill();
      await repair(guest);
    }
  });
  const retries = [...told.matchAll(/retry from PSN \d+, (\d+) left/g)].map(([, left]) => left);
  assert.deepEqual(retries, ['2', '1', '0'], 'a retry for each ACK timeout but the last');
  assert.equal(told.match(/no response for [\d.]+ us/g)?.length, 1 + RETRIES, told);
  // Go-back-N: the oldest request leads each attempt. It asks in between, too, which is no retry.
  const requests = packets.filter(
    ({ source, destinationQpn, opcode = 0xff }) =>
      source === lab.host.ipv4 && destinationQpn > 1 && opcode <= SEND_MIDDLE,
  );
  const [first] = requests;
  const attempts = requests.filter(({ psn }) => psn === first?.psn).length;
  assert.ok(attempts > RETRIES, `${attempts} attempts of ${requests.length} packets`);
}

/** Nobody disconnects for us: the orphan in the guest is ended by hand, and both sides go on. */
async function ourClientKilled(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  await captured(lab, guest, 'our-client-killed', async () => {
    const options = { sizeBytes: SIZE_BYTES, ackTimeout: PATIENT, retryCount: 7 };
    const orphaned = await startTransfer(lab, 'client', 'ipv6', {
      ...options,
      rounds: MANY_ROUNDS,
    });
    try {
      await midTransfer(orphaned.ours);
      await orphaned.ours.stop('SIGKILL');
      await orphaned.kernels.stop('SIGKILL');
      const next = await startTransfer(lab, 'client', 'ipv6', { ...options, rounds: 2 });
      try {
        await next.ours.waitForOutput(/^connected$/m, START_TIMEOUT_MS);
        next.ours.kill('SIGUSR2');
        await next.ours.waitForOutput(/^transferred$/m, END_TIMEOUT_MS);
        next.ours.kill('SIGUSR2');
        const served = await next.kernels.finish();
        assert.match(served.stdout, /^served 2$/m, transcript(served));
      } finally {
        next.kill();
      }
    } finally {
      orphaned.kill();
    }
  });
}

/** The kernel disconnects for its dead process: our server sees an end, not a time-out. */
async function kernelClientKilled(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  await captured(lab, guest, 'kernel-client-killed', async () => {
    const ends = await startTransfer(lab, 'server', 'ipv6', {
      sizeBytes: SIZE_BYTES,
      rounds: MANY_ROUNDS,
      ackTimeout: PATIENT,
      retryCount: 7,
    });
    try {
      await ends.ours.waitForOutput(/^connected$/m, START_TIMEOUT_MS);
      ends.ours.kill('SIGUSR2');
      await ends.kernels.waitForOutput(/^done 1$/m, START_TIMEOUT_MS);
      await ends.kernels.stop('SIGKILL');
      const result = await ends.ours.finish(END_TIMEOUT_MS);
      assert.match(result.stdout, /^(DISCONNECTED|BROKEN)/m, transcript(result));
    } finally {
      ends.kill();
    }
  });
}

async function midTransfer(ours: RunningCommand): Promise<void> {
  await ours.waitForOutput(/^connected$/m, START_TIMEOUT_MS);
  ours.kill('SIGUSR2');
  await ours.waitForOutput(/^done 1$/m, START_TIMEOUT_MS);
  await paused(TRAFFIC_MS);
}
