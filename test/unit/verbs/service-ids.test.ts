// Service ids of no port over librdmacm, which offers its port spaces only: what DAT's calls say.

import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { CM_LIBRARY, loadCmFake } from '../../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../../fake-verbs/control.js';

const ADDRESS = '198.51.100.1';
const SERVICE_ID = 0x1_1d2fn;
const NOT_SUPPORTED = {
  code: 'DAT_MODEL_NOT_SUPPORTED',
  message: /service id 0x11d2f: librdmacm takes port 1 to 65535 of a port space/,
};

describe('verbs: service ids of no port', () => {
  let ia: Ia;
  before(async () => {
    const [fake, cm] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    cm.addAddress(ADDRESS, 'fake0');
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    ia = await openIa(verbs({ device: 'fake0', libraries }));
  });
  after(() => ia.close());

  it('are not listened on: a public service point, and a reserved one', () => {
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    assert.throws(() => ia.createPsp({ serviceId: SERVICE_ID }), NOT_SUPPORTED);
    assert.throws(() => ia.createRsp({ serviceId: SERVICE_ID, ep }), NOT_SUPPORTED);
    assert.equal(ep.state, 'UNCONNECTED');
  });

  it('are not connected to, with as much private data as they have elsewhere', () => {
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    const privateData = new Uint8Array(92);
    const to = { address: ADDRESS, serviceId: SERVICE_ID, privateData };
    assert.throws(() => ep.connect(to), NOT_SUPPORTED);
    assert.equal(ep.state, 'UNCONNECTED');
  });
});
