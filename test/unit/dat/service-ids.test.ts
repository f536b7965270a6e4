// Service ids of no port, on the wire: which bytes leave, and what peers of the other kind hear.

import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import {
  type ConnectionEvent,
  DatEventNumber,
  type Ep,
  type Ia,
  openIa,
} from '../../../core/index.js';
import { CmRawPrivateData, serviceIdOf, PortSpace } from '../../../core/spi/index.js';
import { repCodec } from '../../../plugins/cm/wire/rep.js';
import { rejCodec } from '../../../plugins/cm/wire/rej.js';
import { CM_ATTRIBUTE } from '../../../plugins/cm/wire/cm-codec.js';
import { reqCodec } from '../../../plugins/cm/wire/req.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

const SERVER = '192.0.2.2';
const SERVICE_ID = 0x0123_4567_89ab_cdefn;
/** BTH and DETH; the header of a MAD. */
const MAD_AT = 20;
const BODY_AT = MAD_AT + 24;
const GSI = 1;

/** What an endpoint is told. */
function told(ep: Ep): Promise<ConnectionEvent> {
  return new Promise((resolve) => ep.connection$.subscribe(resolve));
}

function pattern(length: number, first: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (first + i) & 0xff);
}

describe('service ids', () => {
  let fabric: Fabric;
  let client: Ia;
  let server: Ia;
  /** MADs of the CM: attribute id, and the bytes behind the header. */
  let sent: { readonly attribute: number; readonly body: Uint8Array }[];
  beforeEach(async () => {
    fabric = new Fabric({ seed: 9, autoRun: true });
    client = await openIa(mock({ fabric, address: '192.0.2.1' }));
    server = await openIa(mock({ fabric, address: SERVER }));
    sent = [];
    fabric.tap = (event, { buffer, view, length }) => {
      if (event !== 'sent' || (view.getUint32(4) & 0xffffff) !== GSI) return;
      const attribute = view.getUint16(MAD_AT + 16);
      sent.push({ attribute, body: buffer.slice(BODY_AT, length - 4) });
    };
  });
  afterEach(() => Promise.all([client.close(), server.close()]));

  const connect = (
    options: { serviceId: bigint } | { connQual: number },
    data?: Uint8Array,
  ): Ep => {
    const ep = client.createEndpoint({ pz: client.createPz() });
    ep.connect({ address: SERVER, ...options, ...(data && { privateData: data }) });
    return ep;
  };
  const bodyOf = (name: keyof typeof CM_ATTRIBUTE): Uint8Array => {
    const found = sent.find(({ attribute }) => attribute === CM_ATTRIBUTE[name]);
    assert.ok(found, `no ${name} has left`);
    return found.body;
  };

  it('have private data as long as the fields of the messages', () => {
    const lengths = [reqCodec, repCodec, rejCodec].map(({ layout }) => layout.privateData.length);
    const { REQ, REP, REJ } = CmRawPrivateData;
    assert.deepEqual([REQ, REP, REJ], lengths);
  });

  it('leave as they are, and the private data without a header, in REQ and REP', async () => {
    const [asked, answered] = [pattern(92, 1), pattern(196, 101)];
    server.createPsp({ serviceId: SERVICE_ID }).requests$.subscribe(({ cr }) => {
      cr.accept(server.createEndpoint({ pz: server.createPz() }), { privateData: answered });
    });
    const { number } = await told(connect({ serviceId: SERVICE_ID }, asked));
    assert.equal(number, DatEventNumber.ESTABLISHED);
    const req = bodyOf('REQ');
    assert.equal(new DataView(req.buffer, req.byteOffset).getBigUint64(8), SERVICE_ID);
    assert.deepEqual(req.slice(140), asked);
    assert.deepEqual(bodyOf('REP').slice(36), answered);
    assert.ok(
      bodyOf('RTU')
        .slice(8)
        .every((byte) => byte === 0),
    );
  });

  it('leave their private data without a header in REJ', async () => {
    const refused = pattern(148, 7);
    server.createPsp({ serviceId: SERVICE_ID }).requests$.subscribe(({ cr }) => {
      cr.reject({ privateData: refused });
    });
    const event = await told(connect({ serviceId: SERVICE_ID }));
    assert.equal(event.number, DatEventNumber.PEER_REJECTED);
    assert.equal(event.rejectReason, 28);
    assert.deepEqual(event.privateData, refused);
    assert.deepEqual(bodyOf('REJ').slice(84), refused);
    assert.ok(
      bodyOf('REQ')
        .slice(140)
        .every((byte) => byte === 0),
    );
  });

  it('of a port have its header, by `connQual`: bytes 140 to 175 of REQ', async () => {
    server.createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => cr.reject());
    await told(connect({ connQual: 7 }, pattern(56, 1)));
    const req = bodyOf('REQ');
    const serviceId = new DataView(req.buffer, req.byteOffset).getBigUint64(8);
    assert.equal(serviceId, serviceIdOf(PortSpace.TCP, 7));
    assert.equal(req[141], 0x40);
    assert.deepEqual(req.slice(176), pattern(56, 1));
  });

  it('are not found by a client of ports, which is told reason 8, nor the reverse', async () => {
    server.createPsp({ serviceId: 0x1_0007n });
    server.createPsp({ connQual: 8 });
    for (const to of [{ connQual: 7 }, { serviceId: 0x1_0008n }]) {
      const event = await told(connect(to));
      assert.equal(event.number, DatEventNumber.NON_PEER_REJECTED);
      assert.equal(event.rejectReason, 8);
    }
  });

  it('are shown in hexadecimal, and named in what is thrown', () => {
    const psp = server.createPsp({ serviceId: SERVICE_ID });
    assert.match(inspect(psp), /serviceId: 0x123456789abcdef/);
    assert.throws(() => server.createPsp({ serviceId: SERVICE_ID }), {
      code: 'DAT_CONN_QUAL_IN_USE',
      message: /service id 0x123456789abcdef has a listener already/,
      value: SERVICE_ID,
    });
    assert.throws(() => server.createPsp({ serviceId: serviceIdOf(PortSpace.TCP, 7) }), {
      code: 'DAT_INVALID_PARAMETER',
      message: /serviceId .*none of a port of rdma_cm, which is `connQual`/,
    });
    assert.equal(server.createPsp({ connQual: 9 }).serviceId, 0x0106_0009n);
  });
});
