import assert from 'node:assert/strict';

import { gidFromIp } from '../../../core/spi/wire/address.js';
import { isPortServiceId, PortSpace, serviceIdOf } from '../../../core/spi/modules/cm.js';
import { CM_ATTRIBUTE } from '../../../plugins/cm/wire/cm-codec.js';
import * as cma from '../../../plugins/cm/wire/cma-header.js';
import { REJECT_REASON, rejectReasonName } from '../../../plugins/cm/wire/rej.js';
import { serviceName } from '../../../plugins/cm/wire/cma-header.js';
import * as time from '../../../plugins/cm/common/timing.js';

describe('CM numbers', () => {
  it('attribute ids run from 0x10 to 0x1A', () => {
    assert.equal(CM_ATTRIBUTE.REQ, 0x10);
    assert.equal(CM_ATTRIBUTE.SIDR_REP, 0x18);
    assert.equal(CM_ATTRIBUTE.APR, 0x1a);
    assert.equal(new Set(Object.values(CM_ATTRIBUTE)).size, 11);
  });

  it('reject reasons have the numbers of the specification and names for people', () => {
    const { INVALID_SERVICE_ID, STALE_CONNECTION, CONSUMER_REJECT } = REJECT_REASON;
    assert.deepEqual([INVALID_SERVICE_ID, STALE_CONNECTION, CONSUMER_REJECT], [8, 10, 28]);
    const codes = Object.values(REJECT_REASON);
    const expected = Array.from({ length: 35 }, (_, index) => index + 1).filter((n) => n !== 34);
    assert.deepEqual(codes, expected);
    assert.equal(rejectReasonName(8), 'invalid service id');
    assert.equal(rejectReasonName(34), 'reason 34');
  });

  it('service ids of rdma_cm are known', () => {
    const id = serviceIdOf(PortSpace.TCP, 7174);
    assert.equal(id, 0x0000000001061c06n);
    for (const space of [0x0002n, 0x0106n, 0x0111n, 0x013fn]) {
      assert.equal(isPortServiceId(space << 16n), true);
      assert.equal(isPortServiceId((space << 16n) | 0xffffn), true);
      assert.equal(isPortServiceId((space << 16n) | (1n << 32n)), false);
    }
    for (const other of [0n, 0x1ffffn, 0x01071c06n, 1n << 56n, (1n << 64n) - 1n]) {
      assert.equal(isPortServiceId(other), false);
    }
    assert.equal(serviceName(id), 'port 7174 (service id 0x1061c06)');
    assert.equal(serviceName(0x01071c06n), 'service id 0x1071c06');
  });

  it('time codes are 4.096 us * 2^code', () => {
    assert.equal(time.timeUsOfCode(0), 4.096);
    assert.equal(time.timeUsOfCode(19), 2_147_483.648);
    assert.throws(() => time.timeUsOfCode(32), /time code is 32.*0 to 31/);
    assert.throws(() => time.timeUsOfCode(-1), RangeError);
  });
});

describe('rdma_cm header', () => {
  const v4 = gidFromIp('192.168.77.2');
  const v6 = gidFromIp('fd77::2');

  it('has an IPv4 address after twelve zeros, an IPv6 address as it is', () => {
    assert.equal(
      Buffer.from(cma.cmaAddressOfGid(v4)).toString('hex'),
      '000000000000000000000000c0a84d02',
    );
    assert.deepEqual(cma.cmaAddressOfGid(v6), v6);
    assert.deepEqual(cma.gidOfCmaAddress(cma.cmaAddressOfGid(v4), 4), v4);
    assert.deepEqual(cma.gidOfCmaAddress(v6, 6), v6);
    assert.equal(cma.gidOfCmaAddress(v6, 5), undefined);
  });

  it('goes in front of the consumer data, bit for bit', () => {
    const header = {
      version: 0,
      ipVersion: 4,
      sourcePort: 0x8490,
      sourceAddress: cma.cmaAddressOfGid(v4),
      destinationAddress: v6,
    };
    const joined = cma.joinCmaPrivateData(header, Uint8Array.of(1, 2), 56);
    assert.equal(
      Buffer.from(joined).toString('hex'),
      '00408490' + '000000000000000000000000c0a84d02' + 'fd770000000000000000000000000002' + '0102',
    );
    assert.deepEqual(cma.splitCmaPrivateData(joined), {
      header,
      consumerData: Uint8Array.of(1, 2),
    });
    assert.throws(() => cma.joinCmaPrivateData(header, new Uint8Array(57), 56), /57.*at most 56/);
  });
});
