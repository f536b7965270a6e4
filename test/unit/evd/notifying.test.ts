import assert from 'node:assert/strict';
import { WcFlags, WcStatus } from '../../../core/spi/index.js';
import { scene, watch } from './cno-scene.js';
import { label } from './fake-host.js';
import { dat, drain } from './set-up.js';

describe('evd: which completions notify', () => {
  it('UNSIGNALLED ones are queued without waking anybody; the next other one wakes', async () => {
    const { host, cno, dto, ep } = scene();
    dto.feed.attach('NOTIFY');
    for (const cookie of [1, 2, 4]) ep.silent.add(cookie);
    const complete = (cookie: number, status: number = WcStatus.SUCCESS): void => {
      host.cq.add({ context: ep.context, cookie, status });
      host.run();
    };
    complete(1);
    assert.equal(cno.query().state, 'UNTRIGGERED');
    dto.modifyCno(null);
    assert.deepEqual(drain(dto), [1]);
    const waiting = watch(dto.wait());
    complete(2);
    assert.equal(await waiting.now(), 'pending');
    complete(3);
    assert.notEqual(await waiting.now(), 'pending');
    assert.deepEqual(drain(dto), [3], 'the waiter has the oldest');
    const got: unknown[] = [];
    dto.modifyUpcall('ONE', (event) => {
      got.push(label(event));
    });
    complete(4);
    assert.deepEqual(got, []);
    ep.silent.add(5);
    complete(5, WcStatus.LOC_PROT_ERR);
    assert.deepEqual(got, [4, 5], 'errors always notify');
    ep.silent.add(6);
    complete(6);
    assert.deepEqual(got, [4, 5]);
  });

  for (const reportsSolicited of [true, false]) {
    const who = reportsSolicited ? 'the flag says' : 'the device notifies';
    it(`SOLICITED: only what ${who} wakes, others are taken along`, () => {
      const { host, dto, ep } = scene({ reportsSolicited });
      if (reportsSolicited) assert.equal(host.cq.armed, 'next', 'and cannot be taken back');
      else dto.modifyCno(null);
      dto.feed.attach('SOLICITED');
      dto.modifyCno(null);
      if (!reportsSolicited) {
        host.cq.add({ context: ep.context, cookie: 9 });
        host.run();
        assert.deepEqual(drain(dto), [9]);
      }
      const got: unknown[] = [];
      dto.modifyUpcall('ONE', (event) => {
        got.push(label(event));
      });
      const complete = (cookie: number, flags = 0): void => {
        host.cq.add({ context: ep.context, cookie, flags });
      };
      complete(1);
      host.run();
      assert.equal(dto.query().pending, 1);
      host.run();
      assert.deepEqual(got, [], 'looking is no reason to notify');
      complete(2, WcFlags.SOLICITED);
      assert.equal(dto.query().pending, 2);
      host.run();
      assert.deepEqual(got, [1, 2]);
      complete(3);
      assert.equal(dto.query().pending, 1);
      host.run();
      assert.deepEqual(got, [1, 2], 'the former notification is used up');
    });
  }

  it('models do not mix on one EVD, nor with streams of other events', () => {
    const { dto } = scene();
    const mode = (name: string) => dat('DAT_INVALID_STATE', `DAT_INVALID_STATE_EVD_CONFIG_${name}`);
    const end = dto.feed.attach('NOTIFY');
    dto.feed.attach('NOTIFY')();
    assert.throws(() => dto.feed.attach('SOLICITED'), mode('NOTIFY'));
    assert.throws(() => dto.feed.attach(), mode('NOTIFY'));
    end();
    const other = dto.feed.attach();
    assert.throws(() => dto.feed.attach('SOLICITED'), mode('THRESHOLD'));
    dto.feed.attach('THRESHOLD')();
    other();
    dto.feed.attach('SOLICITED')();
  });
});
