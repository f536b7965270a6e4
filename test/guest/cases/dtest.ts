// uDAPL's dtest against samples/dtest, both roles each.
import assert from 'node:assert/strict';

import { LISTENS_MS, settled } from '../machine-time.js';
import type { RunningCommand, RunResult } from '../command.js';
import type { Lab, PathMtu } from '../lab.js';
import type { Case } from '../suite.js';
import { captured, transcript } from './captured.js';
import { daplVersion, DEVICE, startSample, udapl } from './dapl.js';

const START_TIMEOUT_MS = 20_000;
const RUN_TIMEOUT_MS = 60_000;
const WAITING = /waiting for client connection/;

type Role = 'server' | 'client';

interface Load {
  readonly what: string;
  /** Both sides get them. One run after the other. */
  readonly letters: readonly string[];
  readonly mtuBytes: PathMtu;
  readonly full?: boolean;
}

const LOADS: readonly Load[] = [
  {
    what: 'writes, reads and messages of 10,001 B',
    letters: ['-b 10001 -B 100'],
    mtuBytes: 1024,
  },
  {
    what: 'writes of 20,000 B, the last with an immediate; ping-pong of checked writes',
    letters: ['-w -b 20000 -B 50', '-D -b 5000 -B 30'],
    mtuBytes: 4096,
  },
  {
    what: 'writes of the client alone, reads and messages of 300,001 B, polling and with a CNO',
    letters: ['-u -p -b 300001 -B 40', '-u -c -b 300001 -B 40'],
    mtuBytes: 4096,
    full: true,
  },
  {
    what: 'writes of the client alone, the last with an immediate; ping-pong of writes of 1 B',
    letters: ['-w -u -b 1024 -B 500 -S 7', '-W -B 300'],
    mtuBytes: 1024,
    full: true,
  },
  {
    what: 'ping-pong of writes, all lengths up to 4097 B, data checked',
    letters: ['-D -B 20 -a -b 4097', '-D -B 20 -i 1000 -b 4000'],
    mtuBytes: 1024,
    full: true,
  },
];

export function dtestCases(lab: Lab, kernelVersion: string): Case[] {
  const version = daplVersion(kernelVersion);
  return (['server', 'client'] as const).flatMap((role) =>
    LOADS.map((load) => {
      const { what, mtuBytes, full = false } = load;
      const transport = `rdma_cm, RC, IPv4, ${what}`;
      return {
        name: `dtest, our ${role}, ${what}, MTU ${mtuBytes}`,
        row: { counterpart: 'dtest', version, role, transport, mtuBytes },
        full,
        run: () => exchange(lab, role, load),
      };
    }),
  );
}

async function exchange(lab: Lab, role: Role, { letters, mtuBytes }: Load): Promise<void> {
  await lab.setPathMtu(mtuBytes);
  const guest = lab.guest(0);
  const prefix = await udapl(guest);
  const ours = (words: string): RunningCommand => startSample(lab, 'dtest', words);
  const theirs = (words: string): RunningCommand => guest.spawn(`${prefix} dtest ${words}`);
  const file = `dtest-${role}${letters.join('').replaceAll(' ', '')}-${mtuBytes}`;
  await captured(lab, guest, file, async () => {
    for (const words of letters) {
      await (role === 'server'
        ? run(ours(`-I ${lab.host.ipv4} -P ${DEVICE} ${words}`), () =>
            theirs(`-h ${lab.host.ipv4} ${words}`),
          )
        : run(theirs(`-P ${DEVICE} ${words}`), () =>
            ours(`-h ${guest.ipv4} -I ${lab.host.ipv4} ${words}`),
          ));
    }
  });
}

async function run(server: RunningCommand, startClient: () => RunningCommand): Promise<void> {
  try {
    await server.waitForOutput(WAITING, START_TIMEOUT_MS);
    // It says so before it listens.
    await settled(LISTENS_MS);
    const ended = await startClient().finish(RUN_TIMEOUT_MS);
    assertPassed(ended, server.stdout + server.stderr);
    assertPassed(await server.finish(RUN_TIMEOUT_MS), transcript(ended));
  } finally {
    server.kill();
  }
}

/** The C program ends with 0 whatever has happened. */
function assertPassed(result: RunResult, other: string): void {
  const told = `${transcript(result)}; the other side: ${other}`;
  assert.equal(result.code, 0, told);
  assert.match(result.stdout, /DAPL Test Complete. PASSED/, told);
  assert.doesNotMatch(result.stdout + result.stderr, /ERR|Error|unexpected/, told);
}
