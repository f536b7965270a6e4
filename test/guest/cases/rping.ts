import assert from 'node:assert/strict';

import type { Machine } from '../command.js';
import { PATH_MTUS } from '../lab.js';
import type { Lab, PathMtu } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { checkCapture, cmSequence } from '../wire-check.js';
import { assertCodecsAgree } from './codecs.js';
import { assertIcrcCheckNotices, assertTsharkNotices } from './checkers.js';

/** Three packets and more at either MTU, and no multiple of anything. */
const SIZE_BYTES = 10_001;
const COUNT = 5;
const RPING_TIMEOUT_MS = 30_000;
const FAMILIES = ['IPv4', 'IPv6'] as const;
type Family = (typeof FAMILIES)[number];

/** RC opcodes that an rping of more than two packets shows. */
const EXPECTED_OPCODES = {
  sendOnly: 0x04,
  writeFirst: 0x06,
  writeMiddle: 0x07,
  writeLast: 0x08,
  readRequest: 0x0c,
  readResponseFirst: 0x0d,
  readResponseMiddle: 0x0e,
  readResponseLast: 0x0f,
  acknowledge: 0x11,
} as const;

/** Kernel to kernel: the lab itself, and the checks that judge us, without our code. */
export function kernelToKernelCases(lab: Lab, version: string): Case[] {
  return PATH_MTUS.flatMap((mtuBytes) =>
    FAMILIES.map((family): Case => {
      const name = `rping kernel to kernel, ${family}, MTU ${mtuBytes}`;
      const row = {
        counterpart: 'rping',
        version,
        role: 'reader: both ends are kernels, our codecs agree',
        transport: `rdma_cm, RC, ${family}`,
        mtuBytes,
      };
      return { name, row, run: () => kernelToKernel(lab, mtuBytes, family) };
    }),
  );
}

async function kernelToKernel(lab: Lab, mtuBytes: PathMtu, family: Family): Promise<void> {
  const [server, client] = [lab.guest(0), lab.guest(1)];
  await lab.setPathMtu(mtuBytes);
  const capture = await lab.capture(`rping-${family}-${mtuBytes}`, server);
  try {
    await pingBetween(server, client, family);
  } finally {
    await capture.stop();
  }
  const packets = await checkCapture(capture.file);
  const { REQ, REP, RTU, DREQ, DREP } = CM_ATTRIBUTE;
  assert.deepEqual(cmSequence(packets), [REQ, REP, RTU, DREQ, DREP]);
  const opcodes = new Set(packets.map(({ opcode }) => opcode));
  for (const [name, opcode] of Object.entries(EXPECTED_OPCODES)) {
    assert.ok(opcodes.has(opcode), `no ${name} in the capture`);
  }
  assertCodecsAgree(capture.file);
  assertIcrcCheckNotices(capture.file);
  await assertTsharkNotices(capture.file);
}

async function pingBetween(server: Machine, client: Machine, family: Family): Promise<void> {
  const address = family === 'IPv4' ? server.ipv4 : server.ipv6;
  const common = `-a ${address} -C ${COUNT} -S ${SIZE_BYTES} -V -v`;
  const serving = server.spawn(`stdbuf -oL rping -s ${common} -d`);
  await serving.waitForOutput(/rdma_listen|listen/, 10_000);
  const pinged = await client.run(`rping -c ${common}`, { timeoutMs: RPING_TIMEOUT_MS });
  assert.equal(pinged.code, 0, `client: ${pinged.stdout}${pinged.stderr}`);
  assert.equal(pinged.stdout.match(/^ping data: rdma-ping-/gm)?.length, COUNT, pinged.stdout);
  const served = await serving.finish(RPING_TIMEOUT_MS);
  assert.equal(served.code, 0, `server: ${served.stderr}`);
  assert.equal(
    served.stdout.match(/^server ping data: rdma-ping-/gm)?.length,
    COUNT,
    served.stdout,
  );
}
