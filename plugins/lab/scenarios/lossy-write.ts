/** An RDMA write of 32 packets over a network that loses every twentieth. */
import type { Scenario } from '../run/scenario.js';
import { grantOf, wordOf } from '../run/stage.js';

const BYTES = 32 * 1024;

export const lossyWrite: Scenario = {
  name: 'lossy-write',
  title: 'RDMA write, 5 % loss',
  text: [
    'The client writes 32 KiB straight into the memory of the server, in 32 packets.',
    'The network loses 5 % of all packets. The server sees the gap in the sequence ' +
      'numbers and answers with a NAK, or the client times out; then the client sends ' +
      'again from the lost packet on.',
    'The server application takes no part in it: it has no event for a write.',
  ],
  settings: { loss: 5 },
  async play(stage) {
    const { client, server } = await stage.connected();
    for (let i = 0; i < BYTES; i++) client.memory.bytes[i] = i * 7;
    client.ep.postRdmaWrite(client.memory.segment(0, BYTES), 1, grantOf(server));
    const status = wordOf(await client.next());
    stage.claim(`the write has ended with ${status}`, status === 'SUCCESS');
    const isSame = server.memory.bytes
      .subarray(0, BYTES)
      .every((byte, i) => byte === client.memory.bytes[i]);
    stage.claim('every byte is where it belongs', isSame);
    stage.claim('the server has no event for it', server.evd.query().pending === 0);
  },
};
