// Datagrams to a group over the verbs provider in a guest, and mckey of rdmacm-utils: each hears
// the other, on the rxe0 of one guest, where the kernel's network stack brings back what is sent,
// and between two guests; and an IPv6 group, which mckey cannot join.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';
import { transcript } from './captured.js';

const MAIN = join(repositoryRoot, 'dist', 'test', 'guest', 'life', 'main.js');
const PROGRAM = `exec '${process.execPath}' --enable-source-maps '${MAIN}'`;
/** On a busy machine that emulates the guest, Node alone may take a minute to start. */
const TIMEOUT_MS = 240_000;
const GROUP = '239.1.2.3';
/** The group in /proc/net/igmp. */
const GROUP_HEX = '030201EF';
/** mckey's default. */
const BYTES = 100;
const ENOUGH = 3;
/** Who hears may be slow to post again, and datagrams are lost then. */
const MANY = 20;

const IPV6_GROUP = 'ff0e::dab1';

/** Where both sides are. */
interface Where {
  readonly hearer: Guest;
  readonly teller: Guest;
}

interface Meeting {
  readonly name: string;
  readonly counterpart: string;
  readonly role: string;
  readonly family: 'IPv4' | 'IPv6';
  /** The teller is in another guest. */
  readonly apart: boolean;
  readonly run: (where: Where) => Promise<void>;
}

const MCKEY = 'mckey (librdmacm)';
const DEVICES = { one: 'on one rxe device', two: 'between two rxe devices' } as const;

const MEETINGS: readonly Meeting[] = [
  ...[false, true].flatMap((apart): Meeting[] => {
    const common = { counterpart: MCKEY, family: 'IPv4', apart } as const;
    const name = (text: string): string => (apart ? `${text}, in another guest` : text);
    return [
      { ...common, name: name('mckey tells and we hear'), role: 'receiver', run: weHear },
      { ...common, name: name('we tell and mckey hears'), role: 'sender', run: mckeyHears },
    ];
  }),
  {
    name: 'an IPv6 group, told in another guest',
    counterpart: 'rdma_rxe (libibverbs, librdmacm)',
    role: 'both ends',
    family: 'IPv6',
    apart: true,
    run: weHearOverIpv6,
  },
];

export function verbsMulticastCases(lab: Lab, version: string): Case[] {
  return MEETINGS.map(({ name, counterpart, role, family, apart, run }) => ({
    name: `verbs: multicast, ${name}`,
    row: {
      counterpart,
      version,
      role: `our verbs provider, ${role}`,
      transport: `UD, ${family}, to a group, ${DEVICES[apart ? 'two' : 'one']}`,
      mtuBytes: 1024,
    },
    full: apart,
    guests: apart ? 2 : 1,
    timeoutMs: TIMEOUT_MS,
    run: () => {
      const here = lab.guest(0);
      const there = apart ? lab.guest(1) : here;
      return run(
        role === 'sender' ? { hearer: there, teller: here } : { hearer: here, teller: there },
      );
    },
  }));
}

async function weHear({ hearer, teller }: Where): Promise<void> {
  const program = hearer.spawn(`${PROGRAM} hear ${hearer.ipv4} ${GROUP} ${ENOUGH}`);
  await program.waitForOutput(/^joined$/m, TIMEOUT_MS);
  const told = await teller.run(mckey(teller, `-s -C ${MANY}`), { timeoutMs: TIMEOUT_MS });
  assert.equal(told.code, 0, transcript(told));
  await hasHeard(program, teller.ipv4);
  assert.equal(await members(hearer), 0, 'the host has left the group');
}

async function mckeyHears({ hearer, teller }: Where): Promise<void> {
  const program = hearer.spawn(mckey(hearer, `-C ${ENOUGH}`));
  const joined = `until grep -q ${GROUP_HEX} /proc/net/igmp; do sleep 0.1; done`;
  assert.equal((await hearer.run(joined, { timeoutMs: TIMEOUT_MS })).code, 0);
  await weTell(teller, teller.ipv4, GROUP);
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  assert.match(heard.stdout, /data transfers complete/, transcript(heard));
}

/** Both programs are ours: rdma_cm joins no IPv6 group by RoCEv2, so mckey has none. */
async function weHearOverIpv6({ hearer, teller }: Where): Promise<void> {
  const program = hearer.spawn(`${PROGRAM} hear ${hearer.ipv6} ${IPV6_GROUP} ${ENOUGH}`);
  await program.waitForOutput(/^joined$/m, TIMEOUT_MS);
  await weTell(teller, teller.ipv6, IPV6_GROUP);
  await hasHeard(program, teller.ipv6);
}

async function weTell(teller: Guest, address: string, group: string): Promise<void> {
  const tell = `${PROGRAM} tell ${address} ${group} ${MANY}`;
  const told = await teller.run(tell, { timeoutMs: TIMEOUT_MS });
  assert.match(told.stdout, /^done$/m, transcript(told));
}

async function hasHeard(program: RunningCommand, from: string): Promise<void> {
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  const line = new RegExp(`^heard ${BYTES} bytes from ${from.replaceAll('.', '\\.')},`, 'gm');
  assert.equal(heard.stdout.match(line)?.length, ENOUGH, transcript(heard));
}

function mckey(guest: Guest, words: string): string {
  return `exec mckey -m ${GROUP} -b ${guest.ipv4} ${words}`;
}

async function members(guest: Guest): Promise<number> {
  const { stdout } = await guest.run(`grep -c ${GROUP_HEX} /proc/net/igmp`);
  return Number(stdout);
}
