/** A reliable connection recovers from lost, repeated, corrupted and delayed packets. */
import assert from 'node:assert/strict';
import { type EpAttributeOptions, MemPrivileges } from 'dapl';
import { over } from 'dapl/spi/decorators';
import { type Claim, group } from '../behaviour.js';
import type { ActivePacketFault, CompliancePair, PacketFault } from '../fixture.js';
import {
  assertSameBytes,
  ask,
  connected,
  expectQuiet,
  fillPattern,
  meet,
  mtuBytes,
  type Peers,
  settle,
} from '../peer.js';

const { ALL, REMOTE_ATOMIC } = MemPrivileges;
const NEEDS = ['scripted-faults'] as const;

/** BTH opcodes (IBTA table 38). */
const SEND_ONLY = 0x04;
const WRITE_FIRST = 0x06;
const WRITE_MIDDLE = 0x07;
const WRITE_ONLY = 0x0a;
const READ_REQUEST = 0x0c;
const READ_RESPONSE_FIRST = 0x0d;
const READ_RESPONSE_ONLY = 0x10;
const ACKNOWLEDGE = 0x11;
const ATOMIC_ACKNOWLEDGE = 0x12;
const FETCH_ADD = 0x14;
const UD_SEND_ONLY = 0x64;

type Match = PacketFault['match'];

const opcode =
  (...codes: readonly number[]): Match =>
  (packet) =>
    codes.includes(packet[0] ?? -1);
const isRead: Match = (packet) => {
  const code = packet[0] ?? 0;
  return code >= READ_RESPONSE_FIRST && code <= READ_RESPONSE_ONLY;
};
/** Matches an AETH by its syndrome without the masked bits. */
const syndrome =
  (wanted: number, mask = 0xff): Match =>
  (packet) =>
    packet[0] === ACKNOWLEDGE && ((packet[12] ?? 0) & mask) === wanted;
const sequenceNak = syndrome(0x60);
const rnrNak = syndrome(0x20, 0xe0);
const accessNak = syndrome(0x62);
/** Matches a CM message by its attribute. */
const cmMessage =
  (attributeId: number): Match =>
  (packet) =>
    packet[0] === UD_SEND_ONLY && packet[21] === 7 && packet[37] === attributeId;

/** 1 ms to 4 ms a try, for behaviours that run out of retries. */
const BRISK: EpAttributeOptions = { transport: { ackTimeout: 8, retryCount: 3 } };
/** 34 ms to 134 ms a try: seven tries outlast the pauses of a slow or busy machine. */
const STEADY: EpAttributeOptions = { transport: { ackTimeout: 13, retryCount: 7 } };
/** Longer than any behaviour waits: recovery by this timeout would come too late. */
const PATIENT: EpAttributeOptions = { transport: { ackTimeout: 22, retryCount: 3 } };

interface Faulty extends Peers {
  fault(fault: PacketFault): ActivePacketFault;
  /** Counts matching packets of a side. */
  watch(from: PacketFault['from'], match: Match): { count: number };
}

async function scene(pair: CompliancePair, attributes: EpAttributeOptions): Promise<Faulty> {
  const peers = await connected(pair, { attributes, privileges: ALL | REMOTE_ATOMIC });
  fillPattern(peers.active.lmr.bytes, 3);
  return { ...peers, ...tools(pair) };
}

function tools(pair: CompliancePair): Pick<Faulty, 'fault' | 'watch'> {
  const fault = (rule: PacketFault): ActivePacketFault => {
    const active = pair.addFault?.(rule);
    assert.ok(active, 'a fixture with scripted-faults has addFault');
    return active;
  };
  const watch: Faulty['watch'] = (from, match) => {
    const seen = { count: 0 };
    const look: Match = (packet) => {
      if (match(packet)) seen.count++;
      return false;
    };
    const rule: PacketFault = { from, match: look, action: 'drop' };
    WATCHES.add(rule);
    fault(rule);
    return seen;
  };
  return { fault, watch };
}

