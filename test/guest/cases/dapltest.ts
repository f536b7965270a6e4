// uDAPL's dapltest against samples/dapltest, both roles each.
import assert from 'node:assert/strict';

import type { RunResult } from '../command.js';
import type { Lab, PathMtu } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { cmSequence } from '../wire-check.js';
import { captured, transcript } from './captured.js';
import { daplVersion, DEVICE, startSample, udapl } from './dapl.js';

const START_TIMEOUT_MS = 20_000;
const RUN_TIMEOUT_MS = 120_000;
const CASE_TIMEOUT_MS = 90_000;
const READY = /Dapltest: Service Point Ready/;

/** A client's letters and operations, and how the table names them. */
interface Load {
  readonly what: string;
  readonly words: string;
}

/** RC: SEND first, last and only; WRITE first and last; READ request, response first and last. */
const OPCODES = [0x00, 0x02, 0x04, 0x06, 0x08, 0x0c, 0x0d, 0x0f];

/** One server and, one after the other, the clients of these loads. */
interface Series {
  readonly name: string;
  readonly mtuBytes: PathMtu;
  readonly loads: readonly Load[];
  readonly full?: boolean;
  readonly timeoutMs?: number;
}

/** All kinds of transfers by both sides, from one byte to many packets. */
export const MIX =
  'client SR 256 server SR 1025 client RW 10001 server RW 70000 ' +
  'client RR 4097 server RR 2048 client SR 1 server SR 20000';

const SERIES: readonly Series[] = [
  {
    name: 'transactions',
    mtuBytes: 1024,
    loads: [
      {
        what: 'SR, RR and RW of both sides, 1 B to 70,000 B, validated',
        words: `-T T -i 8 -V ${MIX}`,
      },
      {
        what: '3 threads of 2 endpoints, 2 and 3 segments, -f',
        words:
          '-T T -i 8 -t 3 -w 2 -V client SR 512 2 server SR 1024 3 client RW 2048 2 ' +
          'server RW 256 2 client RR 768 3 server RR 1024 2 client SR 100 -f server SR 100 -f',
      },
    ],
  },
  {
    name: 'performance, service points for one',
    mtuBytes: 4096,
    loads: [
      { what: 'RW of 8 KiB, 16 at a time, waiting', words: '-T P -i 50 -p 16 -m b RW 8192' },
      { what: 'RR of 2 segments of 20,000 B, polling', words: '-T P -i 30 -m p RR 20000 2' },
      { what: 'RSPs, polling, the mix of transactions', words: `-T T -i 4 -r -P -V ${MIX}` },
    ],
  },
  {
    name: 'many transactions',
    timeoutMs: 300_000,
    mtuBytes: 4096,
    loads: [
      { what: 'the mix 500 times', words: `-T T -i 500 -V ${MIX}` },
      { what: '8 threads of 8 endpoints', words: `-T T -i 20 -t 8 -w 8 -V ${MIX}` },
    ],
    full: true,
  },
  {
    name: 'lengths',
    mtuBytes: 1024,
    timeoutMs: 300_000,
    loads: [1, 1023, 1024, 1025, 65_536, 1_048_579].map((bytes) => ({
      what: `${bytes} B`,
      words:
        `-T T -i 5 -V client SR ${bytes} server SR ${bytes} client RW ${bytes} ` +
        `server RW ${bytes} client RR ${bytes} server RR ${bytes}`,
    })),
    full: true,
  },
  {
    name: 'much performance',
    mtuBytes: 1024,
    timeoutMs: 300_000,
    loads: [
      ...['-m b RW 1', '-m p RW 65536', '-m b RR 1', '-m p RR 65536'].map((words) => ({
        what: words,
        words: `-T P -i 300 ${words}`,
      })),
      { what: 'RW of 4 segments, one at a time', words: '-T P -i 300 -p 1 RW 3000 4' },
    ],
    full: true,
  },
];

