/**
 * Communication established (openib-general, June 2006): the passive side is established by RTU, by
 * the communication-established event, or by the first receive completion, whichever is first. The
 * endpoint and the CM module are real; the order of everything around them is searched.
 */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState } from '../../../core/spi/index.js';
import { AcceptingScene, type SceneOptions } from '../../support/accepting-scene.js';

/** What happens at most once on a path; `pump` is the driver's and may come between any two. */
type Step =
  | 'RTU'
  | 'data'
  | 'data2'
  | 'write'
  | 'COMM_EST'
  | 'poll'
  | 'post'
  | 'post2'
  | 'migrated'
  | 'drained'
  | 'REP timer'
  | 'disconnect'
  | 'DREQ'
  | 'REJ'
  | 'exhausted'
  | 'pump'
  | 'pump2';

/** A step that needs one of others before it. */
const AFTER: Partial<Record<Step, readonly Step[]>> = {
  COMM_EST: ['data', 'write'],
  data2: ['data'],
  post2: ['post'],
  drained: ['migrated'],
  pump2: ['pump'],
};

const ENDS: readonly Step[] = ['disconnect', 'DREQ', 'REJ', 'exhausted'];
/** More than the wait for RTU, less than two of them. */
const REP_WAIT_US = 600_000;
/** REP is sent no more than so often, at intervals of no more than 1.1 s. */
const REPS = 20;

/** Which step has ended the connection, if any: the end of a handshake may come too late. */
function endOf(path: readonly Step[]): number {
  return path.findIndex((step, i) => {
    if (step !== 'exhausted') return ENDS.includes(step);
    return !provedBefore(path, i);
  });
}

/** What the CM takes for the peer's side being established, before a step. */
function provedBefore(path: readonly Step[], step: number): boolean {
  const before = path.slice(0, step);
  const seen = before.includes('data') && before.lastIndexOf('poll') > before.indexOf('data');
  return before.includes('RTU') || before.includes('COMM_EST') || seen;
}

function run(scene: AcceptingScene, step: Step): void {
  if (step === 'RTU' || step === 'DREQ' || step === 'REJ') scene.message(step);
  else if (step === 'data' || step === 'data2') scene.data();
  else if (step === 'write')
    return; // It completes nothing: COMM_EST alone tells of it.
  else if (step === 'COMM_EST') scene.event(AsyncEventType.COMM_EST);
  else if (step === 'migrated') scene.event(AsyncEventType.PATH_MIG);
  else if (step === 'drained') scene.event(AsyncEventType.SQ_DRAINED);
  else if (step === 'poll') scene.poll();
  else if (step === 'post') scene.post(1);
  else if (step === 'post2') scene.post(2);
  else if (step === 'REP timer') scene.passTime(REP_WAIT_US);
  else if (step === 'exhausted') for (let i = 0; i < REPS; i++) scene.passTime(2 * REP_WAIT_US);
  else if (step === 'disconnect') scene.disconnect();
  else scene.pump();
}

/** The peer's side was established before the end, which was not the consumer's own. */
function mustHaveBegun(path: readonly Step[]): boolean {
  const ended = endOf(path);
  if (ended < 0 || path.includes('disconnect')) return false;
  return path.slice(0, ended).some((step) => ['RTU', 'COMM_EST', 'data'].includes(step));
}

const count = (list: readonly string[], text: string): number =>
  list.filter((item) => item === text).length;

/** What holds at every moment. */
function assertAlways(scene: AcceptingScene, path: readonly Step[]): void {
  const { taken, qp } = scene;
  const at = path.join(', ');
  assert.ok(count(taken, 'ESTABLISHED') <= 1, `ESTABLISHED twice: ${at}`);
  assert.ok(count(taken, 'DISCONNECTED') <= 1, `DISCONNECTED twice: ${at}`);
  const established = taken.indexOf('ESTABLISHED');
  const received = taken.findIndex(
    (text) => text.endsWith(' SUCCESS') && text.startsWith('dto 10'),
  );
  // A consumer that has ended the connection itself does not hear that it had begun; every other
  // end comes after what had arrived by then.
  if (received >= 0 && !path.includes('disconnect')) {
    assert.ok(established >= 0 && established < received, `a receive came first: ${at}`);
  }
  assert.notEqual(qp.sendDoorbells > 0 && qp.state === QpState.RTR, true, `too early: ${at}`);
  const cookies = scene.shown;
  assert.deepEqual(cookies, [...cookies].sort(), `sends out of order: ${at}`);
}