/** Writes that many packets and checks the bytes afterwards. */
async function writeAndLook(here: Faulty, packets: number, cookie = 1): Promise<void> {
  const { active, passive } = here;
  const bytes = packets * mtuBytes(active.ia) - 3;
  passive.lmr.bytes.fill(0);
  active.ep.postRdmaWrite(active.lmr.segment(0, bytes), cookie, passive.remote());
  await active.expect(`dto ${cookie} SUCCESS`);
  assertSameBytes(passive.lmr.bytes.subarray(0, bytes), active.lmr.bytes.subarray(0, bytes));
  assert.equal(passive.lmr.bytes[bytes], 0);
}

export const losing = group('Losing packets', (plain) => {
  const claim: Claim = (name, run, needs = []) =>
    plain(name, (pair) => namingUnhit(pair, run), [...NEEDS, ...needs]);
  acknowledgements(claim);
  requests(claim);
  responses(claim);
  repeats(claim);
  messages(claim);
});

/**
 * Adds to a failure that a fault never matched. Then the packets differ from what the behaviour
 * expects, for example because they are longer than the MTU that the adapter reports.
 */
async function namingUnhit(
  pair: CompliancePair,
  run: (pair: CompliancePair) => void | Promise<void>,
): Promise<void> {
  const faults: { readonly rule: PacketFault; readonly active: ActivePacketFault }[] = [];
  const addFault = (rule: PacketFault): ActivePacketFault => {
    const active = pair.addFault!(rule);
    if (!WATCHES.has(rule)) faults.push({ rule, active });
    return active;
  };
  try {
    await run(pair.addFault === undefined ? pair : over(pair, { addFault }));
  } catch (error) {
    const unhit = faults.filter(({ active }) => active.hits === 0);
    if (unhit.length === 0 || !(error instanceof Error)) throw error;
    const which = unhit.map(({ rule: { from, action } }) => `${nameOfAction(action)} of ${from}`);
    const hint = 'the MTU of the connection has to be the one that ia.query() tells';
    error.message += `; a fault was never hit (${which.join(', ')}): ${hint}`;
    throw error;
  }
}

/** Rules that only count. */
const WATCHES = new WeakSet<PacketFault>();

function nameOfAction(action: PacketFault['action']): string {
  if (typeof action === 'string') return action;
  return 'delayUs' in action ? 'delay' : 'repeat';
}

