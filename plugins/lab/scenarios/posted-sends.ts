/** A client of the MAD layer goes away while it waits for a response. */
import { DatError, MadMethod, type ManagementRequest } from '../../../core/index.js';
import { leaveUnhandled } from '../../../core/spi/index.js';
import type { Scenario } from '../run/scenario.js';
import { ADDRESSES } from '../run/stage.js';

/** A class of a vendor, in range 2. */
const CLASS = { managementClass: 0x30, classVersion: 1, oui: 0x02da91 };
const ATTRIBUTE = 0x0010;

export const postedSends: Scenario = {
  name: 'posted-sends',
  title: 'Posted sends at deregistration',
  text: [
    'An application has sent two management requests. One was answered; nobody answers the other.',
    'It unregisters while the second request still waits. The request is given back as ' +
      'aborted, once.',
    'Only then does unregistering end, and nothing is called back after it. The late ' +
      'answer is dropped.',
  ],
  discussion: {
    title: 'Posted management datagrams, October 2004: 1.2 and 1.4',
    anchor:
      '12-a-client-unregisters-while-its-send-is-on-the-wire-may-the-completion-still-call-it-back',
  },
  async play(stage) {
    const client = await stage.open('client');
    const server = await stage.open('server');
    const answering = server.mad.registerAgent({ ...CLASS, methods: [MadMethod.GET] });
    let asked = 0;
    const answer = async (request: ManagementRequest): Promise<void> => {
      if (++asked > 1) await stage.pause(400);
      await request.respond({ data: Uint8Array.of(asked) });
    };
    answering.requests$.subscribe((request) => leaveUnhandled(answer(request)));
    const agent = client.mad.registerAgent(CLASS);
    const ask = { address: ADDRESSES.server, attributeId: ATTRIBUTE, timeoutMs: 1000 };
    const first = await agent.request(ask);
    stage.claim('the first request is answered', first.data[0] === 1);
    const order: string[] = [];
    const second = agent.request(ask).catch((error: unknown) => {
      order.push(DatError.isDatError(error) ? error.code : 'another error');
    });
    await stage.pause(100);
    stage.note('client', 'unregisters');
    await agent.unregister();
    order.push('unregistered');
    await second;
    stage.claim('the second is given back as aborted', order[0] === 'DAT_ABORT');
    stage.claim('it comes back before unregistering ends', order[1] === 'unregistered');
    await stage.pause(1000);
    stage.claim('the late answer calls nobody', order.length === 2);
  },
};
