/** A message finds no receive: the server answers "not ready", and the client tries again. */
import type { Scenario } from '../run/scenario.js';
import { textIn, wordOf } from '../run/stage.js';

const POSTED_AFTER_US = 25_000;

export const rnr: Scenario = {
  name: 'rnr',
  title: 'Receiver not ready',
  text: [
    'The client sends, but the server has posted no receive. The server answers with an ' +
      'RNR NAK, which says how long to wait.',
    'The client waits that long and sends the same packet again, with the same sequence number.',
    'When the application posts its receive at last, the server says so with an ACK that ' +
      'grants a credit. The client sends again at once.',
  ],
  async play(stage) {
    const { client, server } = await stage.connected();
    const startUs = stage.fabric.clock.now();
    client.ep.postSend(textIn(client, 'are you ready?'), 1);
    await stage.pause(POSTED_AFTER_US);
    stage.note('server', 'the application posts its receive');
    stage.claim('nothing has completed before', client.evd.query().pending === 0);
    server.ep.postRecv(server.memory.segment(0, 64), 2);
    const statuses = [wordOf(await server.next()), wordOf(await client.next())];
    stage.claim(
      'both ends have completed',
      statuses.every((word) => word === 'SUCCESS'),
    );
    const tookUs = stage.fabric.clock.now() - startUs;
    stage.claim('it took longer than the receive was late', tookUs > POSTED_AFTER_US);
  },
};
