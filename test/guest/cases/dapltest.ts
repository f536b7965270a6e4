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
const RUN_TIMEOUT_MS = 60_000;
const READY = /Dapltest: Service Point Ready/;

type Role = 'server' | 'client';

/** A client's letters and operations, and how the table names them. */
interface Load {
  readonly what: string;
  readonly words: string;
}

/** One server and, one after the other, the clients of these loads. */
interface Series {
  readonly name: string;
  readonly mtuBytes: PathMtu;
  readonly loads: readonly Load[];
  readonly full?: boolean;
}

const SERIES: readonly Series[] = [
  {
    name: 'transactions',
    mtuBytes: 1024,
    loads: [
      {
        what: 'SR, RR and RW of both sides, 1 B to 70,000 B, validated',
        words:
          '-T T -i 8 -V client SR 256 server SR 1025 client RW 10001 server RW 70000 ' +
          'client RR 4097 server RR 2048 client SR 1 server SR 20000',
      },
      {
        what: '3 threads of 2 endpoints, 2 and 3 segments, -f',
        words:
          '-T T -i 8 -t 3 -w 2 -V client SR 512 2 server SR 1024 3 client RW 2048 2 ' +
          'server RW 256 2 client RR 768 3 server RR 1024 2 client SR 100 -f server SR 100 -f',
      },
    ],
  },
];

export function dapltestCases(lab: Lab, kernelVersion: string): Case[] {
  const version = daplVersion(kernelVersion);
  return (['server', 'client'] as const).flatMap((role) =>
    SERIES.flatMap((series) => {
      const { name, mtuBytes, full = false } = series;
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
        run: async () => {
          await lab.setPathMtu(mtuBytes);
          const file = `dapltest-${role}-${name.replaceAll(' ', '-')}-${mtuBytes}`;
          const packets = await captured(lab, lab.guest(0), file, () =>
            RUN[role](lab, series.loads),
          );
          const { REQ, REP, RTU, DREQ, DREP } = CM_ATTRIBUTE;
          assert.deepEqual(new Set(cmSequence(packets)), new Set([REQ, REP, RTU, DREQ, DREP]));
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
const COMPLAINT = /error|mismatch|fail|problem|cannot|Validation|Warning/i;

function assertSucceeded(result: RunResult, other: string): void {
  const told = `${transcript(result)}; the other side: ${other}`;
  assert.match(result.stdout, /Total WQE|Test completed successfully|Bandwidth/, told);
  assert.doesNotMatch(result.stdout.replace(/for validation/g, ''), COMPLAINT, told);
}
