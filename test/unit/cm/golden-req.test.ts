import assert from 'node:assert/strict';

import { ipFromGid } from '../../../core/spi/wire/address.js';
import { cmaHeaderCodec, splitCmaPrivateData } from '../../../plugins/cm/wire/cma-header.js';
import { emitCmMad, parseCmMad } from '../../../plugins/cm/wire/message.js';
import { GOLDEN_PACKETS, bytesOf, hexOf } from '../wire/golden-packets.js';
import { SeededRandom } from '../../../providers/mock/index.js';

const packet = bytesOf(GOLDEN_PACKETS.find(({ name }) => name.includes('CM REQ'))?.hex ?? '');
/** After IPv4, UDP, BTH and DETH; before the ICRC. */
const mad = packet.slice(48, -4);

describe('captured CM REQ', () => {
  it('has the fields that rping sent', () => {
    const parsed = parseCmMad(mad);
    assert.ok(parsed?.message.name === 'REQ');
    assert.equal(parsed.transactionIdHi, 2);
    assert.equal(parsed.transactionIdLo, 0x234ff785);
    assert.equal(parsed.attributeModifier, 0);
    const { primaryLocalGid, primaryRemoteGid, privateData, ...req } = parsed.message.body;
    assert.equal(ipFromGid(primaryLocalGid), '192.168.77.2');
    assert.equal(ipFromGid(primaryRemoteGid), '192.168.77.1');
    assert.deepEqual(req, {
      localCommId: 0x85f74f23,
      vendorId: 0,
      serviceId: 0x0000000001061c06n,
      localCaGuid: 0x505400fffe00000bn,
      localQkey: 0,
      localQpn: 0x11,
      responderResources: 1,
      localEecn: 0,
      initiatorDepth: 1,
      remoteEecn: 0,
      remoteCmResponseTimeout: 20,
      transportServiceType: 0,
      endToEndFlowControl: 0,
      startingPsn: 0xd526da,
      localCmResponseTimeout: 20,
      retryCount: 7,
      partitionKey: 0xffff,
      pathMtu: 3,
      rdcExists: 0,
      rnrRetryCount: 7,
      maxCmRetries: 15,
      srq: 0,
      extendedTransportType: 0,
      primaryLocalLid: 0xffff,
      primaryRemoteLid: 0xffff,
      primaryFlowLabel: 0x3afda,
      primaryPacketRate: 0,
      primaryTrafficClass: 0,
      primaryHopLimit: 64,
      primarySl: 0,
      primarySubnetLocal: 0,
      primaryLocalAckTimeout: 19,
      alternateLocalLid: 0,
      alternateRemoteLid: 0,
      alternateLocalGid: new Uint8Array(16),
      alternateRemoteGid: new Uint8Array(16),
      alternateFlowLabel: 0,
      alternatePacketRate: 0,
      alternateTrafficClass: 0,
      alternateHopLimit: 0,
      alternateSl: 0,
      alternateSubnetLocal: 0,
      alternateLocalAckTimeout: 0,
      sapSupported: 0,
    });
    const cma = splitCmaPrivateData(privateData);
    assert.equal(cma?.header.version, 0);
    assert.equal(cma.header.ipVersion, 4);
    assert.equal(cma.header.sourcePort, 0xa1ac);
    assert.deepEqual([...cma.header.sourceAddress.subarray(12)], [192, 168, 77, 2]);
    assert.deepEqual([...cma.header.destinationAddress.subarray(12)], [192, 168, 77, 1]);
    assert.deepEqual(cma.consumerData, new Uint8Array(56));
    const flowLabel = (cma.header.sourcePort * 31 + 7174) & 0xfffff;
    assert.equal(req.primaryFlowLabel, flowLabel, 'rdma_cm derives it from the ports');
  });

  it('is emitted again byte for byte', () => {
    const parsed = parseCmMad(mad);
    assert.ok(parsed);
    assert.equal(hexOf(emitCmMad(parsed, new Uint8Array(256).fill(0xa5))), hexOf(mad));
    assert.equal(hexOf(emitCmMad(parsed)), hexOf(mad));
  });

  it('is dropped when any of its MAD header is not CM', () => {
    for (const [at, value] of [
      [0, 2],
      [1, 4],
      [2, 1],
      [3, 0x81],
      [16, 1],
      [17, 0x1b],
    ] as const) {
      const other = mad.slice();
      other[at] = value;
      assert.equal(parseCmMad(other), undefined, `byte ${at}`);
    }
    assert.equal(parseCmMad(mad.subarray(0, 255)), undefined);
    assert.equal(parseCmMad(new Uint8Array(257)), undefined);
  });
});

describe('CM parsers under fuzzing', () => {
  it('never throw, and what they accept they emit again, over 100,000 MADs', () => {
    const random = new SeededRandom(11);
    const seen = new Map<string, number>();
    let dropped = 0;
    for (let round = 0; round < 100_000; round += 1) {
      const bytes = random.below(8) === 0 ? random.bytes(random.below(300)) : mad.slice();
      for (let count = random.below(9); count > 0 && bytes.length > 0; count -= 1) {
        bytes[random.below(bytes.length)] = random.below(256);
      }
      if (random.below(4) > 0 && bytes.length > 17) bytes[17] = 0x10 + random.below(12);
      const input = random.below(10) === 0 ? bytes.slice(0, random.below(257)) : bytes;
      const parsed = parseCmMad(input);
      if (parsed === undefined) {
        dropped += 1;
        continue;
      }
      const { name } = parsed.message;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      if (round % 10 === 0) assert.deepEqual(parseCmMad(emitCmMad(parsed)), parsed);
    }
    assert.equal(seen.size, 11, 'all messages were reached');
    assert.ok(dropped > 10_000);
  });

  it('take any private data for an rdma_cm header without throwing', () => {
    const random = new SeededRandom(12);
    for (let round = 0; round < 10_000; round += 1) {
      const bytes = random.bytes(random.below(80));
      assert.equal(splitCmaPrivateData(bytes) === undefined, bytes.length < 36);
      assert.equal(cmaHeaderCodec.parse(bytes) === undefined, bytes.length !== 36);
    }
  });
});
