// Messages between two devices of a host: through shared memory, or in datagrams where either side
// says so. What tests and benchmarks take for UDP is UDP.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Ia, openIa } from 'dapl';
import { connect, listen } from 'dapl/flow';
import { softroce, type SoftroceOptions } from 'dapl/providers/softroce';
import { leaveOut } from '../../../support/left-out.js';
import { loopback } from '../../../support/loopback.js';

const [HERE, THERE] = [loopback(28, 1), loopback(28, 2)];
const ADDON = join(import.meta.dirname, '../../../../../build/native/softroce-port.node');
const MESSAGES = 100;

type Options = Omit<SoftroceOptions, 'addresses'>;

/** Packets of messages that have gone each way, of both devices. */
async function waysOf(
  here: Options,
  there: Options,
): Promise<{ channel: number; datagrams: number }> {
  const ias = [
    await openIa(softroce({ addresses: [HERE], ...here })),
    await openIa(softroce({ addresses: [THERE], ...there })),
  ] as const;
  try {
    const listener = await listen(ias[1], { port: 7000 });
    const conn = await connect(ias[0], { address: THERE, port: 7000 });
    const peer = await listener.accept();
    const before = counted(ias);
    for (let i = 0; i < MESSAGES; i++) {
      const received = peer.receive();
      await conn.send(new Uint8Array(5000).fill(i));
      const message = await received;
      assert.deepEqual([message.bytes.length, message.bytes[4999]], [5000, i]);
      message.release();
    }
    const after = counted(ias);
    return {
      channel: after.channel - before.channel,
      datagrams: after.all - after.channel - (before.all - before.channel),
    };
  } finally {
    await Promise.all(ias.map((ia) => ia.close('abrupt')));
  }
}

function counted(ias: readonly Ia[]): { channel: number; all: number } {
  const each = ias.map((ia) => ia.deviceCounters());
  const sum = (name: string): number =>
    each.reduce((total, counters) => total + (counters[name] ?? 0), 0);
  return { channel: sum('channelSent'), all: sum('sentPackets') };
}

describe('devices of one host', () => {
  before(function () {
    if (!existsSync(ADDON))
      leaveOut(this, 'the native port was not built', 'with a compiler: npm ci');
  });

  it('send every packet of a connection through shared memory', async () => {
    const { channel, datagrams } = await waysOf({}, {});
    assert.ok(channel >= 2 * MESSAGES, `${channel} through the channel`);
    assert.equal(datagrams, 0);
  });

  const udp: readonly (readonly [string, Options, Options])[] = [
    ['neither wants it', { shm: false }, { shm: false }],
    ['the one that asks does not want it', { shm: false }, {}],
    ['the one that is asked does not want it', {}, { shm: false }],
    ['one has an MTU of its own', { mtuBytes: 4096 }, {}],
    ['one is on node:dgram', { port: 'dgram' }, {}],
  ];
  for (const [when, here, there] of udp) {
    it(`send all of it in datagrams when ${when}`, async () => {
      const { channel, datagrams } = await waysOf(here, there);
      assert.equal(channel, 0);
      assert.ok(datagrams >= 2 * MESSAGES, `${datagrams} datagrams`);
    });
  }
});