/** What holds when everything has happened, and the consumer has taken all events. */
function assertAtEnd(scene: AcceptingScene, path: readonly Step[]): void {
  const { taken, ep, refusals } = scene;
  const at = path.join(', ');
  const ended = endOf(path);
  if (ended < 0) {
    assert.equal(count(taken, 'ESTABLISHED'), 1, at);
    assert.equal(ep.state, 'CONNECTED', at);
    assert.equal(scene.qp.state, QpState.RTS, at);
    assert.deepEqual(
      scene.shown,
      path.includes('post2') ? [1, 2] : path.includes('post') ? [1] : [],
      at,
    );
    assert.deepEqual(refusals, [], at);
  } else {
    assert.equal(ep.state, 'DISCONNECTED', at);
    const ends = taken.filter((text) =>
      /^(DISCONNECTED|BROKEN|ACCEPT_COMPLETION_ERROR)$/.test(text),
    );
    assert.equal(ends.length, 1, `${at}: ${taken.join(', ')}`);
    if (mustHaveBegun(path)) {
      assert.equal(count(taken, 'ESTABLISHED'), 1, `${at}: ${taken.join(', ')}`);
      assert.ok(!taken.includes('ACCEPT_COMPLETION_ERROR'), `${at}: ${taken.join(', ')}`);
    }
    // What was posted, and not refused, has come back.
    for (const [step, cookie] of [
      ['post', 1],
      ['post2', 2],
    ] as const) {
      if (!path.includes(step) || refusals.some((text) => text.startsWith(`${cookie} `))) continue;
      assert.equal(count(taken, `dto ${cookie} FLUSHED`), 1, `${at}: ${taken.join(', ')}`);
    }
  }
  // Once the connection is over, the CM has stepped aside.
  const forwarded = scene.forwarded.filter(
    (event) => ended < 0 || event !== AsyncEventType.COMM_EST,
  );
  const told = path.filter((step) => step === 'migrated' || step === 'drained');
  const events = told.map((step) =>
    step === 'migrated' ? AsyncEventType.PATH_MIG : AsyncEventType.SQ_DRAINED,
  );
  assert.deepEqual(forwarded, events, at);
}

/** Everything about a scene that decides what can happen next, and what is expected of it. */
function fingerprint(scene: AcceptingScene, path: readonly Step[], left: readonly Step[]): string {
  const { ep, qp, taken, mad, forwarded, fake } = scene;
  const completions = fake.device.completionQueues.map(({ ring }) => ring.length);
  return JSON.stringify([
    left,
    mustHaveBegun(path),
    ep.state,
    qp.state,
    qp.sendDoorbells > 0,
    scene.shown,
    taken,
    forwarded,
    scene.refusals,
    completions,
    mad.sent.map(({ name }) => name),
    fake.world.tasksWaiting,
    fake.world.timersRunning,
  ]);
}

interface Found {
  paths: number;
  states: number;
}

/** Every order of the steps, prefixes that lead to the same once. */
async function search(steps: readonly Step[], options: SceneOptions = {}): Promise<Found> {
  const seen = new Set<string>();
  const found = { paths: 0, states: 0 };
  const replay = async (path: readonly Step[]): Promise<AcceptingScene> => {
    const scene = await AcceptingScene.open(options);
    for (const step of path) run(scene, step);
    return scene;
  };
  /** @returns whether it has been there before */
  const look = async (path: readonly Step[], left: readonly Step[]): Promise<boolean> => {
    const scene = await replay(path);
    assertAlways(scene, path);
    const key = fingerprint(scene, path, left);
    const known = seen.has(key);
    seen.add(key);
    if (!known && left.length === 0) {
      finish(scene, path);
      found.paths++;
    }
    await scene.close();
    return known;
  };
  const visit = async (path: readonly Step[], left: readonly Step[]): Promise<void> => {
    if (await look(path, left)) return;
    for (const step of left) {
      const needs = AFTER[step];
      if (needs !== undefined && !needs.some((other) => path.includes(other))) continue;
      const rest = left.filter((other) => other !== step);
      await visit([...path, step], rest);
    }
  };
  await visit([], steps);
  found.states = seen.size;
  return found;
}

function finish(scene: AcceptingScene, path: readonly Step[]): void {
  const ended = endOf(path) >= 0;
  const established = path.some((step) => ['RTU', 'data', 'COMM_EST'].includes(step));
  scene.pump();
  scene.poll();
  scene.pump();
  // A disconnect of ours waits for the peer's answer; the peer answers.
  if (ended && scene.messages.includes('DREQ')) scene.message('DREP');
  scene.pump();
  scene.poll();
  assertAlways(scene, path);
  if (established || ended) assertAtEnd(scene, path);
}

describe('Communication established, over all interleavings (June 2006)', () => {
  const ALL: readonly Step[] = ['RTU', 'data', 'COMM_EST', 'poll', 'pump'];

  for (const apart of [false, true]) {
    const where = apart ? 'on two EVDs' : 'on one EVD';
    it(`says ESTABLISHED once, before the first receive; late RTU or not, ${where}`, async () => {
      const { states } = await search([...ALL, 'data2', 'REP timer'], { apart });
      assert.ok(states > 200, `only ${states} states`);
    });

    it(`lets data flow when RTU is lost, ${where}`, async () => {
      await search(['data', 'COMM_EST', 'poll', 'pump', 'REP timer', 'post'], { apart });
      await search(['data', 'poll', 'pump', 'REP timer', 'post', 'post2'], { apart });
    });

    it(`sends what was posted before in order, when it is established, ${where}`, async () => {
      await search([...ALL, 'post', 'post2'], { apart });
    });

    it(`lets data flow when a WRITE comes first, and RTU is lost, ${where}`, async () => {
      await search(['write', 'COMM_EST', 'poll', 'pump', 'REP timer', 'post', 'post2'], { apart });
    });

    for (const end of ENDS) {
      it(`ends once by ${end}, whenever it comes, ${where}`, async () => {
        await search([...ALL, 'post', end], { apart });
        await search(['write', 'COMM_EST', 'poll', 'pump', 'post', end], { apart });
      });
    }
  }

  it('passes the queue pair’s other events on to core’s handler, in order', async () => {
    await search(['RTU', 'data', 'COMM_EST', 'poll', 'migrated', 'drained', 'pump']);
  });
});
