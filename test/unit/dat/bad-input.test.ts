import assert from 'node:assert/strict';
import {
  ConnectFlags,
  type Ep,
  EvdFlags,
  MemPrivileges,
  PspFlags,
  Qos,
  VaType,
} from '../../../core/index.js';
import { Access } from '../../../core/spi/index.js';
import { type BadInput, refuses, wrong } from '../../support/bad-input.js';
import { connected, unconnected } from '../../support/fake-endpoints.js';
import { openFake } from '../../support/fake-provider.js';

/** Calls on an adapter, and on a connected endpoint. */
const ROWS: readonly BadInput[] = [
  [
    'connect without options',
    (b) => b.ep.connect(wrong(undefined)),
    'DAT_INVALID_STATE_EP_CONNECTED',
    /CONNECTED/,
  ],
  [
    'disconnect flag',
    (b) => b.ep.disconnect(wrong('now')),
    'DAT_INVALID_ARG2',
    /"now"; it must be one of "abrupt", "graceful"/,
  ],
  [
    'evd as pz',
    (b) => b.ia.createEndpoint({ pz: wrong(b.evd) }),
    'DAT_INVALID_HANDLE_PZ',
    /pz is an Evd; it must be a Pz \(ia\.createPz\(\) makes them\)/,
  ],
  [
    'endpoint option',
    (b) => b.ia.createEndpoint(wrong({ pz: b.pz, recvEVD: b.evd })),
    'DAT_INVALID_ARG2',
    /"recvEVD"/,
  ],
  [
    'evd of another kind',
    (b) => b.ia.createEndpoint({ pz: b.pz, recvEvd: wrong({}) }),
    'DAT_INVALID_HANDLE_EVD_RECV',
    /an object/,
  ],
  [
    'evd without the stream',
    (b) =>
      b.ia.createEndpoint({
        pz: b.pz,
        connectEvd: b.ia.createEvd({ qlen: 1, streams: EvdFlags.DTO }),
      }),
    'DAT_INVALID_HANDLE_EVD_CONN',
    /without EvdFlags\.CONNECTION/,
  ],
  [
    'cr evd without the stream',
    (b) => b.ia.createPsp({ connQual: 1, evd: b.ia.createEvd({ qlen: 1, streams: EvdFlags.DTO }) }),
    'DAT_INVALID_HANDLE_EVD_CR',
    /without EvdFlags\.CR/,
  ],
  [
    'attribute above the device',
    (b) => b.ia.createEndpoint({ pz: b.pz, attributes: { maxRecvDtos: 1024 } }),
    'DAT_INVALID_ARG6',
    /maxRecvDtos is 1024; it must be an integer from 1 to 1023/,
  ],
  [
    'attribute unknown',
    (b) => b.ia.createEndpoint({ pz: b.pz, attributes: wrong({ maxDtos: 1 }) }),
    'DAT_INVALID_ARG6',
    /"maxDtos"/,
  ],
  [
    'transport attribute',
    (b) => b.ia.createEndpoint({ pz: b.pz, attributes: { transport: { retryCount: 8 } } }),
    'DAT_INVALID_ARG6',
    /transport\.retryCount is 8/,
  ],
  [
    'service type',
    (b) => b.ia.createEndpoint({ pz: b.pz, attributes: { serviceType: wrong('UD') } }),
    'DAT_MODEL_NOT_SUPPORTED',
    /UD/,
  ],
  [
    'qos',
    (b) => b.ia.createEndpoint({ pz: b.pz, attributes: { qos: Qos.PREMIUM } }),
    'DAT_MODEL_NOT_SUPPORTED',
    /QoS 8/,
  ],
  [
    'psp port',
    (b) => b.ia.createPsp({ connQual: 65536 }),
    'DAT_INVALID_ARG2',
    /65536; it must be an integer from 1 to 65535/,
  ],
  ['psp flags', (b) => b.ia.createPsp({ connQual: 1, flags: 7 }), 'DAT_INVALID_ARG4', /flags is 7/],
  [
    'psp provider',
    (b) => b.ia.createPsp({ connQual: 1, flags: PspFlags.PROVIDER }),
    'DAT_INVALID_ARG4',
    /endpoint is undefined/,
  ],
  [
    'allocate nothing',
    (b) => b.ia.allocate(0, { pz: b.pz }),
    'DAT_INVALID_ARG1',
    /lengthBytes is 0/,
  ],
  [
    'privileges',
    (b) => b.ia.allocate(1, { pz: b.pz, privileges: 0x100 }),
    'DAT_INVALID_ARG6',
    /privileges is 256/,
  ],
  [
    'memory a string',
    (b) => b.ia.createLmr(wrong('bytes'), { pz: b.pz }),
    'DAT_INVALID_ARG2',
    /"bytes"/,
  ],
  [
    'memory empty',
    (b) => b.ia.createLmr(new Uint8Array(0), { pz: b.pz }),
    'DAT_LENGTH_ERROR',
    /0 bytes/,
  ],
  [
    'memory pooled',
    (b) => b.ia.createLmr(Buffer.from('hello'), { pz: b.pz }),
    'DAT_INVALID_PARAMETER',
    /5 bytes of Node's shared pool of 8192.*allocUnsafeSlow/,
  ],
  [
    'zero-based memory of a device that has none',
    (b) => b.ia.allocate(8, { pz: b.pz, vaType: VaType.ZB }),
    'DAT_MODEL_NOT_SUPPORTED',
    /zbSupported/,
  ],
  [
    'memory resizable',
    (b) => b.ia.createLmr(resizable(), { pz: b.pz }),
    'DAT_INVALID_PARAMETER',
    /resizable/,
  ],
  [
    'memory detached',
    (b) => b.ia.createLmr(detached(), { pz: b.pz }),
    'DAT_INVALID_PARAMETER',
    /detached/,
  ],
  [
    'memory detached buffer',
    (b) => b.ia.createLmr(detached().buffer, { pz: b.pz }),
    'DAT_INVALID_ARG2',
    /not transferred away/,
  ],
];