function acknowledgements(claim: Claim): void {
  claim('local ACK timeout, retry limit not exceeded: a lost ACK, one receive', async (pair) => {
    const here = await scene(pair, STEADY);
    const { active, passive } = here;
    const lost = here.fault({ from: 'passive', match: opcode(ACKNOWLEDGE), action: 'drop' });
    for (const cookie of [11, 12]) passive.ep.postRecv(passive.lmr.segment(0, 64), cookie);
    active.ep.postSend(active.lmr.segment(0, 64), 1);
    await active.expect('dto 1 SUCCESS');
    await passive.expect('dto 11 SUCCESS');
    await expectQuiet(here);
    assert.equal(lost.hits, 1);
  });

  claim('local ACK timeout, retry limit exceeded: TRANSPORT, FLUSHED, BROKEN', async (pair) => {
    const here = await scene(pair, BRISK);
    const { active, passive } = here;
    const sent = here.watch('active', opcode(WRITE_ONLY));
    here.fault({
      from: 'passive',
      match: opcode(ACKNOWLEDGE),
      action: 'drop',
      count: Infinity,
    });
    active.ep.postRdmaWrite(active.lmr.segment(0, 64), 1, passive.remote());
    active.ep.postRecv(active.lmr.segment(64, 64), 2);
    await active.expect('dto 1 TRANSPORT', 'dto 2 FLUSHED', 'BROKEN');
    assert.ok(sent.count >= 4, 'once, and retryCount times more; earlier repetitions are no retry');
  });

  claim('ghost ACK: one that comes again, late, completes nothing', async (pair) => {
    const here = await scene(pair, STEADY);
    const { active, passive } = here;
    const again = here.fault({
      from: 'passive',
      match: opcode(ACKNOWLEDGE),
      action: { repeatAfterUs: [20, 100, 200, 400, 600] },
      count: Infinity,
    });
    for (let cookie = 1; cookie <= 10; cookie++) {
      active.ep.postRdmaWrite(active.lmr.segment(0, 64), cookie, passive.remote());
      await active.expect(`dto ${cookie} SUCCESS`);
    }
    assert.ok(again.hits >= 10);
    again.remove();
    here.fault({ from: 'active', match: opcode(WRITE_ONLY), action: 'drop', count: Infinity });
    active.ep.postRdmaWrite(active.lmr.segment(0, 64), 11, passive.remote());
    await active.expect('dto 11 TRANSPORT', 'BROKEN');
  });

  claim('RNR NAK that is lost: the send is repeated, and waits for its receive', async (pair) => {
    const transport = { ...STEADY.transport, minRnrTimer: 14, rnrRetryCount: 7 };
    const here = await scene(pair, { transport });
    const { active, passive } = here;
    const lost = here.fault({ from: 'passive', match: rnrNak, action: 'drop' });
    active.ep.postSend(active.lmr.segment(0, 64), 1);
    while (lost.hits === 0) await settle(pair);
    passive.ep.postRecv(passive.lmr.segment(0, 64), 11);
    await active.expect('dto 1 SUCCESS');
    await passive.expect('dto 11 SUCCESS');
  });

  claim('a refusal that is lost: the disconnect of the peer ends all', async (pair) => {
    const here = await scene(pair, PATIENT);
    const { active } = here;
    here.fault({ from: 'passive', match: accessNak, action: 'drop', count: Infinity });
    const wrong = { address: 0n, rmrContext: 1 };
    active.ep.postRdmaWrite(active.lmr.segment(0, 64), 1, wrong);
    await active.expect('dto 1 FLUSHED', 'DISCONNECTED');
    await here.passive.expect('BROKEN');
  });
}

function requests(claim: Claim): void {
  claim('PSN sequence error, retry limit not exceeded: one NAK, then the rest', async (pair) => {
    const here = await scene(pair, PATIENT);
    const naks = here.watch('passive', sequenceNak);
    const lost = here.fault({ from: 'active', match: opcode(WRITE_MIDDLE), action: 'drop' });
    await writeAndLook(here, 8);
    assert.equal(lost.hits, 1);
    const isFew = naks.count >= 1 && naks.count < 6;
    assert.ok(isFew, `${naks.count} NAKs: one is for the gap, none for each packet behind it`);
  });

  claim('PSN sequence error, retry limit exceeded: TRANSPORT, one BROKEN', async (pair) => {
    const here = await scene(pair, BRISK);
    const { active, passive } = here;
    const middle = opcode(WRITE_MIDDLE);
    here.fault({ from: 'active', match: middle, action: 'drop', count: Infinity });
    const bytes = 3 * mtuBytes(active.ia);
    active.ep.postRdmaWrite(active.lmr.segment(0, bytes), 1, passive.remote());
    await active.expect('dto 1 TRANSPORT', 'BROKEN');
    assert.equal(passive.lmr.bytes[bytes - 1], 0, 'nothing behind the gap is written');
  });

  claim('RDMA write partial retry: whichever packet is lost, all bytes arrive', async (pair) => {
    const here = await scene(pair, STEADY);
    for (let nth = 1; nth <= 6; nth++) {
      const match: Match = (packet) => (packet[0] ?? 0xff) <= WRITE_ONLY;
      const lost = here.fault({ from: 'active', match, action: 'drop', nth });
      await writeAndLook(here, 6, nth);
      assert.equal(lost.hits, 1);
      lost.remove();
    }
  });

  claim('a spoilt packet is as good as lost: never delivered, sent again', async (pair) => {
    const here = await scene(pair, STEADY);
    const { active, passive } = here;
    const spoilt = here.fault({ from: 'active', match: opcode(SEND_ONLY), action: 'spoil' });
    for (const cookie of [11, 12]) passive.ep.postRecv(passive.lmr.segment(0, 64), cookie);
    active.ep.postSend(active.lmr.segment(0, 64), 1);
    await active.expect('dto 1 SUCCESS');
    await passive.expect('dto 11 SUCCESS');
    const arrived = passive.lmr.bytes.subarray(0, 64);
    assertSameBytes(arrived, active.lmr.bytes.subarray(0, 64));
    await expectQuiet(here);
    assert.equal(spoilt.hits, 1);
  });

  claim('a packet that others overtake: all data right, each message once', async (pair) => {
    const here = await scene(pair, STEADY);
    for (const code of [WRITE_FIRST, WRITE_MIDDLE]) {
      const action = { delayUs: 300 };
      const late = here.fault({ from: 'active', match: opcode(code), action });
      await writeAndLook(here, 8, code);
      assert.equal(late.hits, 1);
      late.remove();
    }
    await expectQuiet(here);
  });
}

