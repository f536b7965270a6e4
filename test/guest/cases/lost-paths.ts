/**
 * A path that is lost beneath an idle connection between our verbs provider in a guest and softroce
 * on the host: the peer's address resolves to a wrong MAC address, or the link goes down and up.
 *
 * Linux (6.0 and later) raises UNREACHABLE when a neighbour changes, for connections that were made
 * from there alone: those that were accepted are not in the table that it looks into
 * (drivers/infiniband/core/cma.c). They, and softroce, notice by a keep-alive. A link that goes
 * down and up raises nothing.
 */
import assert from 'node:assert/strict';

import { paused, patience } from '../../support/patience.js';
import type { Machine, RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { readPcapRecords } from '../pcap.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE, dissect, type Dissection } from '../tshark.js';
import { capturedFile, transcript } from './captured.js';
import { node } from './verbs-programs.js';

const PEER = node('test', 'guest', 'peer', 'main.js');
const START_TIMEOUT_MS = 180_000;
const END_TIMEOUT_MS = 60_000;
const CASE_TIMEOUT_MS = 400_000;
const KEEP_ALIVE_MS = 500;
/** Half of what DREQ took when it waited for the identifier to be destroyed. */
const AT_ONCE_MS = 2500;
const OUTAGE_MS = 2000;
const WRONG_MAC = '02:00:00:00:00:99';

type Side = 'verbs' | 'softroce';

interface Loss {
  /** Which of ours loses its path, and what it does when the connection is made. */
  readonly side: Side;
  readonly role: 'connect' | 'accept';
  readonly keepAliveMs: number;
  readonly reason: RegExp;
  readonly what: string;
}

const UNREACHABLE = /^BROKEN the system reports that the .* \(rdma_cm: UNREACHABLE, ETIMEDOUT\)$/m;
const UNANSWERED = /^BROKEN the peer has not answered a keep-alive/m;

const LOSSES: readonly Loss[] = [
  {
    ...{ side: 'verbs', role: 'connect', keepAliveMs: 0, reason: UNREACHABLE },
    what: 'the peer has another MAC address, the kernel tells',
  },
  {
    ...{ side: 'verbs', role: 'accept', keepAliveMs: KEEP_ALIVE_MS, reason: UNANSWERED },
    what: 'the peer has another MAC address, a keep-alive tells',
  },
  {
    ...{ side: 'softroce', role: 'connect', keepAliveMs: KEEP_ALIVE_MS, reason: UNANSWERED },
    what: 'the peer has another MAC address, a keep-alive tells',
  },
];

export function lostPathCases(lab: Lab, version: string): Case[] {
  const one = (
    [side, role, what]: readonly [Side, Loss['role'], string],
    full: boolean,
    run: () => Promise<void>,
  ): Case => ({
    name: `verbs: ${side} ${role}s, then ${what}`,
    row: {
      counterpart: 'softroce on the host',
      version,
      role: (role === 'connect') === (side === 'verbs') ? 'client' : 'server',
      transport: `rdma_cm, RC, IPv4, our verbs provider on rxe: ${side} lost its path, ${what}`,
      mtuBytes: 4096,
    },
    full,
    timeoutMs: CASE_TIMEOUT_MS,
    run,
  });
  const losses = LOSSES.map((loss, index) =>
    one([loss.side, loss.role, loss.what], index > 0, () => neighbourChanges(lab, loss)),
  );
  const outages = (['connect', 'accept'] as const).map((role) =>
    one(['verbs', role, 'the link goes down and up'], true, () => linkDownAndUp(lab, role)),
  );
  return [...losses, ...outages];
}

interface Ends {
  /** The one whose path is lost. */
  readonly near: RunningCommand;
  readonly far: RunningCommand;
}

/** Both ends of an established connection; they have left when `body` is done. */
async function connected(
  lab: Lab,
  { side, role, keepAliveMs }: Pick<Loss, 'side' | 'role' | 'keepAliveMs'>,
  body: (ends: Ends) => Promise<void>,
): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const start = (own: Side, verb: string, address: string, ms: number): RunningCommand => {
    const [machine, flag] = own === 'verbs' ? [guest, '--verbs '] : [lab.host, ''];
    return machine.spawn(`${PEER} ${flag}${verb} ${address} ${ms}`);
  };
  const other = side === 'verbs' ? 'softroce' : 'verbs';
  const [listens, asks]: readonly [Side, Side] = role === 'accept' ? [side, other] : [other, side];
  const { ipv4 } = listens === 'verbs' ? guest : lab.host;
  const keepAliveOf = (own: Side): number => (own === side ? keepAliveMs : 0);
  const server = start(listens, 'watch-accept', ipv4, keepAliveOf(listens));
  let client: RunningCommand | undefined;
  try {
    await server.waitForOutput(/^listening$/m, START_TIMEOUT_MS);
    client = start(asks, 'watch-connect', ipv4, keepAliveOf(asks));
    await client.waitForOutput(/^ESTABLISHED/m, START_TIMEOUT_MS);
    await server.waitForOutput(/^ESTABLISHED/m, START_TIMEOUT_MS);
    const [near, far] = role === 'accept' ? [server, client] : [client, server];
    await body({ near, far });
  } finally {
    server.kill();
    client?.kill();
  }
}