/** Calls on an unconnected endpoint. */
const CONNECT_ROWS: readonly BadInput[] = [
  ['options', (b) => b.ep.connect(wrong(undefined)), 'DAT_INVALID_ARG2', /undefined/],
  [
    'name',
    (b) => b.ep.connect({ address: 'localhost', connQual: 1 }),
    'DAT_INVALID_ADDRESS_MALFORMED',
    /names are not resolved/,
  ],
  [
    'address type',
    (b) => b.ep.connect({ address: wrong(1), connQual: 1 }),
    'DAT_INVALID_ARG2',
    /address is 1/,
  ],
  ['port 0', (b) => connect(b.ep, { connQual: 0 }), 'DAT_INVALID_ARG3', /connQual is 0/],
  ['timeout 0', (b) => connect(b.ep, { timeoutMs: 0 }), 'DAT_INVALID_ARG4', /timeoutMs is 0/],
  ['timeout NaN', (b) => connect(b.ep, { timeoutMs: NaN }), 'DAT_INVALID_ARG4', /NaN/],
  [
    'private data type',
    (b) => connect(b.ep, { privateData: wrong('x') }),
    'DAT_INVALID_ARG6',
    /a Uint8Array/,
  ],
  [
    'private data length',
    (b) => connect(b.ep, { privateData: new Uint8Array(57) }),
    'DAT_INVALID_ARG5',
    /57 bytes; at most 56/,
  ],
  ['qos', (b) => connect(b.ep, { qos: Qos.LOW_LATENCY }), 'DAT_MODEL_NOT_SUPPORTED', /qos 2/],
  [
    'flags',
    (b) => connect(b.ep, { flags: ConnectFlags.MULTIPATH_REQUIRED }),
    'DAT_MODEL_NOT_SUPPORTED',
    /flags 2/,
  ],
  ['unknown option', (b) => connect(b.ep, wrong({ port: 1 })), 'DAT_INVALID_ARG2', /"port"/],
  ['send too early', (b) => b.ep.postSend([]), 'DAT_INVALID_STATE_EP_UNCONNECTED', /UNCONNECTED/],
];

function connect(ep: Ep, options: object): void {
  ep.connect({ address: '192.0.2.2', connQual: 7, ...options });
}

