// How long private data arrives: what is sent, and zeros up to the field of its message, as
// docs/glossary.md has it by message.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionEvent, DatError, type Ia, openIa } from '../../../core/index.js';
import { CmPrivateData } from '../../../core/spi/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

const SERVER = '192.0.2.2';
const SENT = Uint8Array.of(7, 8, 9);

function arrives(data: Uint8Array, bytes: number): void {
  assert.equal(data.length, bytes);
  assert.deepEqual([...data.subarray(0, SENT.length)], [...SENT]);
  assert.ok(data.subarray(SENT.length).every((byte) => byte === 0));
}

describe('private data', () => {
  let client: Ia;
  let server: Ia;
  beforeEach(async () => {
    const fabric = new Fabric({ seed: 9, autoRun: true });
    client = await openIa(mock({ fabric, address: '192.0.2.1' }));
    server = await openIa(mock({ fabric, address: SERVER }));
  });
  afterEach(() => Promise.all([client.close(), server.close()]));

  for (const [answer, bytes] of [
    ['accept', CmPrivateData.REP],
    ['reject', CmPrivateData.REJ],
  ] as const) {
    it(`of a request, and of the answer: ${answer}`, async () => {
      const pz = server.createPz();
      server.createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => {
        arrives(cr.privateData, CmPrivateData.REQ);
        arrives(cr.query().privateData, CmPrivateData.REQ);
        if (answer === 'reject') cr.reject({ privateData: SENT });
        else cr.accept(server.createEndpoint({ pz }), { privateData: SENT });
      });
      const ep = client.createEndpoint({ pz: client.createPz() });
      ep.connect({ address: SERVER, connQual: 7, privateData: SENT });
      const told = await new Promise<ConnectionEvent>((resolve) =>
        ep.connection$.subscribe(resolve),
      );
      arrives(told.privateData, bytes);
    });
  }

  it('of an inquiry, and of the answer', async () => {
    const ep = server.createUdEndpoint({ pz: server.createPz() });
    let accept = true;
    ep.serve({
      connQual: 8,
      answer: ({ privateData }) => {
        arrives(privateData, CmPrivateData.SIDR_REQ);
        return { accept, privateData: SENT };
      },
    });
    const from = client.createUdEndpoint({ pz: client.createPz() });
    const question = { address: SERVER, connQual: 8, privateData: SENT };
    arrives((await from.resolve(question)).privateData, CmPrivateData.SIDR_REP);
    accept = false;
    await assert.rejects(from.resolve(question), (error) => {
      assert.ok(DatError.isDatError(error));
      const { privateData } = error.value as { readonly privateData: Uint8Array };
      arrives(privateData, CmPrivateData.SIDR_REP);
      return true;
    });
  });

  it('has its lengths in the docs', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/glossary.md'), 'utf8');
    const [, section = ''] = page.split('## Private data');
    const bytes = [...section.matchAll(/\| (\d+) \|$/gm)].map(([, text]) => Number(text));
    const { REQ, REP, REJ, SIDR_REQ, SIDR_REP } = CmPrivateData;
    assert.deepEqual(bytes, [REQ, REP, REJ, SIDR_REQ, SIDR_REP]);
  });
});
