// How an iSER target takes events: one upcall, then its own context until nothing waits.
import assert from 'node:assert/strict';

import {
  type DatEvent,
  type Evd,
  EvdFlags,
  type Ia,
  openIa,
} from '../../../../../../core/index.js';
import { Fabric, mock } from '../../../../../../providers/mock/index.js';
import { EventDrain } from '../../../../../../samples/ulp/iser/mover/target-side/event-drain.js';

describe('iSER target: events', () => {
  let ia: Ia;
  let evd: Evd;
  let later: (() => void)[];
  let taken: unknown[];
  let drain: EventDrain;

  beforeEach(async () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
    evd = ia.createEvd({ qlen: 256, streams: EvdFlags.SOFTWARE });
    later = [];
    taken = [];
    drain = new EventDrain(evd, take, (run) => later.push(run));
  });
  afterEach(() => ia.close());

  const take = (event: DatEvent): void => {
    taken.push(event.type === 'software' ? event.payload : event.type);
  };
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const runLater = (): void => {
    for (const run of later.splice(0)) run();
  };

  it('takes what came before it began', () => {
    evd.postSe(1);
    evd.postSe(2);
    drain.start();
    assert.deepEqual(taken, []);
    runLater();
    assert.deepEqual(taken, [1, 2]);
  });

  it('has one upcall for what comes together, and drains outside of it', async () => {
    drain.start();
    runLater();
    for (let event = 1; event <= 5; event++) evd.postSe(event);
    await turn();
    assert.deepEqual(taken, [1], 'the upcall brings one');
    assert.equal(evd.query().pending, 4, 'the others wait in the dispatcher');
    runLater();
    assert.deepEqual(taken, [1, 2, 3, 4, 5]);
    evd.postSe(6);
    await turn();
    assert.deepEqual(taken, [1, 2, 3, 4, 5, 6], 'upcalls are on again');
  });

  it('loses nothing that comes between the last look and the enabling', () => {
    evd.postSe(1);
    // The dispatcher is empty when it is looked at, and is not when upcalls are enabled.
    let looks = 0;
    const dequeueInto = evd.dequeueInto.bind(evd);
    evd.dequeueInto = (batch, max) => {
      const count = dequeueInto(batch, max);
      if (count === 0 && looks++ === 0) evd.postSe(2);
      return count;
    };
    drain.start();
    runLater();
    assert.deepEqual(taken, [1, 2]);
    assert.equal(later.length, 0);
  });

  it('lets others have their turn', () => {
    for (let event = 0; event < 100; event++) evd.postSe(event);
    drain.start();
    runLater();
    assert.equal(taken.length, 64);
    runLater();
    assert.equal(taken.length, 100);
  });

  it('takes nothing once it is torn down', async () => {
    drain.start();
    runLater();
    evd.postSe(1);
    await turn();
    evd.postSe(2);
    await drain.tearDown();
    runLater();
    evd.postSe(3);
    await turn();
    assert.deepEqual(taken, [1]);
    assert.equal(evd.query().pending, 2);
  });
});