function responses(claim: Claim): void {
  claim(
    'implied NAK, retry limit not exceeded: a lost read response, asked again',
    async (pair) => {
      const here = await scene(pair, PATIENT);
      const { active, passive } = here;
      fillPattern(passive.lmr.bytes, 9);
      const asked = here.watch('active', opcode(READ_REQUEST));
      here.fault({ from: 'passive', match: isRead, action: 'drop' });
      active.ep.postRdmaRead(active.lmr.segment(0, 64), 1, passive.remote());
      // The acknowledgement of the write implies that the response before it was lost.
      active.ep.postRdmaWrite(active.lmr.segment(4096, 64), 2, passive.remote(4096));
      await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
      assertSameBytes(active.lmr.bytes.subarray(0, 64), passive.lmr.bytes.subarray(0, 64));
      assert.ok(asked.count >= 2, 'asked again; a requester may ask once more in good time');
    },
    ['rdma-read'],
  );

  claim(
    'implied NAK, retry limit exceeded: TRANSPORT, FLUSHED, one BROKEN',
    async (pair) => {
      const here = await scene(pair, BRISK);
      const { active, passive } = here;
      const before = active.lmr.bytes.slice(0, 64);
      here.fault({ from: 'passive', match: isRead, action: 'drop', count: Infinity });
      active.ep.postRdmaRead(active.lmr.segment(0, 64), 1, passive.remote());
      active.ep.postRdmaWrite(active.lmr.segment(4096, 64), 2, passive.remote(4096));
      await active.expect('dto 1 TRANSPORT', 'dto 2 FLUSHED', 'BROKEN');
      assertSameBytes(active.lmr.bytes.subarray(0, 64), before);
    },
    ['rdma-read'],
  );

  claim(
    'RDMA read partial retry: whichever response is lost, all bytes arrive',
    async (pair) => {
      const here = await scene(pair, STEADY);
      const { active, passive } = here;
      const bytes = 6 * mtuBytes(active.ia) - 3;
      for (let nth = 1; nth <= 6; nth++) {
        fillPattern(passive.lmr.bytes, nth);
        const lost = here.fault({ from: 'passive', match: isRead, action: 'drop', nth });
        active.ep.postRdmaRead(active.lmr.segment(0, bytes), nth, passive.remote());
        await active.expect(`dto ${nth} SUCCESS`);
        assertSameBytes(active.lmr.bytes.subarray(0, bytes), passive.lmr.bytes.subarray(0, bytes));
        assert.equal(lost.hits, 1);
        lost.remove();
      }
    },
    ['rdma-read'],
  );

  claim(
    'a lost answer of an atomic: it is answered again, and done once',
    async (pair) => {
      const here = await scene(pair, STEADY);
      const { active, passive } = here;
      const word = new DataView(passive.lmr.bytes.buffer, passive.lmr.bytes.byteOffset, 8);
      word.setBigUint64(0, 40n, true);
      const match = opcode(ATOMIC_ACKNOWLEDGE);
      const lost = here.fault({ from: 'passive', match, action: 'drop' });
      active.ep.postFetchAdd(active.lmr.segment(0, 8), 1, passive.remote(), 2n);
      await active.expect('dto 1 SUCCESS');
      assert.equal(lost.hits, 1);
      assert.equal(word.getBigUint64(0, true), 42n);
    },
    ['atomic'],
  );
}

