/** Two programs connect, one sends a message, both disconnect. */
import type { Scenario } from '../run/scenario.js';
import { textIn, wordOf } from '../run/stage.js';

export const hello: Scenario = {
  name: 'hello',
  title: 'Hello',
  text: [
    'A client connects to a server: REQ, REP and RTU are messages of the connection manager.',
    'Then it sends "hello". The server had posted a receive, so the message has a place to go.',
    'The ACK completes the send at the client, and DREQ and DREP end the connection.',
  ],
  async play(stage) {
    const { client, server } = {
      client: await stage.side('client'),
      server: await stage.side('server'),
    };
    server.ep.postRecv(server.memory.segment(0, 64), 1);
    stage.connect({ client, server });
    const established = [wordOf(await client.next()), wordOf(await server.next())];
    stage.claim(
      'both sides are ESTABLISHED',
      established.every((word) => word === 'ESTABLISHED'),
    );

    client.ep.postSend(textIn(client, 'hello'), 2);
    const sent = await client.next();
    const received = await server.next();
    stage.claim('the send has completed', wordOf(sent) === 'SUCCESS');
    const length = received.type === 'dto' ? received.transferredLength : 0;
    const text = new TextDecoder().decode(server.memory.bytes.subarray(0, length));
    stage.claim(`the server has received "${text}"`, text === 'hello');

    client.ep.disconnect();
    const ends = [wordOf(await client.next()), wordOf(await server.next())];
    stage.claim(
      'both sides are DISCONNECTED',
      ends.every((word) => word === 'DISCONNECTED'),
    );
  },
};
