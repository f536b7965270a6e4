/** An event dispatcher whose completion queue cannot grow by what an object on it needs. */
import assert from 'node:assert/strict';
import { DatError, type Evd, EvdFlags, type Ia, openIa, type Pz } from '../../../core/index.js';
import { SpiError } from '../../../core/spi/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

interface Freeable {
  free(): unknown;
}

/** What keeps completions of its own in the queue of `evd`. */
const OBJECTS: Readonly<
  Record<string, (ia: Ia, pz: Pz, evd: Evd) => Freeable | Promise<Freeable>>
> = {
  'an endpoint': (ia, pz, evd) =>
    ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd }),
  'an endpoint for datagrams': (ia, pz, evd) =>
    ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd }),
  'a shared receive queue of XRC': async (ia, pz, evd) =>
    (await ia.openXrcDomain()).createSrq({ pz, maxRecvDtos: 4, maxRecvIov: 1, recvEvd: evd }),
};

describe('an EVD without room for the completions of an object’s own', () => {
  for (const [what, make] of Object.entries(OBJECTS)) {
    it(`is not held by ${what} that could not be made`, async () => {
      const fabric = new Fabric({ seed: 1, autoRun: false });
      const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
      const evd = ia.createEvd({ qlen: 16, streams: EvdFlags.DEFAULT });
      const { cq } = evd.feed;
      const resize = cq.resize.bind(cq);
      cq.resize = () => {
        throw new SpiError('ENOMEM', 'the queue cannot grow');
      };
      const pz = ia.createPz();
      await assert.rejects(
        async () => make(ia, pz, evd),
        (error) => {
          assert.ok(DatError.isDatError(error), String(error));
          assert.equal(error.code, 'DAT_INSUFFICIENT_RESOURCES');
          return true;
        },
      );
      assert.deepEqual([evd.query().users, pz.query().users], [0, 0]);
      cq.resize = resize;
      await (await make(ia, pz, evd)).free();
      await evd.free();
      await ia.close();
    });
  }
});
