/** The RTU is lost; the server repeats its REP, and has a second one. */
import type { Scenario } from '../run/scenario.js';
import { wordOf } from '../run/stage.js';

const RTU = 0x0014;

export const lostRtu: Scenario = {
  name: 'lost-rtu',
  title: 'Lost RTU',
  text: [
    'The third message of a handshake, RTU, is lost on its way to the server.',
    'The client believes that it is connected. The server still waits, and repeats its ' +
      'REP after a while.',
    'The client answers the repetition with another RTU, and then the server is connected, too.',
  ],
  discussion: {
    title: 'Communication established, June 2006: 3.9',
    anchor: '39-what-if-rtu-never-comes',
  },
  async play(stage) {
    const loss = stage.fabric.faults.add({
      match: { mad: { attributeId: RTU } },
      action: { type: 'drop' },
    });
    const pair = { client: await stage.side('client'), server: await stage.side('server') };
    stage.connect(pair);
    const first = wordOf(await pair.client.next());
    stage.claim('the client is established at once', first === 'ESTABLISHED');
    const waiting = pair.server.ep.state;
    stage.claim(`the server is in ${waiting}`, waiting !== 'CONNECTED');
    const second = wordOf(await pair.server.next());
    stage.claim('the server is established by the second RTU', second === 'ESTABLISHED');
    stage.claim('one RTU was lost', loss.hits === 1);
  },
};
