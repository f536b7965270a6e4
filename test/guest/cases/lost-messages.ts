// Each message of the CM lost once on its way: the next one of the retries does it.
import assert from 'node:assert/strict';

import { LISTENS_MS, settled } from '../machine-time.js';
import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE, type CmName } from '../tshark.js';
import { captured, startPeer, transcript } from './captured.js';
import { pingBetween, kernelPeer, samplePeer } from './rping.js';

const START_TIMEOUT_MS = 10_000;
const LOSS_TIMEOUT_MS = 60_000;
/** Under load, looking takes the guest a while. */
const WATCH_TIMEOUT_MS = 5000;

/**
 * Who sends what: the client of an rping asks, and disconnects. The kernel's rping does not wait
 * for DREP, and its end stops the retries of DREQ: lost for ever, so another case has that one.
 */
const FROM_CLIENT: readonly CmName[] = ['REQ', 'RTU', 'DREQ'];
const FROM_SERVER: readonly CmName[] = ['REP', 'DREP'];

export function lostMessageCases(lab: Lab, version: string): Case[] {
  const rpings = (['server', 'client'] as const).flatMap((role) =>
    [...FROM_CLIENT, ...FROM_SERVER].filter(isRepeatedBy(role)).map((message): Case => {
      const fromClient = FROM_CLIENT.includes(message);
      const byUs = fromClient === (role === 'client');
      const sender = byUs ? 'ours' : "the kernel's";
      return {
        name: `lost ${message}, ${sender}: rping, our ${role}`,
        row: rowOf(version, role, `${sender} first ${message} lost`),
        run: () => lostInRping(lab, role, message, byUs ? 'ingress' : 'egress'),
      };
    }),
  );
  return [
    ...rpings,
    {
      name: "lost RTU, the kernel's, and no data from its side: ucmatose, our server",
      row: { ...rowOf(version, 'server', 'first RTU lost, no data'), counterpart: 'ucmatose' },
      run: () => lostRtuWithoutData(lab),
    },
    {
      name: "lost DREQ, the kernel's: ucmatose, our client",
      row: { ...rowOf(version, 'client', 'first DREQ lost'), counterpart: 'ucmatose' },
      run: () => lostDreqOfKernel(lab),
    },
  ];
}

function isRepeatedBy(role: string): (message: CmName) => boolean {
  return (message) => role === 'client' || message !== 'DREQ';
}

function rowOf(version: string, role: string, what: string): NonNullable<Case['row']> {
  return {
    counterpart: 'rping',
    version,
    role,
    transport: `rdma_cm, RC, IPv4, ${what}`,
    mtuBytes: 4096,
  };
}

async function lostInRping(
  lab: Lab,
  role: 'server' | 'client',
  message: CmName,
  direction: Direction,
): Promise<void> {
  const [ours, kernel] = [samplePeer(lab), kernelPeer(lab, 0)];
  const ends =
    role === 'server' ? { server: ours, client: kernel } : { server: kernel, client: ours };
  await withLoss(lab, direction, message, `lost-${message}-${role}`, () =>
    pingBetween(ends.server, ends.client, 'IPv4'),
  );
}

/** Our server speaks first, and only the repeated RTU tells it that it may. */
async function lostRtuWithoutData(lab: Lab): Promise<void> {
  await withLoss(lab, 'egress', 'RTU', 'lost-RTU-no-data', async () => {
    const own = lab.host.ipv4;
    const serving = startPeer(lab, `ucmatose-server ${own} 1 3 1000`);
    try {
      await serving.waitForOutput(/^listening/, START_TIMEOUT_MS);
      const client = await lab.guest(0).run(`ucmatose -s ${own} -c 1 -C 3 -S 1000`, {
        timeoutMs: LOSS_TIMEOUT_MS,
      });
      assert.equal(client.code, 0, transcript(client));
      const served = await serving.finish();
      assert.equal(served.code, 0, transcript(served));
    } finally {
      serving.kill();
    }
  });
}

/** The server disconnects, and waits for our answer. */
async function lostDreqOfKernel(lab: Lab): Promise<void> {
  await withLoss(lab, 'egress', 'DREQ', 'lost-DREQ-ucmatose', async () => {
    const guest = lab.guest(0);
    const serving = guest.spawn(`stdbuf -oL ucmatose -b ${guest.ipv4} -c 1 -C 3 -S 1000`);
    try {
      await serving.waitForOutput(/starting server/, START_TIMEOUT_MS);
      await settled(LISTENS_MS);
      const peer = startPeer(lab, `ucmatose-client ${guest.ipv4} 1 3 1000`);
      const client = await peer.finish(LOSS_TIMEOUT_MS);
      assert.equal(client.code, 0, transcript(client));
      const served = await serving.finish();
      assert.equal(served.code, 0, transcript(served));
    } finally {
      serving.kill();
    }
  });
}

/** Runs `body` while the first message of a kind is lost at the link of a guest. */
export async function withLoss(
  lab: Lab,
  direction: Direction,
  message: CmName,
  name: string,
  body: () => Promise<void>,
): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  await captured(lab, guest, name, async () => {
    const watch = await loseFirst(guest, direction, message);
    try {
      await body();
      const lost = await watch.finish(WATCH_TIMEOUT_MS);
      assert.equal(lost.code, 0, `no ${message} was lost: ${transcript(lost)}`);
    } finally {
      watch.kill();
      await guest.run('tc qdisc del dev eth0 clsact 2>/dev/null');
    }
  });
}

type Direction = 'ingress' | 'egress';

/**
 * Drops messages of a kind at the guest's link until one has been dropped; the command ends then.
 * "trap" lets the sender believe that the packet has left; "drop" tells rxe, which then holds back
 * everything of that queue pair.
 * Offsets from the IPv4 header: 28 is the BTH, 64 the attribute of the MAD.
 */
async function loseFirst(
  guest: Guest,
  direction: Direction,
  message: CmName,
): Promise<RunningCommand> {
  const attribute = `0x${CM_ATTRIBUTE[message].toString(16)}`;
  const match = `match u8 0x64 0xff at 28 match u16 ${attribute} 0xffff at 64`;
  const filter = `tc filter add dev eth0 ${direction} protocol ip u32 ${match} action trap`;
  const begun = await guest.run(`tc qdisc add dev eth0 clsact && ${filter}`);
  assert.equal(begun.code, 0, begun.stderr);
  const dropped = `tc -s filter show dev eth0 ${direction} | grep -q ' [1-9][0-9]* pkt'`;
  return guest.spawn(`until ${dropped}; do sleep 0.1; done; tc qdisc del dev eth0 clsact`);
}
