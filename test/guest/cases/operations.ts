// Atomics, immediates, memory windows and invalidation, each side doing all of it to the other.
import assert from 'node:assert/strict';

import type { Machine, RunResult } from '../command.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import type { Dissection } from '../tshark.js';
import { captured, startPeer, transcript } from './captured.js';
import { putPeer } from './memory.js';

const OPERATIONS_PORT = 7600;
const START_TIMEOUT_MS = 15_000;
const RUN_TIMEOUT_MS = 60_000;

/** What each side must have sent. IBTA 9.2, table 38. */
const EXPECTED_OPCODES = {
  'WRITE LAST with immediate': 0x09,
  'SEND ONLY with immediate': 0x05,
  'SEND ONLY with invalidate': 0x17,
  'COMPARE SWAP': 0x13,
  'FETCH ADD': 0x14,
  'ATOMIC ACKNOWLEDGE': 0x12,
};

export function operationsCases(lab: Lab, version: string): Case[] {
  return (['client', 'server'] as const).map((role) => ({
    name: `operations, our ${role}: atomics, immediates, windows, invalidation`,
    row: {
      counterpart: 'operations-peer (libibverbs)',
      version,
      role: `${role}, requester and responder`,
      transport: 'rdma_cm, RC, IPv4, atomics, immediates, memory windows, SEND with invalidate',
      mtuBytes: 1024,
    },
    run: async () => {
      await lab.setPathMtu(1024);
      const packets = await captured(lab, lab.guest(0), `operations-${role}`, () =>
        role === 'client' ? ourClient(lab) : ourServer(lab),
      );
      for (const machine of [lab.host, lab.guest(0)]) assertOpcodes(machine, packets);
    },
  }));
}

async function ourClient(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const program = putPeer(guest, 'operations-peer');
  const serving = guest.spawn(`${program} serve ${guest.ipv4} ${OPERATIONS_PORT}`);
  try {
    await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
    const peer = startPeer(lab, `operations-client ${guest.ipv4}`);
    const client = await peer.finish(RUN_TIMEOUT_MS);
    const told = `${transcript(client)}; the server: ${serving.stdout}${serving.stderr}`;
    assertBothRoles(client, told);
    assert.match(client.stdout, /^shut window: REMOTE_ACCESS\nBROKEN/m, told);
    assertBothRoles(await serving.finish(), told);
  } finally {
    serving.kill();
  }
}

async function ourServer(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const program = putPeer(guest, 'operations-peer');
  const serving = startPeer(lab, `operations-server ${lab.host.ipv4}`);
  try {
    await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
    const drive = `${program} drive ${lab.host.ipv4} ${OPERATIONS_PORT}`;
    const client = await guest.run(drive, { timeoutMs: RUN_TIMEOUT_MS });
    const told = `${transcript(client)}; the server: ${serving.stdout}${serving.stderr}`;
    assertBothRoles(client, told);
    assert.match(client.stdout, /^shut window: remote access error/m, told);
    assertBothRoles(await serving.finish(), told);
  } finally {
    serving.kill();
  }
}

function assertBothRoles(result: RunResult, told: string): void {
  assert.equal(result.code, 0, told);
  assert.match(result.stdout, /^requester ok\n(.*\n)*responder ok$/m, told);
}

function assertOpcodes({ name, ipv4 }: Machine, packets: readonly Dissection[]): void {
  const sent = new Set(packets.filter(({ source }) => source === ipv4).map((p) => p.opcode));
  for (const [opcodeName, opcode] of Object.entries(EXPECTED_OPCODES)) {
    assert.ok(sent.has(opcode), `${name} sent no ${opcodeName}`);
  }
}
