// Connections that do not come about, and what each side is told.
import assert from 'node:assert/strict';

import { LISTENS_MS, settled } from '../machine-time.js';
import type { Lab } from '../lab.js';
import type { Case, InteropRow } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { cmSequence } from '../wire-check.js';
import { captured, startPeer, transcript } from './captured.js';

const CLOSED_PORT = 7999;
const START_TIMEOUT_MS = 10_000;
/** Reject reasons. IBTA 12.6.7.2. */
const INVALID_SERVICE_ID = 8;
const CONSUMER_REJECT = 28;
const WHY = 'not today';

export function refusalCases(lab: Lab, version: string): Case[] {
  const row = (role: string, what: string): InteropRow => ({
    counterpart: 'rping',
    version,
    role,
    transport: `rdma_cm, ${what}, IPv4`,
    mtuBytes: 1024,
  });
  return [
    {
      name: 'refusal: our client, a kernel port where nobody listens',
      row: row('client', 'REJ 8'),
      run: () => closedKernelPort(lab),
    },
    {
      name: 'refusal: the kernel client, a port of ours where nobody listens',
      row: row('server', 'REJ 8'),
      run: () => closedPortOfOurs(lab),
    },
    {
      name: 'refusal: our consumer rejects with private data',
      row: row('server', 'REJ 28 with private data'),
      run: () => consumerReject(lab),
    },
    {
      name: 'refusal: the consumer of the kernel rejects',
      row: row('client', 'REJ 28'),
      run: () => kernelConsumerReject(lab),
    },
  ];
}

async function closedKernelPort(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'closed-kernel-port', async () => {
    const peer = startPeer(lab, `connect ${guest.ipv4} ${CLOSED_PORT} 1`);
    const result = await peer.finish();
    assert.match(
      result.stdout,
      new RegExp(`^NON_PEER_REJECTED rejectReason=${INVALID_SERVICE_ID} `),
      transcript(result),
    );
  });
  assert.deepEqual(cmSequence(packets), [CM_ATTRIBUTE.REQ, CM_ATTRIBUTE.REJ]);
  assert.equal(packets.length, 2);
}

async function closedPortOfOurs(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'closed-port-of-ours', async () => {
    const peer = startPeer(lab, `idle ${lab.host.ipv4}`);
    try {
      await peer.waitForOutput(/^listening/, START_TIMEOUT_MS);
      const result = await guest.run(`rping -c -a ${lab.host.ipv4} -p ${CLOSED_PORT}`);
      assert.notEqual(result.code, 0);
      assert.match(
        result.stdout + result.stderr,
        new RegExp(`RDMA_CM_EVENT_REJECTED, error ${INVALID_SERVICE_ID}`),
      );
    } finally {
      await peer.stop('SIGKILL');
    }
  });
  assert.deepEqual(cmSequence(packets), [CM_ATTRIBUTE.REQ, CM_ATTRIBUTE.REJ]);
}

async function consumerReject(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'consumer-reject', async () => {
    const peer = startPeer(lab, `reject ${lab.host.ipv4} ${CLOSED_PORT} '${WHY}'`);
    try {
      await peer.waitForOutput(/^listening/, START_TIMEOUT_MS);
      const result = await guest.run(`rping -c -a ${lab.host.ipv4} -p ${CLOSED_PORT}`);
      assert.match(
        result.stdout + result.stderr,
        new RegExp(`RDMA_CM_EVENT_REJECTED, error ${CONSUMER_REJECT}`),
      );
      const rejecting = await peer.finish();
      assert.equal(rejecting.code, 0, transcript(rejecting));
    } finally {
      peer.kill();
    }
  });
  assert.deepEqual(cmSequence(packets), [CM_ATTRIBUTE.REQ, CM_ATTRIBUTE.REJ]);
  const [, reject] = packets;
  assert.equal(reject?.rejectReason, CONSUMER_REJECT);
  assert.ok(reject.rejectPrivateData.startsWith(Buffer.from(WHY).toString('hex')));
}

/** A ucmatose for one connection rejects the second, at once or at its end. */
async function kernelConsumerReject(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'kernel-consumer-reject', async () => {
    const server = guest.spawn('stdbuf -oL ucmatose -c 1 -C 0');
    try {
      await server.waitForOutput(/starting server/, START_TIMEOUT_MS);
      await settled(LISTENS_MS);
      const result = await startPeer(lab, `connect ${guest.ipv4} 7471 2`).finish();
      assert.match(
        result.stdout,
        new RegExp(`^PEER_REJECTED rejectReason=${CONSUMER_REJECT}`, 'm'),
        transcript(result),
      );
      assert.match(result.stdout, /^ESTABLISHED/m, transcript(result));
    } finally {
      await server.stop();
    }
  });
  assert.ok(packets.some(({ rejectReason }) => rejectReason === CONSUMER_REJECT));
}
