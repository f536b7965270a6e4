// Our initiator on the host, Linux's iSER target (LIO, ib_isert) in a guest.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { impair, type Impairment, repair } from '../impair.js';
import type { Lab } from '../lab.js';
import { LIO_NAME, startLio, stopLio } from '../lio.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';

const COMMAND_TIMEOUT_MS = 120_000;

export function iserInitiatorCases(lab: Lab, version: string): Case[] {
  const row = (role: string, loss = ''): NonNullable<Case['row']> => ({
    counterpart: 'LIO, ib_isert',
    version: version.replace(/^.*, /, ''),
    role,
    transport: `iSER over rdma_cm, RC, IPv4${loss}`,
    mtuBytes: 4096,
  });
  return [
    {
      name: "iser: our initiator with Linux's target: discovery, reads, writes, unmap, reset",
      row: row('initiator: discovery, writes and reads, unmap, task management, logout'),
      timeoutMs: 2 * COMMAND_TIMEOUT_MS,
      run: () => atWork(lab, {}, 64),
    },
    {
      name: "iser: our initiator with Linux's target, packets get lost",
      row: row('initiator: writes and reads, with loss', ', loss 1%'),
      full: true,
      timeoutMs: 2 * COMMAND_TIMEOUT_MS,
      run: () => atWork(lab, { outgoing: 'loss 1%', incoming: 'loss 1%' }, 48),
    },
  ];
}

async function atWork(lab: Lab, impairment: Impairment, count: number): Promise<void> {
  const guest = lab.guest(0);
  await startLio(guest);
  try {
    await impair(guest, impairment);
    const program = join(repositoryRoot, 'dist/test/guest/peer/iser-disk.js');
    const command = `exec ${process.execPath} ${program} ${guest.ipv4} ${LIO_NAME} ${count}`;
    const { code, stdout, stderr } = await lab.host.run(command, {
      timeoutMs: COMMAND_TIMEOUT_MS,
    });
    const log = code === 0 ? '' : (await guest.run('dmesg | tail -20')).stdout;
    assert.equal(code, 0, `${stdout}${stderr}${log}`);
    assert.match(stdout, /^unmapped$/m);
    assert.match(stdout, /^logged out$/m);
  } finally {
    await repair(guest);
    await stopLio(guest);
  }
}
