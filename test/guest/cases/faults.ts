// What is killed, cut off or hammered: the other side must notice in bounded time, and go on.
import assert from 'node:assert/strict';

import { paused } from '../../support/patience.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import type { Case, InteropRow } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { cmSequence } from '../wire-check.js';
import { captured, startPeer, transcript } from './captured.js';
import { MEMORY_PORT, putMemoryPeer } from './peer-programs.js';

const START_TIMEOUT_MS = 15_000;
const MEMORY_BYTES = 65_536;
/** Seven retries of 268 ms each, and room for a loaded machine. */
const BROKEN_TIMEOUT_MS = 60_000;
/** A boot comes on top. */
const POWER_OFF_TIMEOUT_MS = 240_000;
const SEQUENCE = 100;
const TRAFFIC_MS = 500;

export function faultCases(lab: Lab, version: string): Case[] {
  const row = (role: string, what: string, counterpart = 'rping'): InteropRow => ({
    counterpart,
    version,
    role,
    transport: `rdma_cm, RC, IPv4, ${what}`,
    mtuBytes: 1024,
  });
  return [
    {
      name: `rping, our client, ${SEQUENCE} connections in sequence`,
      row: row('client', `${SEQUENCE} connections in sequence`),
      run: () => inSequence(lab, 'in-sequence', SEQUENCE),
    },
    {
      name: 'rping, our client, identification seen by a raw socket (exact ICRC check)',
      row: row('client', 'ICRC checked exactly'),
      run: () => inSequence(lab, 'exact-icrc', 10, '--exact-icrc'),
    },
    {
      name: 'fault: the kernel server is killed in mid-transfer',
      row: row('client', 'server killed'),
      run: () => kernelServerKilled(lab),
    },
    {
      name: 'fault: our server is killed in mid-transfer, its successor serves',
      row: row('server', 'our process killed'),
      run: () => ourServerKilled(lab),
    },
    {
      name: 'fault: the guest is powered off in mid-transfer',
      timeoutMs: POWER_OFF_TIMEOUT_MS,
      row: row('requester', 'peer powered off', 'memory-peer (librdmacm)'),
      run: () => lab.withGuest({}, (guest) => poweredOff(lab, guest)),
    },
  ];
}

/** @param flags of our end */
async function inSequence(lab: Lab, name: string, count: number, flags = ''): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, name, async () => {
    const serving = guest.spawn(`stdbuf -oL rping -d -s -P -a ${guest.ipv4} -S 1000`);
    try {
      await serving.waitForOutput(/rdma_listen/, START_TIMEOUT_MS);
      const client = await startPeer(
        lab,
        `${flags} rping-in-sequence ${guest.ipv4} ${count}`,
      ).finish(60_000);
      assert.equal(client.stdout, `connected ${count}\n`, transcript(client));
    } finally {
      await serving.stop();
    }
  });
  const requests = packets.filter(({ cmAttribute }) => cmAttribute === CM_ATTRIBUTE.REQ);
  assert.ok(requests.length >= count, `${requests.length} REQs`);
}

/** The kernel disconnects for its dead process: we see an end, not a time-out. */
async function kernelServerKilled(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'kernel-server-killed', async () => {
    const serving = guest.spawn(`stdbuf -oL rping -d -s -a ${guest.ipv4} -S 1000`);
    try {
      await serving.waitForOutput(/rdma_listen/, START_TIMEOUT_MS);
      const client = startPeer(lab, `rping-until-end ${guest.ipv4} 1000`);
      await client.waitForOutput(/pinging/, START_TIMEOUT_MS);
      await paused(TRAFFIC_MS);
      await serving.stop('SIGKILL');
      const result = await client.finish(BROKEN_TIMEOUT_MS);
      const over = /^after \d+ ms: .* \[DAT_CONN_(ENDED|BROKEN)\]$/m;
      assert.match(result.stdout, over, transcript(result));
    } finally {
      serving.kill();
    }
  });
  assert.ok(cmSequence(packets).includes(CM_ATTRIBUTE.DREQ));
}

/**
 * Nobody disconnects for us. What the kernel's client still sends for the dead connection must not
 * disturb our next process on the same address.
 */
async function ourServerKilled(lab: Lab): Promise<void> {
  await lab.setPathMtu(1024);
  const guest = lab.guest(0);
  const own = lab.host.ipv4;
  await captured(lab, guest, 'our-server-killed', async () => {
    const first = startPeer(lab, `memory-server ${own} ${MEMORY_BYTES}`);
    const sizes = new Array<string>(1000).fill('20000').join(' ');
    const drive = `${putMemoryPeer(guest)} drive ${own} ${MEMORY_PORT}`;
    await first.waitForOutput(/listening/, START_TIMEOUT_MS);
    const orphan = guest.spawn(`${drive} ${sizes}`);
    try {
      await orphan.waitForOutput(/done/, START_TIMEOUT_MS);
      await first.stop('SIGKILL');
      const second = startPeer(lab, `memory-server ${own} ${MEMORY_BYTES}`);
      try {
        await second.waitForOutput(/listening/, START_TIMEOUT_MS);
        const client = await guest.run(`${drive} 20000`);
        assert.equal(client.stdout, 'done 20000\n', transcript(client));
        const served = await second.finish();
        assert.match(served.stdout, /^DISCONNECTED/m, transcript(served));
      } finally {
        second.kill();
      }
    } finally {
      first.kill();
      await orphan.stop('SIGKILL');
    }
  });
}

async function poweredOff(lab: Lab, guest: Guest): Promise<void> {
  await lab.setPathMtu(1024);
  await captured(lab, guest, 'powered-off', async () => {
    const serving = guest.spawn(
      `${putMemoryPeer(guest)} serve ${guest.ipv4} ${MEMORY_PORT} ${MEMORY_BYTES}`,
    );
    await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
    const client = startPeer(lab, `flood ${guest.ipv4}`);
    try {
      await client.waitForOutput(/flooding/, START_TIMEOUT_MS);
      await paused(TRAFFIC_MS);
      await guest.kill();
      const result = await client.finish(BROKEN_TIMEOUT_MS);
      assert.match(result.stdout, /write of 65536 bytes: TRANSPORT/, transcript(result));
      assert.match(result.stdout, /^BROKEN/m, transcript(result));
      for (const part of ['ep', 'qp', 'cm']) {
        assert.match(result.stdout, new RegExp(`^ {2}${part}: `, 'm'), 'flight record');
      }
    } finally {
      client.kill();
    }
  });
}
