/** Data comes before the RTU: it establishes the connection. */
import type { Scenario } from '../run/scenario.js';
import { textIn, wordOf } from '../run/stage.js';

const RTU = 0x0014;

export const earlyData: Scenario = {
  name: 'early-data',
  title: 'Data before established',
  text: [
    'The RTU is lost, but the client does not know, and sends at once. Its data reaches ' +
      'a server that is not established yet.',
    'The first receive completion is as good as an RTU. The application gets ESTABLISHED ' +
      'first and the message behind it, never the other way round.',
    'A send that the server posts before that is accepted. It waits in the queue until ' +
      'the connection is established.',
  ],
  discussion: {
    title: 'Communication established, June 2006: 3.2',
    anchor: '32-what-establishes-a-connection',
  },
  async play(stage) {
    const { client, server } = {
      client: await stage.side('client'),
      server: await stage.side('server'),
    };
    stage.fabric.faults.add({ match: { mad: { attributeId: RTU } }, action: { type: 'drop' } });
    server.ep.postRecv(server.memory.segment(0, 64), 1);
    client.ep.postRecv(client.memory.segment(1024, 64), 2);
    stage.connect({ client, server }, () => {
      server.ep.postSend(server.memory.segment(0, 8), 3);
      stage.claim(
        `a send is accepted in ${server.ep.state}`,
        server.ep.state === 'COMPLETION_PENDING',
      );
    });
    await client.next();
    client.ep.postSend(textIn(client, 'early'), 4);
    const first = wordOf(await server.next());
    stage.claim(`the first event of the server is ${first}`, first === 'ESTABLISHED');
    const second = await server.next();
    stage.claim('the message is the second', second.type === 'dto' && second.cookie === 1);
    const both = [await client.next(), await client.next()];
    const cookies = both.map((event) => (event.type === 'dto' ? event.cookie : 0)).sort();
    stage.claim("the server's send has arrived", String(cookies) === '2,4');
  },
};