export function dapltestCases(lab: Lab, kernelVersion: string): Case[] {
  const version = daplVersion(kernelVersion);
  return (['server', 'client'] as const).flatMap((role) =>
    SERIES.flatMap((series) => {
      const { name, mtuBytes, full = false, timeoutMs = CASE_TIMEOUT_MS } = series;
      const what = series.loads.map((load) => load.what).join('; ');
      return {
        name: `dapltest, our ${role}, ${name}, MTU ${mtuBytes}`,
        row: {
          counterpart: 'dapltest',
          version,
          role,
          transport: `rdma_cm, RC, IPv4: ${what}`,
          mtuBytes,
        },
        full,
        timeoutMs,
        run: async () => {
          await lab.setPathMtu(mtuBytes);
          const file = `dapltest-${role}-${name.replaceAll(' ', '-')}-${mtuBytes}`;
          const packets = await captured(lab, lab.guest(0), file, () =>
            RUN[role](lab, series.loads),
          );
          const { REQ, REP, RTU, DREQ, DREP } = CM_ATTRIBUTE;
          assert.deepEqual(new Set(cmSequence(packets)), new Set([REQ, REP, RTU, DREQ, DREP]));
          const seen = new Set(packets.map(({ opcode }) => opcode));
          for (const opcode of OPCODES) assert.ok(seen.has(opcode), `no opcode ${opcode}`);
        },
      };
    }),
  );
}

const RUN = { server: ourServer, client: ourClient } as const;

async function ourServer(lab: Lab, loads: readonly Load[]): Promise<void> {
  const own = lab.host.ipv4;
  const guest = lab.guest(0);
  const prefix = await udapl(guest);
  const serving = startSample(lab, 'dapltest', `-T S -D ${own}`);
  const client = (words: string): Promise<RunResult> =>
    guest.run(`${prefix} dapltest ${clientWords(words, own, DEVICE)}`, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
  try {
    await serving.waitForOutput(READY, START_TIMEOUT_MS);
    for (const { words } of loads) {
      assertSucceeded(await client(words), serving.stdout + serving.stderr);
    }
    await client('-T Q');
    const served = await serving.finish();
    assert.deepEqual([served.code, served.stderr], [0, ''], transcript(served));
    assert.doesNotMatch(served.stdout, /failed|mismatch/, transcript(served));
    assert.equal(served.stdout.match(/Finished/g)?.length, loads.length, transcript(served));
  } finally {
    serving.kill();
  }
}

async function ourClient(lab: Lab, loads: readonly Load[]): Promise<void> {
  const guest = lab.guest(0);
  const prefix = await udapl(guest);
  const serving = guest.spawn(`${prefix} dapltest -T S -D ${DEVICE}`);
  const client = (words: string): Promise<RunResult> =>
    startSample(lab, 'dapltest', clientWords(words, guest.ipv4, lab.host.ipv4)).finish(
      RUN_TIMEOUT_MS,
    );
  try {
    await serving.waitForOutput(READY, START_TIMEOUT_MS);
    for (const { words } of loads) {
      const result = await client(words);
      assert.equal(result.code, 0, `${transcript(result)} ${serving.stdout}${serving.stderr}`);
      assertSucceeded(result, serving.stdout + serving.stderr);
    }
    const quit = await client('-T Q');
    assert.equal(quit.code, 0, transcript(quit));
    const served = await serving.finish();
    assert.equal(served.code, 0, transcript(served));
    assert.doesNotMatch(served.stdout, COMPLAINT, transcript(served));
    assert.match(served.stdout, /Finished/, transcript(served));
  } finally {
    serving.kill();
  }
}

function clientWords(words: string, server: string, device: string): string {
  const [flag = '', test = '', ...rest] = words.split(' ');
  return [flag, test, '-s', server, '-D', device, ...rest].join(' ');
}

/** What the C program says when it is not content; its exit code does not tell. */
export const COMPLAINT = /error|mismatch|fail|problem|cannot|Validation|Warning/i;

function assertSucceeded(result: RunResult, other: string): void {
  const told = `${transcript(result)}; the other side: ${other}`;
  assert.match(result.stdout, /Total WQE|Test completed successfully|Bandwidth/, told);
  assert.doesNotMatch(result.stdout.replace(/for validation/g, ''), COMPLAINT, told);
}
