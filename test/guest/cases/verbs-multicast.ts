// Datagrams to a group over the verbs provider in a guest, and mckey of rdmacm-utils: each hears the
// other. Both are on the guest's rxe0; the kernel's network stack brings what is sent back to it.
import assert from 'node:assert/strict';
import { join } from 'node:path';

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

export function verbsMulticastCases(lab: Lab, version: string): Case[] {
  const guest = lab.guest(0);
  const one = (name: string, role: string, run: () => Promise<void>): Case => ({
    name: `verbs: multicast, ${name}`,
    row: {
      counterpart: 'mckey (librdmacm)',
      version,
      role: `our verbs provider, ${role}`,
      transport: 'UD, IPv4, to a group, on one rxe device',
      mtuBytes: 1024,
    },
    timeoutMs: TIMEOUT_MS,
    run,
  });
  return [
    one('mckey tells and we hear', 'receiver', () => weHear(guest)),
    one('we tell and mckey hears', 'sender', () => mckeyHears(guest)),
  ];
}

async function weHear(guest: Guest): Promise<void> {
  const program = guest.spawn(`${PROGRAM} hear ${guest.ipv4} ${GROUP} ${ENOUGH}`);
  await program.waitForOutput(/^joined$/m, TIMEOUT_MS);
  const told = await guest.run(mckey(guest, `-s -C ${MANY}`), { timeoutMs: TIMEOUT_MS });
  assert.equal(told.code, 0, transcript(told));
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  const line = new RegExp(`^heard ${BYTES} bytes from ${guest.ipv4.replaceAll('.', '\\.')},`, 'gm');
  assert.equal(heard.stdout.match(line)?.length, ENOUGH, transcript(heard));
  assert.equal(await members(guest), 0, 'the host has left the group');
}

async function mckeyHears(guest: Guest): Promise<void> {
  const program = guest.spawn(mckey(guest, `-C ${ENOUGH}`));
  const joined = `until grep -q ${GROUP_HEX} /proc/net/igmp; do sleep 0.1; done`;
  assert.equal((await guest.run(joined, { timeoutMs: TIMEOUT_MS })).code, 0);
  const tell = `${PROGRAM} tell ${guest.ipv4} ${GROUP} ${MANY}`;
  const told = await guest.run(tell, { timeoutMs: TIMEOUT_MS });
  assert.match(told.stdout, /^done$/m, transcript(told));
  const heard = await program.finish(TIMEOUT_MS);
  assert.equal(heard.code, 0, transcript(heard));
  assert.match(heard.stdout, /data transfers complete/, transcript(heard));
}

function mckey(guest: Guest, words: string): string {
  return `exec mckey -m ${GROUP} -b ${guest.ipv4} ${words}`;
}

async function members(guest: Guest): Promise<number> {
  const { stdout } = await guest.run(`grep -c ${GROUP_HEX} /proc/net/igmp`);
  return Number(stdout);
}