/** Both have left; each has told one end, and nothing behind it. */
async function endsOf(ends: Ends): Promise<{ near: string; far: string }> {
  const told = async (end: RunningCommand): Promise<string> => {
    end.kill('SIGUSR2');
    const result = await end.finish(END_TIMEOUT_MS);
    assert.equal(result.code, 0, transcript(result));
    const events = result.stdout.match(/^[A-Z_]{6,}/gm);
    assert.equal(events?.length, 2, `ESTABLISHED and one end: ${transcript(result)}`);
    return result.stdout;
  };
  const near = await told(ends.near);
  return { near, far: await told(ends.far) };
}

/** The DREQ leaves into the void, at once; a repetition of it arrives when the path is mended. */
async function neighbourChanges(lab: Lab, loss: Loss): Promise<void> {
  const guest = lab.guest(0);
  const isGuest = loss.side === 'verbs';
  const [machine, peer]: [Machine, string] = isGuest
    ? [guest, lab.host.ipv4]
    : [lab.host, guest.ipv4];
  const device = isGuest ? 'eth0' : lab.bridge;
  let toldMs = 0;
  const file = await capturedFile(lab, guest, `neighbour-${loss.side}-${loss.role}`, () =>
    connected(lab, loss, async (ends) => {
      try {
        const change = `ip neigh replace ${peer} lladdr ${WRONG_MAC} dev ${device}`;
        assert.equal((await machine.run(change)).code, 0, change);
        await ends.near.waitForOutput(loss.reason, END_TIMEOUT_MS);
        toldMs = Date.now();
        await paused(AT_ONCE_MS);
        assert.doesNotMatch(ends.far.stdout, /^(BROKEN|DISCONNECTED)/m, 'nothing has arrived');
      } finally {
        await machine.run(`ip neigh del ${peer} dev ${device}`);
      }
      await ends.far.waitForOutput(/^DISCONNECTED/m, END_TIMEOUT_MS);
      const { near } = await endsOf(ends);
      assert.match(near, loss.reason);
    }),
  );
  const first = (await dissect(file)).find(isDreqFrom(machine));
  assert.ok(first !== undefined, 'a DREQ has left');
  const leftMs = (readPcapRecords(file)[first.frame - 1]?.timeUs ?? 0) / 1000;
  const lateMs = leftMs - toldMs;
  assert.ok(lateMs < patience(AT_ONCE_MS), `DREQ left ${lateMs.toFixed(0)} ms after the event`);
}

function isDreqFrom({ ipv4 }: Machine): (packet: Dissection) => boolean {
  return ({ source, cmAttribute }) => source === ipv4 && cmAttribute === CM_ATTRIBUTE.DREQ;
}

/** Nothing was asked meanwhile, so nothing was lost: both go on, and leave in order. */
async function linkDownAndUp(lab: Lab, role: Loss['role']): Promise<void> {
  const guest: Guest = lab.guest(0);
  await connected(lab, { side: 'verbs', role, keepAliveMs: 0 }, async (ends) => {
    try {
      await guest.linkDown();
      await paused(OUTAGE_MS);
    } finally {
      await guest.linkUp();
    }
    const { near, far } = await endsOf(ends);
    assert.match(near, /^DISCONNECTED/m);
    assert.match(far, /^DISCONNECTED/m);
  });
}
