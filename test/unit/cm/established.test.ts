/** A passive side between REP and RTU: what it may do, and what ends the waiting. */
import assert from 'node:assert/strict';
import { AsyncEventType } from '../../../core/spi/index.js';
import { AcceptingScene } from '../../support/accepting-scene.js';

/** More than the wait for RTU, less than two of them. */
const REP_WAIT_US = 600_000;

describe('REP', () => {
  it('repeats REP until it is established, however that comes, and not after', async () => {
    for (const how of ['RTU', 'COMM_EST', 'poll'] as const) {
      const scene = await AcceptingScene.open();
      scene.passTime(REP_WAIT_US);
      assert.deepEqual(scene.messages, ['REP', 'REP']);
      scene.data();
      if (how === 'RTU') scene.message('RTU');
      else if (how === 'COMM_EST') scene.event(AsyncEventType.COMM_EST);
      else scene.poll();
      scene.pump();
      for (let i = 0; i < 20; i++) scene.passTime(REP_WAIT_US);
      assert.deepEqual(scene.messages, ['REP', 'REP'], how);
      assert.equal(scene.fake.world.timersRunning, 0);
      scene.poll();
      assert.equal(scene.taken.filter((text) => text === 'ESTABLISHED').length, 1);
    }
  });
});

describe('Data that nobody has taken yet when the handshake fails (June 2006)', () => {
  const ends: Readonly<Record<string, (scene: AcceptingScene) => void>> = {
    'a REJ': (scene) => scene.message('REJ'),
    'the last repetition of REP': (scene) => {
      for (let i = 0; i < 40; i++) scene.passTime(REP_WAIT_US);
    },
  };

  for (const [what, end] of Object.entries(ends)) {
    for (const apart of [false, true]) {
      const where = apart ? 'on two EVDs' : 'on one EVD';
      it(`was a connection that ${what} has broken, ${where}`, async () => {
        const scene = await AcceptingScene.open({ apart });
        scene.data();
        end(scene);
        scene.pump();
        assert.equal(scene.ep.state, 'DISCONNECTED');
        scene.poll();
        assert.deepEqual([...scene.taken].sort(), [
          'BROKEN',
          'ESTABLISHED',
          'dto 100 SUCCESS',
          'dto 101 FLUSHED',
          'dto 102 FLUSHED',
        ]);
        const place = (text: string): number => scene.taken.indexOf(text);
        assert.ok(place('ESTABLISHED') < place('dto 100 SUCCESS'));
        assert.ok(place('ESTABLISHED') < place('BROKEN'));
      });
    }
  }

  it('was none, when the handshake fails before any has come', async () => {
    const scene = await AcceptingScene.open();
    scene.message('REJ');
    scene.pump();
    scene.poll();
    assert.ok(scene.taken.includes('ACCEPT_COMPLETION_ERROR'));
    assert.ok(!scene.taken.includes('ESTABLISHED'));
  });
});

describe('Sends before ESTABLISHED (June 2006)', () => {
  const SENDS = 4;
  const attributes = { maxRequestDtos: SENDS, maxRecvDtos: 16 };

  it('never overflow the queue of a ULP whose credits bound them (iSER, SDP)', async () => {
    // The peer may have as many messages under way as it has credits, each of which is answered
    // once: the answers are bounded by the credits, whenever the connection is established.
    for (const established of ['late RTU', 'COMM_EST', 'poll'] as const) {
      const scene = await AcceptingScene.open({ attributes });
      for (let credit = 0; credit < 3; credit++) {
        scene.data();
        if (established === 'COMM_EST') scene.event(AsyncEventType.COMM_EST);
        scene.poll();
        scene.post(credit);
        if (established !== 'late RTU') scene.pump();
      }
      if (established === 'late RTU') scene.message('RTU');
      scene.pump();
      assert.deepEqual(scene.refusals, [], established);
      assert.deepEqual(scene.shown, [0, 1, 2], established);
    }
  });

  it('tell a ULP that ignores its bound on the post, and lose nothing', async () => {
    const scene = await AcceptingScene.open({ attributes });
    for (let cookie = 0; cookie < SENDS + 2; cookie++) scene.post(cookie);
    assert.deepEqual(scene.refusals, ['4 DAT_RESOURCE_CREDITS', '5 DAT_RESOURCE_CREDITS']);
    assert.deepEqual(scene.shown, []);
    scene.message('RTU');
    scene.pump();
    assert.deepEqual(scene.shown, [0, 1, 2, 3]);
    for (let i = 0; i < SENDS; i++) scene.qp.completeSend();
    scene.post(6);
    scene.poll();
    assert.deepEqual(scene.taken, [
      'ESTABLISHED',
      ...[0, 1, 2, 3].map((cookie) => `dto ${cookie} SUCCESS`),
    ]);
    assert.deepEqual(scene.shown, [6]);
  });

  it('come back flushed when the connection does not come about', async () => {
    const scene = await AcceptingScene.open({ attributes });
    for (const cookie of [1, 2]) scene.post(cookie);
    for (let i = 0; i < 40; i++) scene.passTime(REP_WAIT_US);
    scene.pump();
    scene.poll();
    assert.deepEqual([...scene.taken].sort(), [
      'ACCEPT_COMPLETION_ERROR',
      'dto 1 FLUSHED',
      'dto 100 FLUSHED',
      'dto 101 FLUSHED',
      'dto 102 FLUSHED',
      'dto 2 FLUSHED',
    ]);
    assert.equal(scene.messages.at(-1), 'REJ');
  });
});
