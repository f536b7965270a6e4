// Datagrams to a group between softroce on the host and rdma_rxe in a guest: the mckey of
// rdmacm-utils by IPv4, which a guest joins by IGMP, and our verbs provider by IPv6, whose groups
// rdma_cm does not join by RoCEv2. samples/mckey is the program on the host.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { RunningCommand } from '../command.js';
import type { Lab, PathMtu } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';
import { captured, transcript } from './captured.js';

/** On a busy machine that emulates the guest, Node alone may take a minute to start. */
const TIMEOUT_MS = 240_000;
const UD_SEND_ONLY_WITH_IMMEDIATE = 0x65;
const MULTICAST_QPN = 0xffffff;
const BYTES = 100;
const ENOUGH = 3;
/** A member may be slow to post again, or to join, and datagrams are lost then. */
const MANY = 20;
/** The group, and as /proc/net/igmp has it. */
const IGMP = { group: '239.1.2.7', hex: '070201EF' } as const;
const IPV6_GROUP = 'ff0e::dab7';

interface Meeting {
  readonly name: string;
  readonly counterpart: string;
  readonly role: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly run: (lab: Lab) => Promise<void>;
}

const MCKEY = { counterpart: 'mckey (librdmacm)', family: 'IPv4' } as const;
const VERBS = { counterpart: 'our verbs provider on rdma_rxe', family: 'IPv6' } as const;

const MEETINGS: readonly Meeting[] = [
  { ...MCKEY, name: 'mckey tells and softroce hears', role: 'receiver', run: mckeyTells },
  { ...MCKEY, name: 'softroce tells and mckey hears', role: 'sender', run: mckeyHears },
  { ...VERBS, name: 'rdma_rxe tells and softroce hears', role: 'receiver', run: verbsTells },
  { ...VERBS, name: 'softroce tells and rdma_rxe hears', role: 'sender', run: verbsHears },
];

/** rdma_rxe tells and hears by IPv4 in CI; the rest is the full run's. */
const RUNS: readonly { readonly family: Meeting['family']; readonly mtuBytes: PathMtu }[] = [
  { family: 'IPv4', mtuBytes: 4096 },
  { family: 'IPv4', mtuBytes: 1024 },
  { family: 'IPv6', mtuBytes: 4096 },
];

export function softroceMulticastCases(lab: Lab, version: string): Case[] {
  return RUNS.flatMap((chosen) => {
    const { family, mtuBytes } = chosen;
    const meetings = MEETINGS.filter((each) => each.family === family);
    return meetings.map(({ name, counterpart, role, run }) => ({
      name: `multicast, ${name}, ${family}, MTU ${mtuBytes}`,
      row: {
        counterpart,
        version,
        role: `softroce, ${role}`,
        transport: `UD, ${family}, to a group`,
        mtuBytes,
      },
      full: chosen !== RUNS[0],
      timeoutMs: TIMEOUT_MS,
      run: async () => {
        await lab.setPathMtu(mtuBytes);
        await run(lab);
      },
    }));
  });
}

async function mckeyTells(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  await softroceHears(lab, IGMP.group, guest.ipv4, async () => {
    const told = await guest.run(mckey(guest.ipv4, `-s -C ${MANY}`), { timeoutMs: TIMEOUT_MS });
    assert.equal(told.code, 0, transcript(told));
  });
}

async function mckeyHears(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const program = guest.spawn(mckey(guest.ipv4, `-C ${ENOUGH}`));
  const joined = `until grep -q ${IGMP.hex} /proc/net/igmp; do sleep 0.1; done`;
  assert.equal((await guest.run(joined, { timeoutMs: TIMEOUT_MS })).code, 0);
  await softroceTells(lab, IGMP.group, lab.host.ipv4, program);
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  assert.match(heard.stdout, /data transfers complete/, transcript(heard));
}

async function verbsTells(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  await softroceHears(lab, IPV6_GROUP, guest.ipv6, async () => {
    const told = await guest.run(life(`tell ${guest.ipv6} ${IPV6_GROUP} ${MANY}`), {
      timeoutMs: TIMEOUT_MS,
    });
    assert.match(told.stdout, /^done$/m, transcript(told));
  });
}

async function verbsHears(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const program = guest.spawn(life(`hear ${guest.ipv6} ${IPV6_GROUP} ${ENOUGH}`));
  await program.waitForOutput(/^joined$/m, TIMEOUT_MS);
  await softroceTells(lab, IPV6_GROUP, lab.host.ipv6, program);
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  const line = new RegExp(`^heard ${BYTES} bytes from ${lab.host.ipv6},`, 'gm');
  assert.equal(heard.stdout.match(line)?.length, ENOUGH, transcript(heard));
}

/** Softroce on the host hears; every datagram of the teller's is looked at on the wire. */
async function softroceHears(
  lab: Lab,
  group: string,
  from: string,
  tell: () => Promise<void>,
): Promise<void> {
  const { host } = lab;
  const own = group === IPV6_GROUP ? host.ipv6 : host.ipv4;
  const hearer = startSample(lab, `-m ${group} -b ${own} -C ${ENOUGH}`);
  try {
    await hearer.waitForOutput(/^joined/m, TIMEOUT_MS);
    const name = `multicast-${group === IPV6_GROUP ? 'ipv6' : 'ipv4'}`;
    const packets = await captured(lab, lab.guest(0), name, tell);
    const heard = await hearer.finish(TIMEOUT_MS);
    assert.equal(heard.code, 0, transcript(heard));
    assert.match(heard.stdout, new RegExp(`^${ENOUGH} datagrams came, of ${from}$`, 'm'));
    const told = packets.filter(({ opcode }) => opcode === UD_SEND_ONLY_WITH_IMMEDIATE);
    assert.equal(told.length, MANY);
    for (const { source, destination, destinationQpn } of told) {
      assert.deepEqual([source, destination, destinationQpn], [from, group, MULTICAST_QPN]);
    }
  } finally {
    hearer.kill();
  }
}

/** Again and again until it was heard: a member is attached after its host has joined. */
async function softroceTells(
  lab: Lab,
  group: string,
  own: string,
  member: RunningCommand,
): Promise<void> {
  let isHeard = false;
  void member.exited.then(() => (isHeard = true));
  do {
    const told = await startSample(lab, `-s -o -m ${group} -b ${own} -C ${MANY}`).finish(
      TIMEOUT_MS,
    );
    assert.equal(told.code, 0, transcript(told));
    assert.equal(told.stdout, `${MANY} datagrams left for ${group}\n`);
  } while (!isHeard);
}

function startSample(lab: Lab, letters: string): RunningCommand {
  const main = join(repositoryRoot, 'dist', 'samples', 'mckey', 'main.js');
  return lab.host.spawn(`exec '${process.execPath}' --enable-source-maps '${main}' ${letters}`);
}

function mckey(address: string, words: string): string {
  return `exec mckey -m ${IGMP.group} -b ${address} ${words}`;
}

function life(words: string): string {
  const main = join(repositoryRoot, 'dist', 'test', 'guest', 'life', 'main.js');
  return `exec '${process.execPath}' --enable-source-maps '${main}' ${words}`;
}
