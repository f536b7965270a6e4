// Many connections, and messages from one byte to many packets, against librdmacm's ucmatose.
import assert from 'node:assert/strict';

import { LISTENS_MS, settled } from '../machine-time.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { cmSequence } from '../wire-check.js';
import { captured, startPeer, transcript } from './captured.js';

const START_TIMEOUT_MS = 10_000;
const RUN_TIMEOUT_MS = 60_000;

interface Load {
  readonly connections: number;
  readonly messages: number;
  readonly sizeBytes: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** One byte, one MTU, one byte more, many packets; many connections at once. */
const LOADS: readonly Load[] = [
  { connections: 1, messages: 10, sizeBytes: 1, family: 'ipv4' },
  { connections: 3, messages: 20, sizeBytes: 4096, family: 'ipv6' },
  { connections: 4, messages: 10, sizeBytes: 4097, family: 'ipv4' },
  { connections: 2, messages: 5, sizeBytes: 300_001, family: 'ipv4' },
  { connections: 50, messages: 5, sizeBytes: 100, family: 'ipv4' },
];

export function ucmatoseCases(lab: Lab, version: string): Case[] {
  return (['server', 'client'] as const).flatMap((role) =>
    LOADS.map((load) => {
      const { connections, messages, sizeBytes, family } = load;
      const what = `${connections} at once, ${messages} of ${sizeBytes} B`;
      const ip = family === 'ipv4' ? 'IPv4' : 'IPv6';
      return {
        name: `ucmatose, our ${role}, ${ip}, ${what}`,
        row: {
          counterpart: 'ucmatose',
          version,
          role,
          transport: `rdma_cm, RC, ${ip}, ${what}`,
          mtuBytes: 4096,
        },
        run: async () => {
          await lab.setPathMtu(4096);
          const name = `ucmatose-${role}-${connections}-${sizeBytes}`;
          const packets = await captured(lab, lab.guest(0), name, () =>
            role === 'server' ? ourServer(lab, load) : ourClient(lab, load),
          );
          const { REQ, REP, RTU, DREQ, DREP } = CM_ATTRIBUTE;
          assert.deepEqual(new Set(cmSequence(packets)), new Set([REQ, REP, RTU, DREQ, DREP]));
        },
      };
    }),
  );
}

async function ourServer(lab: Lab, load: Load): Promise<void> {
  const { connections, messages, sizeBytes, family } = load;
  const own = lab.host[family];
  const serving = startPeer(lab, `ucmatose-server ${own} ${connections} ${messages} ${sizeBytes}`);
  try {
    await serving.waitForOutput(/^listening/, START_TIMEOUT_MS);
    const client = await lab
      .guest(0)
      .run(`ucmatose -s ${own} -c ${connections} -C ${messages} -S ${sizeBytes}`, {
        timeoutMs: RUN_TIMEOUT_MS,
      });
    assert.equal(client.code, 0, transcript(client));
    const served = await serving.finish();
    assert.equal(served.stdout, `listening\nserved ${connections}\n`, transcript(served));
    assert.match(client.stdout, /data transfers complete/);
  } finally {
    serving.kill();
  }
}

async function ourClient(lab: Lab, load: Load): Promise<void> {
  const { connections, messages, sizeBytes, family } = load;
  const guest = lab.guest(0);
  const serving = guest.spawn(
    `stdbuf -oL ucmatose -b ${guest[family]} -c ${connections} -C ${messages} -S ${sizeBytes}`,
  );
  try {
    await serving.waitForOutput(/starting server/, START_TIMEOUT_MS);
    // It says so before it listens.
    await settled(LISTENS_MS);
    const args = `${guest[family]} ${connections} ${messages} ${sizeBytes}`;
    const client = await startPeer(lab, `ucmatose-client ${args}`).finish(RUN_TIMEOUT_MS);
    const told = `${transcript(client)}${serving.stdout}${serving.stderr}`;
    assert.equal(client.stdout, `connected ${connections}\n`, told);
    const served = await serving.finish();
    assert.equal(served.code, 0, transcript(served));
    assert.match(served.stdout, /data transfers complete/);
  } finally {
    serving.kill();
  }
}
