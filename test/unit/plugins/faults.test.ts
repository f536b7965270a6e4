import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { faults, type Faulty, type PacketFaultRule } from 'dapl/plugins/faults';
import { Fabric, mock } from 'dapl/providers/mock';
import { WcStatus, WrOpcode } from 'dapl/spi';
import type { CompliancePair } from 'dapl/testing';
import { assertSameBytes, connected, fillPattern } from '../../../plugins/testing/suite/peer.js';
import { PROVIDER_PAIRS, type ProviderPair, withAdapters } from '../../support/every-provider.js';

const WITH_PORT = ['mock', 'softroce', 'softroce, on node:dgram'];
/** Six packets of the longest that there are. */
const LENGTH = 300_000;

/** A message of many packets, which arrives whole. */
async function message(pair: CompliancePair, before?: () => void): Promise<void> {
  const { active: a, passive: b } = await connected(pair, { lengthBytes: LENGTH });
  before?.();
  fillPattern(a.lmr.bytes, 7);
  b.ep.postRecv(b.lmr.segment(0, LENGTH), 1);
  a.ep.postSend(a.lmr.segment(0, LENGTH), 2);
  await b.expect('dto 1 SUCCESS');
  await a.expect('dto 2 SUCCESS');
  assertSameBytes(b.lmr.bytes.subarray(0, LENGTH), a.lmr.bytes.subarray(0, LENGTH));
}

/** One rule each: what leaves, and what arrives. */
const RULES: Readonly<Record<string, PacketFaultRule>> = {
  'a packet that leaves is lost': {
    match: { opcode: 'RC_SEND_MIDDLE', nth: 2 },
    action: { type: 'drop' },
  },
  'a packet that leaves is spoilt': {
    match: { opcode: 'RC_SEND_MIDDLE', nth: 2 },
    action: { type: 'corrupt', byteOffset: 20 },
  },
  'a packet that leaves is late': {
    match: { opcode: 'RC_SEND_MIDDLE', nth: 2 },
    action: { type: 'delay', byUs: 3000 },
  },
  'packets that leave come again': {
    match: { opcode: 'RC_SEND_MIDDLE', count: 3 },
    action: { type: 'duplicate', afterUs: [500, 2000] },
  },
  'an acknowledgement that arrives is lost': {
    match: { opcode: 'RC_ACKNOWLEDGE' },
    action: { type: 'drop' },
  },
  'an acknowledgement that arrives is late': {
    match: { opcode: 'RC_ACKNOWLEDGE' },
    action: { type: 'delay', byUs: 2000 },
  },
  'an acknowledgement that arrives comes again': {
    match: { opcode: 'RC_ACKNOWLEDGE' },
    action: { type: 'duplicate', afterUs: [100, 5000] },
  },
};

describe('A faulty provider', () => {
  for (const name of WITH_PORT) {
    for (const [what, rule] of Object.entries(RULES)) {
      it(`${what}, and the message arrives: ${name}`, async () => {
        const pair = PROVIDER_PAIRS[name]!();
        const faulty = faults(pair.active);
        await withAdapters({ ...pair, active: faulty.provider }, (opened) =>
          message(opened, () => void faulty.packets.add(rule)),
        );
        faulty.assertFaultsHit();
      });
    }
  }

  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`has a send request fail with the status that was asked for: ${name}`, async () => {
      const pair = pairOf();
      const faulty = faults(pair.active);
      await withAdapters({ ...pair, active: faulty.provider }, async (opened) => {
        const { active: a } = await connected(opened);
        faulty.sends.add({
          match: { opcode: WrOpcode.SEND },
          action: { type: 'fail', status: WcStatus.RETRY_EXC_ERR },
        });
        a.ep.postSend(a.lmr.segment(0, 40), 2);
        const [first] = await a.until('BROKEN');
        assert.equal(first, 'dto 2 TRANSPORT');
      });
      faulty.assertFaultsHit();
    });
  }

  it('says which rules have hit nothing', () => {
    const faulty: Faulty = faults(PROVIDER_PAIRS['mock']!().active);
    faulty.packets.add({ match: { opcode: 'RC_ACKNOWLEDGE' }, action: { type: 'drop' } });
    assert.throws(() => faulty.assertFaultsHit(), /packets: drop of opcode "RC_ACKNOWLEDGE"/);
  });

  it('refuses rules of packets without a packet port, before and after opening', async () => {
    const pair: ProviderPair = PROVIDER_PAIRS["a stranger's"]!();
    const rule: PacketFaultRule = { action: { type: 'drop' } };
    const before = faults(pair.active);
    before.packets.add(rule);
    await assert.rejects(openIa(before.provider), /has no packet port/);
    const after = faults(pair.active);
    const ia = await openIa(after.provider);
    assert.throws(() => after.packets.add(rule), { code: 'EOPNOTSUPP' });
    await ia.close();
  });

  it('repeats itself by its seed', async () => {
    const hits = async (seed: number): Promise<number> => {
      const fabric = new Fabric({ seed: 1, autoRun: true });
      const faulty = faults(mock({ fabric, address: '192.0.2.1' }), { seed });
      const passive = mock({ fabric, address: '192.0.2.2' });
      const rule = faulty.packets.add({ match: { percent: 20 }, action: { type: 'drop' } });
      const pair = { active: faulty.provider, passive, passiveAddress: '192.0.2.2' };
      await withAdapters(pair, (opened) => message(opened));
      return rule.hits * 1000 + rule.matched;
    };
    assert.equal(await hits(3), await hits(3));
  });
});