function resizable(): Uint8Array {
  const Resizable = ArrayBuffer as unknown as new (
    length: number,
    options: { maxByteLength: number },
  ) => ArrayBuffer;
  return new Uint8Array(new Resizable(8, { maxByteLength: 16 }));
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

describe('bad input', () => {
  for (const row of ROWS) {
    it(`is refused by name and value: ${row[0]}`, async () => {
      const bench = await connected();
      refuses(bench, row);
      // Nothing is lost: the endpoint works as before.
      assert.equal(bench.device.qp.sendRing.producer, 0);
      bench.ep.postSend(bench.lmr.segment(), 1);
      assert.equal(bench.device.qp.work[0]?.cookie, 1);
    });
  }

  for (const row of CONNECT_ROWS) {
    it(`is refused by connect: ${row[0]}`, async () => {
      const bench = await unconnected();
      refuses(bench, row);
      assert.equal(bench.ep.state, 'UNCONNECTED');
      connect(bench.ep, {});
    });
  }

  it('knows foreign handles', async () => {
    const { ia, pz, evd } = await unconnected();
    const other = await openFake();
    assert.throws(() => other.ia.createEndpoint({ pz }), /belongs to another interface adapter/);
    assert.throws(
      () => other.ia.createEndpoint({ pz: other.ia.createPz(), recvEvd: evd }),
      /DAT_INVALID_HANDLE_EVD_RECV/,
    );
    assert.throws(() => other.ia.createPsp({ connQual: 1, evd }), /DAT_INVALID_HANDLE_EVD_CR/);
    await ia.close();
    await other.ia.close();
  });

  it('knows freed handles', async () => {
    const { ia, ep, lmr, evd, pz } = await unconnected();
    const psp = ia.createPsp({ connQual: 7 });
    for (const handle of [psp, lmr, ep, pz]) {
      handle.free();
      assert.throws(() => handle.free(), /DAT_INVALID_HANDLE_.*|was ended by/);
    }
    assert.throws(() => ep.postRecv([]), /DAT_INVALID_HANDLE_EP/);
    assert.throws(() => lmr.segment(), /DAT_INVALID_HANDLE_LMR/);
    assert.throws(() => ia.allocate(1, { pz }), /DAT_INVALID_HANDLE_PZ/);
    await evd.free();
    const next = ia.createPz();
    assert.throws(() => ia.createEndpoint({ pz: next, recvEvd: evd }), /EVD_RECV/);
  });

  it('says that a connection qualifier is in use', async () => {
    const { ia } = await openFake();
    const psp = ia.createPsp({ connQual: 7 });
    assert.throws(() => ia.createPsp({ connQual: 7 }), /DAT_CONN_QUAL_IN_USE/);
    psp.free();
    ia.createPsp({ connQual: 7 });
  });

  it('notices memory that was transferred away after registration', async () => {
    const { ia, ep, pz } = await connected();
    const bytes = new Uint8Array(64);
    const segment = ia.createLmr(bytes, { pz }).segment();
    ep.postSend(segment);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    assert.throws(() => ep.postSend(segment), /has lost its memory/);
  });

  it('registers where the device wants it, if that is not anywhere', async () => {
    const { ia, pz, device } = await unconnected();
    device.pageOffset = 8n;
    const lmr = ia.createLmr(new Uint8Array(64), { pz });
    assert.equal(lmr.address, 0x7008n);
  });

  it('registers views of one buffer where they are', async () => {
    const { ia, pz, device } = await unconnected();
    const buffer = new ArrayBuffer(64);
    const lmr = ia.createLmr(new Uint16Array(buffer, 8, 4), { pz });
    lmr.bytes[0] = 7;
    assert.equal(new Uint8Array(buffer)[8], 7);
    assert.equal(lmr.lengthBytes, 8);
    assert.equal(lmr.rmrContext, undefined);
    assert.equal(lmr.address % 4096n, 0n);
    assert.notEqual(lmr.address, ia.createLmr(buffer, { pz }).address);
    assert.equal(device.regions[1]?.access, Access.LOCAL_WRITE | Access.MW_BIND);
    const open = ia.allocate(8, { pz, privileges: MemPrivileges.REMOTE_WRITE });
    assert.equal(open.rmrContext, device.regions.at(-1)?.rkey);
    assert.equal(device.regions.at(-1)?.access, 3 | Access.MW_BIND);
    const segment = open.segment(2, 3);
    open.bytes.set([1, 2, 3, 4, 5, 6]);
    assert.deepEqual([...segment.bytes], [3, 4, 5]);
    assert.deepEqual([...segment.set(0, 1).bytes], [1]);
  });
});
