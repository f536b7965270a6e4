/** Upcalls that overlap, and the end of them. */
import type { Scenario } from '../run/scenario.js';

const MESSAGES = 9;
const LIMIT = 3;
const HANDLER_US = 60;

export const manyTeardown: Scenario = {
  name: 'many-teardown',
  title: 'MANY and TEARDOWN',
  text: [
    'Under the policy MANY upcalls may overlap, here three at a time. They start in the ' +
      'order of the events.',
    'Then the application sets TEARDOWN: no upcall starts any more, and the promise of ' +
      'that call resolves when those in progress have ended.',
    'The messages that come later wait in the queue. None is lost: the application dequeues them.',
  ],
  discussion: {
    title: 'Upcall policies, August 2005: 2.2 and 2.14',
    anchor: '22-how-can-many-work-if-the-function-must-not-be-entered-twice',
  },
  async play(stage) {
    const { client, server } = await stage.connected();
    for (let i = 0; i < MESSAGES; i++) server.ep.postRecv(server.memory.segment(i * 64, 64), i);
    const started: number[] = [];
    let inProgress = 0;
    let most = 0;
    server.evd.modifyUpcall(
      'MANY',
      async (event) => {
        const cookie = event.type === 'dto' ? event.cookie : -1;
        started.push(cookie);
        most = Math.max(most, ++inProgress);
        stage.note('server', `upcall of message ${cookie} begins`, 'upcall');
        await stage.pause(HANDLER_US);
        stage.note('server', `upcall of message ${cookie} ends`, 'upcall');
        inProgress--;
      },
      { limit: LIMIT },
    );
    for (let i = 0; i < MESSAGES; i++) client.ep.postSend(client.memory.segment(0, 8), i);
    while (started.length < LIMIT + 1) await stage.pause(5);
    stage.note('server', 'sets TEARDOWN');
    await server.evd.modifyUpcall('TEARDOWN');
    stage.claim(`at most ${LIMIT} upcalls overlapped`, most === LIMIT);
    stage.claim('none is in progress after TEARDOWN', inProgress === 0);
    const before = started.length;
    await stage.pause(4000);
    stage.claim('and none starts any more', started.length === before);
    const left: number[] = [];
    for (let event = server.evd.dequeue(); event; event = server.evd.dequeue()) {
      if (event.type === 'dto') left.push(event.cookie);
    }
    const all = [...started, ...left];
    stage.claim(
      'no message is lost',
      all.length === MESSAGES && all.every((each, i) => each === i),
    );
  },
};
