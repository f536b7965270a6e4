import assert from 'node:assert/strict';
import {
  type AsyncErrorEvent,
  type DatEvent,
  type Evd,
  EvdFlags,
  type Ia,
  openIa,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { unhandledErrors } from '../../support/unhandled-errors.js';

const OWN = EvdFlags.SOFTWARE;

/** Code of the consumer's that the library calls and that fails with this error. */
const FAILURES: Readonly<Record<string, (ia: Ia, error: Error) => Evd>> = {
  'an upcall handler that throws': (ia, error) =>
    ia.createEvd({
      qlen: 4,
      streams: OWN,
      policy: 'ONE',
      handler: () => {
        throw error;
      },
    }),
  'an upcall handler that rejects': (ia, error) =>
    ia.createEvd({ qlen: 4, streams: OWN, policy: 'MANY', handler: () => Promise.reject(error) }),
  'a handler under NOTIFY that throws': (ia, error) =>
    ia.createEvd({
      qlen: 4,
      streams: OWN,
      policy: 'NOTIFY',
      handler: () => {
        throw error;
      },
    }),
  'the agent of a CNO': (ia, error) => {
    const agent = (): void => {
      throw error;
    };
    return ia.createEvd({ qlen: 4, streams: OWN, cno: ia.createCno({ agent }) });
  },
};

/** Ways to hear of asynchronous errors; what they have heard is in the list. */
const LISTENERS: Readonly<Record<string, (ia: Ia, heard: unknown[]) => void>> = {
  async$: (ia, heard) => void ia.async$.subscribe((event) => heard.push(causeOf(event))),
  'an upcall': (ia, heard) =>
    ia.asyncEvd.modifyUpcall('ONE', (event) => void heard.push(causeOf(event))),
  'a waiter': (ia, heard) =>
    void ia.asyncEvd.wait().then(({ event }) => heard.push(causeOf(event))),
  'an iteration': (ia, heard) => {
    const iteration = ia.asyncEvd[Symbol.asyncIterator]();
    void iteration.next().then(({ value }) => heard.push(...(value ?? []).map(causeOf)));
  },
  'a CNO': (ia, heard) => {
    ia.asyncEvd.modifyCno(ia.createCno({ agent: () => void heard.push(...causes(ia)) }));
  },
  'a poller': (ia, heard) => {
    assert.equal(ia.asyncEvd.dequeue(), undefined);
    const poll = (): void => void heard.push(...causes(ia));
    setImmediate(() => setImmediate(poll));
  },
};

function causeOf(event: DatEvent): unknown {
  return (event as AsyncErrorEvent).cause;
}

function causes(ia: Ia): unknown[] {
  const found: unknown[] = [];
  for (let event = ia.asyncEvd.dequeue(); event; event = ia.asyncEvd.dequeue()) {
    found.push(causeOf(event));
  }
  return found;
}

async function withIa(scene: (ia: Ia) => void | Promise<void>): Promise<unknown[]> {
  const fabric = new Fabric({ seed: 5, autoRun: true });
  const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
  const errors = await unhandledErrors(() => scene(ia));
  await ia.close();
  return errors;
}

describe('code of the consumer that fails', () => {
  for (const [what, failing] of Object.entries(FAILURES)) {
    it(`${what}: an unhandled error while nothing listens`, async () => {
      const error = new Error(what);
      const errors = await withIa((ia) => {
        failing(ia, error).postSe(1);
      });
      assert.deepEqual(errors, [error]);
      assert.equal(errors[0], error);
    });

    for (const [who, listen] of Object.entries(LISTENERS)) {
      it(`${what}: ${who} hears of it, and nothing else`, async () => {
        const error = new Error(what);
        const heard: unknown[] = [];
        const errors = await withIa((ia) => {
          listen(ia, heard);
          failing(ia, error).postSe(1);
        });
        assert.deepEqual([heard, errors], [[error], []]);
      });
    }
  }

  it('a listener that has gone hears nothing: an unhandled error again', async () => {
    const error = new Error('late');
    const errors = await withIa((ia) => {
      const listener = ia.async$.subscribe();
      listener.unsubscribe();
      FAILURES['an upcall handler that throws']?.(ia, error).postSe(1);
    });
    assert.deepEqual(errors, [error]);
  });

  it('the handler that should hear of it fails too: unhandled, once', async () => {
    const error = new Error('the listener itself');
    const errors = await withIa((ia) => {
      ia.asyncEvd.modifyUpcall('ONE', () => {
        throw error;
      });
      FAILURES['an upcall handler that throws']?.(ia, new Error('first')).postSe(1);
    });
    assert.deepEqual(errors, [error]);
  });
});
