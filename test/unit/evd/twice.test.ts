/** What is ended twice, ends once; what is changed, is changed down to the device. */
import assert from 'node:assert/strict';
import { Evd } from '../../../core/evd/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { settle } from './fake-host.js';
import { dat, setUp, watchErrors } from './set-up.js';

describe('evd: an end that is called twice', () => {
  it('of a use counts once: the other user’s stays', async () => {
    const { evd } = setUp();
    const ends = [evd.feed.attach(), evd.feed.attach()];
    ends[0]?.();
    ends[0]?.();
    assert.equal(evd.query().users, 1);
    await assert.rejects(evd.free(), dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE'));
    ends[1]?.();
    await evd.free();
  });

  it('of a hold leaves the other hold: completions still come in by themselves', () => {
    const { host, evd } = setUp();
    const endpoint = host.endpoint();
    const ends = [evd.feed.hold(), evd.feed.hold()];
    ends[0]?.();
    ends[0]?.();
    for (const cookie of [1, 2]) {
      host.cq.add({ context: endpoint.context, cookie });
      host.run();
    }
    assert.deepEqual(endpoint.seen, [1, 2]);
    ends[1]?.();
    for (const cookie of [3, 4]) {
      host.cq.add({ context: endpoint.context, cookie });
      host.run();
    }
    assert.deepEqual(endpoint.seen, [1, 2], 'nothing wants them any more');
  });

  it('of a watch for errors leaves nothing armed, nor does the end of a subscriber', () => {
    const { host, evd: source } = setUp();
    const connect = new Evd(host, { id: 2, qlen: 4 });
    const end = watchErrors(connect, source);
    const endpoint = host.endpoint();
    const fail = (cookie: number): void => {
      host.cq.add({ context: endpoint.context, cookie, status: WcStatus.LOC_PROT_ERR });
      host.run();
    };
    const subscription = connect.events$.subscribe();
    fail(1);
    assert.deepEqual(endpoint.seen, [1], 'while events of the other EVD are taken');
    subscription.unsubscribe();
    fail(2);
    fail(3);
    assert.deepEqual(endpoint.seen, [1], 'not when nothing takes them');
    connect.events$.subscribe();
    fail(4);
    assert.deepEqual(endpoint.seen, [1, 2, 3, 4]);
    end();
    end();
    fail(5);
    fail(6);
    assert.deepEqual(endpoint.seen, [1, 2, 3, 4]);
  });

  it('of the EVD itself, from within an upcall, destroys its completion queue once', async () => {
    const { host, evd } = setUp();
    let destroyed = 0;
    host.cq.destroy = () => void destroyed++;
    const frees: Promise<void>[] = [];
    evd.modifyUpcall('ONE', async (_event, upcall) => {
      frees.push(upcall.free());
      await settle();
      frees.push(upcall.free());
      await Promise.all(frees);
    });
    evd.postSe(1);
    host.run();
    await settle();
    await settle();
    await Promise.all(frees);
    assert.equal(destroyed, 1);
    assert.equal(host.freed.length, 1);
    await assert.rejects(evd.free(), dat('DAT_INVALID_HANDLE'));
  });
});

describe('evd: another length', () => {
  it('is the completion queue’s, too', () => {
    const { host, evd } = setUp({ qlen: 8 });
    evd.resize(64);
    assert.ok(host.cq.ring.entries >= 64, `${host.cq.ring.entries} entries`);
    const endpoint = host.endpoint();
    const cookies = Array.from({ length: 64 }, (_, i) => i);
    for (const cookie of cookies) host.cq.add({ context: endpoint.context, cookie });
    assert.equal(evd.query().pending, 64);
    assert.deepEqual(endpoint.seen, cookies);
  });
});
