/** A message arrives between the end of an upcall and the next arm of the completion queue. */
import { EvdFlags } from '../../../core/index.js';
import type { Scenario } from '../run/scenario.js';
import { wordOf } from '../run/stage.js';

const MESSAGES = 12;

export const rearm: Scenario = {
  name: 'rearm',
  title: 'The re-arm race',
  text: [
    'The server takes messages by upcalls, one at a time (policy ONE). A completion ' +
      'queue notifies once, and then has to be armed again.',
    'A message that completes between the end of an upcall and the arm would have no ' +
      'notification. So the order is: drain, arm, look once more.',
    'The messages come at random moments, and each has its upcall, in order, without any ' +
      'further stimulus.',
  ],
  discussion: {
    title: 'Upcall policies, August 2005: 2.8 and 2.9',
    anchor: '28-which-comes-first-arming-the-completion-queue-or-the-upcall',
  },
  async play(stage) {
    const server = await stage.side('server', EvdFlags.DTO | EvdFlags.CONNECTION);
    const pair = { client: await stage.side('client'), server };
    for (let i = 0; i < MESSAGES; i++) server.ep.postRecv(server.memory.segment(i * 64, 64), i);
    stage.connect(pair);
    await Promise.all([pair.client.next(), server.next()]);
    const seen: number[] = [];
    const everything = new Promise<void>((resolve) => {
      server.evd.modifyUpcall('ONE', async (event) => {
        const cookie = event.type === 'dto' ? event.cookie : -1;
        stage.note('server', `upcall of message ${cookie} begins`, 'upcall');
        await stage.pause(stage.fabric.random.below(30));
        stage.note('server', `upcall of message ${cookie} ends`, 'upcall');
        if (seen.push(cookie) === MESSAGES) resolve();
      });
    });
    for (let i = 0; i < MESSAGES; i++) {
      pair.client.ep.postSend(pair.client.memory.segment(0, 8), i);
      await stage.pause(stage.fabric.random.below(40));
    }
    await everything;
    stage.claim(
      'each message had an upcall, in order',
      seen.every((cookie, i) => cookie === i),
    );
    const statuses: string[] = [];
    for (let i = 0; i < MESSAGES; i++) statuses.push(wordOf(await pair.client.next()));
    stage.claim(
      'all sends have completed',
      statuses.every((word) => word === 'SUCCESS'),
    );
  },
};