function repeats(claim: Claim): void {
  const action = { repeatAfterUs: [100, 1000] };

  claim('a send that comes again takes one receive', async (pair) => {
    const here = await scene(pair, STEADY);
    const { active, passive } = here;
    here.fault({ from: 'active', match: opcode(SEND_ONLY), action, count: Infinity });
    for (const cookie of [11, 12, 13]) passive.ep.postRecv(passive.lmr.segment(0, 64), cookie);
    active.ep.postSend(active.lmr.segment(0, 64), 1);
    active.ep.postSend(active.lmr.segment(0, 64), 2);
    await active.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
    await passive.expect('dto 11 SUCCESS', 'dto 12 SUCCESS');
    await expectQuiet(here);
  });

  claim('an RDMA write that comes again, late, does not write again', async (pair) => {
    const here = await scene(pair, STEADY);
    const { passive } = here;
    const match = opcode(WRITE_ONLY);
    const repeated = here.fault({ from: 'active', match, action, count: Infinity });
    await writeAndLook(here, 1);
    passive.lmr.bytes.fill(0x77);
    await expectQuiet(here);
    assert.ok(repeated.hits >= 1, 'a requester may send it once more by itself');
    assert.ok(passive.lmr.bytes.every((byte) => byte === 0x77));
  });

  claim(
    'an atomic that comes again is done once',
    async (pair) => {
      const here = await scene(pair, STEADY);
      const { active, passive } = here;
      const word = new DataView(passive.lmr.bytes.buffer, passive.lmr.bytes.byteOffset, 8);
      here.fault({ from: 'active', match: opcode(FETCH_ADD), action, count: Infinity });
      for (const cookie of [1, 2, 3]) {
        active.ep.postFetchAdd(active.lmr.segment(0, 8), cookie, passive.remote(), 5n);
        await active.expect(`dto ${cookie} SUCCESS`);
      }
      await expectQuiet(here);
      assert.equal(word.getBigUint64(0, true), 15n);
    },
    ['atomic'],
  );

  claim(
    'an RDMA read that comes again is answered, and completes once',
    async (pair) => {
      const here = await scene(pair, STEADY);
      const { active, passive } = here;
      fillPattern(passive.lmr.bytes, 5);
      here.fault({ from: 'active', match: opcode(READ_REQUEST), action, count: Infinity });
      active.ep.postRdmaRead(active.lmr.segment(0, 3000), 1, passive.remote());
      await active.expect('dto 1 SUCCESS');
      active.lmr.bytes.fill(0x55);
      await expectQuiet(here);
      assert.ok(
        active.lmr.bytes.every((byte) => byte === 0x55),
        'the sink is ours again',
      );
    },
    ['rdma-read'],
  );
}

function messages(claim: Claim): void {
  const handshake = [
    ['request', 'active', 0x10],
    ['reply', 'passive', 0x13],
    ['ready to use', 'active', 0x14],
  ] as const;
  for (const [name, from, attributeId] of handshake) {
    claim(`connecting: a ${name} message that is lost is sent again`, async (pair) => {
      const peers = meet(pair);
      const lost = tools(pair).fault({ from, match: cmMessage(attributeId), action: 'drop' });
      (await ask(peers)).accept(peers.passive.ep);
      await peers.active.expect('ESTABLISHED');
      await peers.passive.expect('ESTABLISHED');
      await expectQuiet(peers);
      assert.equal(lost.hits, 1);
    });
  }

  const farewell = [
    ['request', 'active', 0x15],
    ['reply', 'passive', 0x16],
  ] as const;
  for (const [name, from, attributeId] of farewell) {
    claim(`disconnecting: a ${name} message that is lost is sent again`, async (pair) => {
      const here = await scene(pair, STEADY);
      const lost = here.fault({ from, match: cmMessage(attributeId), action: 'drop' });
      here.active.ep.disconnect();
      await here.active.expect('DISCONNECTED');
      await here.passive.expect('DISCONNECTED');
      await expectQuiet(here);
      assert.equal(lost.hits, 1);
    });
  }
}
