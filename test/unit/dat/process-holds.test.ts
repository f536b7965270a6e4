// What keeps the process alive, and is told not to: `ref` and `unref` as node:net has them.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { ProcessHold } from '../../../core/spi/index.js';
import { changeHold, HOLD, hasRef } from '../../../core/spi/time/hold.js';
import { type Ia, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { loopback } from '../../support/loopback.js';

const run = promisify(execFile);

describe('a hold', () => {
  it('keeps the process while it is engaged, unless told not to: every order', () => {
    let kept = 0;
    const processHold: ProcessHold = { retain: () => void kept++, release: () => void kept-- };
    const changes = [HOLD.ENGAGED, HOLD.UNREF].flatMap((bit) => [
      { bit, on: true },
      { bit, on: false },
    ]);
    const visit = (depth: number, hold: number): void => {
      assert.equal(kept, hold === HOLD.ENGAGED ? 1 : 0);
      if (depth === 0) return;
      for (const { bit, on } of changes) {
        const next = changeHold(processHold, hold, bit, on);
        assert.equal((next & bit) !== 0, on);
        assert.equal(hasRef(next), (next & HOLD.UNREF) === 0);
        visit(depth - 1, next);
        kept = hold === HOLD.ENGAGED ? 1 : 0;
      }
    };
    visit(4, 0);
  });
});

interface Held {
  ref(): unknown;
  unref(): unknown;
  hasRef?(): boolean;
}

/** What keeps a process alive, each made on an adapter of its own. */
const HOLDERS: Readonly<Record<string, (ia: Ia) => Held | Promise<Held>>> = {
  'a public service point': (ia) => ia.createPsp({ connQual: 7 }),
  'its requests$': (ia) => {
    const psp = ia.createPspAny();
    psp.requests$.subscribe();
    return psp;
  },
  'a reserved service point': (ia) =>
    ia.createRsp({ connQual: 8, ep: ia.createEndpoint({ pz: ia.createPz() }) }),
  'a common service point': (ia) => ia.createCsp({ address: '0.0.0.0:9' }),
  'a datagram service': (ia) => ia.createUdEndpoint({ pz: ia.createPz() }).serve({ connQual: 10 }),
  'completions$ of a datagram endpoint': (ia) => {
    const ep = ia.createUdEndpoint({ pz: ia.createPz() });
    ep.completions$.subscribe();
    return ep;
  },
  'streams of an endpoint': (ia) => {
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    ep.completions$.subscribe();
    ep.connection$.subscribe();
    return ep;
  },
  'an endpoint that connects': (ia) => {
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    ep.connect({ address: '192.0.2.9', connQual: 11 });
    return ep;
  },
  'a subscription to an event dispatcher': (ia) => {
    const evd = ia.createEvd({ qlen: 4 });
    evd.events$.subscribe();
    return evd;
  },
  'a notification object that is waited for': (ia) => {
    const cno = ia.createCno();
    cno.wait().catch(() => undefined);
    cno.notifications$.subscribe();
    return cno;
  },
  'completions$ of an XRC queue': async (ia) => {
    const domain = await ia.openXrcDomain();
    const srq = domain.createSrq({ pz: ia.createPz(), maxRecvDtos: 4 });
    srq.completions$.subscribe();
    return srq;
  },
  'an agent that answers': (ia) =>
    ia.mad.registerAgent({ managementClass: 0x30, oui: 0x0d0a0b, methods: [1] }),
};

describe('the process', () => {
  for (const [name, make] of Object.entries(HOLDERS)) {
    it(`is kept alive by ${name}, unless it is unref'd`, async () => {
      const fabric = new Fabric({ autoRun: true });
      const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
      const { processHold } = ia.core.context;
      let kept = 0;
      const counter = Object.getPrototypeOf(processHold) as ProcessHold;
      Object.assign(processHold, {
        retain: () => {
          kept++;
          counter.retain.call(processHold);
        },
        release: () => {
          kept--;
          counter.release.call(processHold);
        },
      });
      const holder = await make(ia);
      const held = kept;
      assert.ok(held > 0);
      for (const again of [1, 2]) {
        assert.equal(holder.unref(), holder);
        assert.deepEqual([again, kept, holder.hasRef?.() ?? false], [again, 0, false]);
      }
      for (const again of [1, 2]) {
        assert.equal(holder.ref(), holder);
        assert.deepEqual([again, kept, holder.hasRef?.() ?? true], [again, held, true]);
      }
      holder.unref();
      await ia.close();
      assert.equal(kept, 0);
      holder.ref();
      assert.equal(kept, 0, 'what has ended keeps nothing');
    });
  }

  it('ends by itself with listeners that are unref’d, and not before without', async () => {
    const program = (unref: string): string => `
      import { openIa } from 'dapl';
      import { softroce } from 'dapl/providers/softroce';
      const ia = await openIa(softroce({ addresses: ['${loopback(76, 1)}'] }));
      const psp = ia.createPsp({ connQual: 7 });
      psp.requests$.subscribe();
      const ep = ia.createUdEndpoint({ pz: ia.createPz() });
      const service = ep.serve({ connQual: 8 });
      for (const each of [psp, service]) each${unref};
      setTimeout(() => { console.log('kept'); process.exit(); }, 300).unref();
      process.on('exit', () => console.log('end'));`;
    const output = async (unref: string): Promise<string> => {
      const args = ['--input-type=module', '-e', program(unref)];
      return (await run(process.execPath, args, { timeout: 20_000 })).stdout;
    };
    assert.equal(await output('.unref()'), 'end\n');
    assert.equal(await output('.unref().ref()'), 'kept\nend\n');
  });
});
