import assert from 'node:assert/strict';
import {
  QpState,
  type XrcDomain,
  type XrcTargetAttributes,
  gidFromIp,
} from '../../../core/spi/index.js';
import { TARGET_ATTRIBUTES, TARGET_CAPABILITIES, Xrc } from '../../../plugins/xrc/index.js';
import { FakeXrcDevice, Lines, targetAttributes } from '../../support/fake-xrc-device.js';

const gid = gidFromIp('192.0.2.9');

/** Of each use in the issue's table: the attribute, its bit in verbs' mask. */
const NEEDED = {
  accessFlags: ['RESET->INIT', 'ACCESS_FLAGS'],
  pkeyIndex: ['RESET->INIT', 'PKEY_INDEX'],
  portNumber: ['RESET->INIT', 'PORT'],
  addressVector: ['INIT->RTR', 'AV'],
  pathMtuBytes: ['INIT->RTR', 'PATH_MTU'],
  destinationQpn: ['INIT->RTR', 'DEST_QPN'],
  receivePsn: ['INIT->RTR', 'RQ_PSN'],
} as const;
const REFUSED = {
  sendPsn: [3, 'SQ_PSN'],
  maxRdAtomic: [1, 'MAX_QP_RD_ATOMIC'],
  enableSqdAsyncNotify: [true, 'EN_SQD_ASYNC_NOTIFY'],
  state: [QpState.RTR, 'STATE'],
  currentState: [QpState.RESET, 'CUR_STATE'],
} as const;
const ACCEPTED = {
  timeout: [14, 32],
  retryCount: [7, 8],
  rnrRetryCount: [7, 8],
  qkey: [0xffffffff, 2 ** 32],
  pathMigrationState: [2, 3],
  alternateAddressVector: [{ gid, localGidIndex: 0 }, { gid: new Uint8Array(4) }],
  alternatePkeyIndex: [1, 0x10000],
  alternatePortNumber: [2, 0],
  alternateTimeout: [31, -1],
} as const;
const BAD_VALUES = {
  portNumber: 0,
  addressVector: { gid: new Uint8Array(15), localGidIndex: 0 },
  pathMtuBytes: 1000,
  destinationQpn: 2 ** 24,
  receivePsn: 2 ** 24,
  minRnrTimer: 32,
  maxDestRdAtomic: 256,
  pkeyIndex: 1.5,
} as const;

function create(attributes: object): { qpn: number; fake: FakeXrcDevice } {
  const fake = new FakeXrcDevice();
  const module = new Xrc({ device: fake.device, logger: new Lines().logger });
  const domain = module.openDomain(fake, 'k', 'create') as XrcDomain;
  const onEvent = (): void => undefined;
  try {
    const attributesOf = attributes as XrcTargetAttributes;
    const qpn = domain.createTarget({ attributes: attributesOf, owner: 'consumer', onEvent });
    return { qpn, fake };
  } catch (error) {
    assert.equal(fake.count('qp'), 0, 'a target that did not come about leaves nothing');
    assert.deepEqual(domain.targets, []);
    throw error;
  }
}

const einval =
  (...parts: string[]) =>
  (error: unknown) => {
    assert.equal((error as { code?: string }).code, 'EINVAL');
    for (const part of parts) assert.match((error as Error).message, new RegExp(part));
    return true;
  };

describe('XRC target attributes (openib-general, December 2007)', () => {
  it('covers every attribute of the table, and no other', () => {
    const uses = { ...NEEDED, ...REFUSED, ...ACCEPTED, minRnrTimer: 0, maxDestRdAtomic: 0 };
    assert.deepEqual(Object.keys(TARGET_ATTRIBUTES).sort(), Object.keys(uses).sort());
  });

  it('goes from RESET through INIT to RTR in one call, with the defaults', () => {
    const { qpn, fake } = create(targetAttributes());
    const qp = fake.find(qpn);
    assert.equal(qp.state, QpState.RTR);
    assert.equal(qp.attributes.minRnrTimer, 0);
    assert.equal(qp.attributes.maxDestRdAtomic, 0);
  });

  it('has fixed capabilities', () => {
    const { qpn, fake } = create(targetAttributes());
    const { maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineBytes } =
      fake.find(qpn).init;
    assert.deepEqual(
      { maxSendWr, maxReceiveWr, maxSendSge, maxReceiveSge, maxInlineBytes },
      TARGET_CAPABILITIES,
    );
    assert.deepEqual(Object.values(TARGET_CAPABILITIES), [1, 0, 1, 0, 0]);
  });

  for (const [name, [transition, mask]] of Object.entries(NEEDED)) {
    it(`needs ${name}`, () => {
      const attributes: Record<string, unknown> = { ...targetAttributes() };
      delete attributes[name];
      const parts = [`XRC_TGT ${transition}`, `${name} missing`, `IBV_QP_${mask} 0x`, 'in mask 0x'];
      assert.throws(() => create(attributes), einval(...parts));
    });
  }

  for (const [name, [value, mask]] of Object.entries(REFUSED)) {
    it(`refuses ${name}`, () => {
      const parts = ['XRC_TGT .*->', `${name} refused`, `IBV_QP_${mask} 0x`, 'in mask 0x'];
      assert.throws(() => create({ ...targetAttributes(), [name]: value }), einval(...parts));
    });
  }

  for (const [name, [good, bad]] of Object.entries(ACCEPTED)) {
    it(`checks ${name} and does nothing with it`, () => {
      const { qpn, fake } = create({ ...targetAttributes(), [name]: good });
      assert.ok(!(name in fake.find(qpn).attributes));
      assert.throws(
        () => create({ ...targetAttributes(), [name]: bad }),
        einval('XRC_TGT INIT->RTR', name, 'in mask 0x'),
      );
    });
  }

  for (const [name, value] of Object.entries(BAD_VALUES)) {
    it(`refuses a value of ${name} that is out of range`, () => {
      assert.throws(() => create({ ...targetAttributes(), [name]: value }), einval(name));
    });
  }

  it('names an attribute that it has never heard of', () => {
    assert.throws(
      () => create({ ...targetAttributes(), capabilities: {} }),
      einval('takes no capabilities'),
    );
  });
});
