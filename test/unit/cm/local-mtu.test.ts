/** Longer packets between two of ours: offered and kept only where both can, and nobody else. */
import assert from 'node:assert/strict';
import { LOCAL_MTU_BYTES } from '../../../core/spi/index.js';
import type { DeviceAttributes } from '../../../core/spi/index.js';
import { agreedMtuBytes, agreedVendorId, offeredVendorId } from '../../../plugins/cm/local-mtu.js';
import type { CmReq } from '../../../plugins/cm/wire/req.js';
import { CmPair } from '../../support/cm-pair.js';

const CODE_4096 = 5;

describe('CM: longer packets on one host', () => {
  const pair = new CmPair();
  pair.network.fate = () => [];
  pair.connect();
  const [req] = pair.bodies('REQ');
  assert.ok(req);
  const plain: DeviceAttributes = pair.b.device.attributes;
  const local: DeviceAttributes = { ...plain, localMtuBytes: LOCAL_MTU_BYTES };
  const id = offeredVendorId('rc', CODE_4096, local);
  const offering = (change: Partial<CmReq> = {}): CmReq => ({
    ...req,
    pathMtu: CODE_4096,
    vendorId: id,
    ...change,
  });

  it('offers them where the device has them, for RC with the whole path MTU', () => {
    assert.notEqual(id, 0);
    assert.equal(offeredVendorId('rc', CODE_4096, plain), 0);
    assert.equal(offeredVendorId('rc', CODE_4096 - 1, local), 0);
    assert.equal(offeredVendorId('xrc', CODE_4096, local), 0);
    assert.equal(req.vendorId, 0);
  });

  it('keeps an offer that it could have made', () => {
    assert.equal(agreedVendorId(offering(), local), id);
    assert.equal(agreedMtuBytes(offering(), id), LOCAL_MTU_BYTES);
  });

  it('ignores every other one, and the path MTU of REQ holds', () => {
    assert.equal(agreedVendorId(offering(), plain), 0);
    assert.equal(agreedVendorId(offering({ vendorId: 0x15b3 }), local), 0);
    assert.equal(agreedVendorId(offering({ vendorId: 0 }), local), 0);
    assert.equal(agreedVendorId(offering({ pathMtu: 3 }), local), 0);
    assert.equal(agreedMtuBytes(offering(), 0), 4096);
    assert.equal(agreedMtuBytes(offering(), 0x15b3), 4096);
    assert.equal(agreedMtuBytes(offering({ vendorId: 0 }), id), 4096);
    assert.equal(agreedMtuBytes(offering({ vendorId: 0x15b3, pathMtu: 3 }), 0x15b3), 1024);
  });
});
