/** The receiving queue pair of XRC outlives the application that made it. */
import { EvdFlags } from '../../../core/index.js';
import type { Scenario } from '../run/scenario.js';
import { ADDRESSES, wordOf } from '../run/stage.js';

const CONN_QUAL = 7001;

export const xrcOutlives: Scenario = {
  name: 'xrc-outlives',
  title: 'A receive queue pair of no one process',
  text: [
    'Two applications of the server share an XRC domain. The first accepts a connection: ' +
      'the receiving queue pair belongs to the domain, not to the application.',
    'The second application registers with it. Then the first one closes its adapter and is gone.',
    'The sender notices nothing: its next message reaches the second application through ' +
      'the same queue pair.',
  ],
  discussion: {
    title: 'A receive queue pair of no one process, December 2007: 4.1 and 4.2',
    anchor: 'a-receive-queue-pair-of-no-one-process-openib-general-december-2007',
  },
  async play(stage) {
    const [creator, other, client] = [
      await stage.open('server'),
      await stage.open('server'),
      await stage.open('client'),
    ];
    const domain = await creator.openXrcDomain({ key: 'lab' });
    const shared = await other.openXrcDomain({ key: 'lab' });
    const otherPz = other.createPz();
    const srq = shared.createSrq({ pz: otherPz, maxRecvDtos: 8 });
    srq.postRecv(other.allocate(64, { pz: otherPz }).segment(), 1);
    const arrival = new Promise<number>((resolve) => {
      srq.completions$.subscribe(({ cookie }) => resolve(cookie));
    });
    creator.createPsp({ connQual: CONN_QUAL, xrc: true }).requests$.subscribe(({ cr }) => {
      shared.registerTarget(domain.accept(cr));
    });
    const pz = client.createPz();
    const evd = client.createEvd({ qlen: 16, streams: EvdFlags.CONNECTION | EvdFlags.DTO });
    stage.watch('client', "client's events", evd);
    const own = await client.openXrcDomain();
    const initiator = own.createInitiator({ pz, requestEvd: evd, connectEvd: evd });
    initiator.connect({ address: ADDRESSES.server, connQual: CONN_QUAL });
    stage.claim('the sender is connected', wordOf((await evd.wait()).event) === 'ESTABLISHED');

    await stage.pause(200);
    stage.note('server', 'the creator closes its adapter');
    await creator.close();
    stage.claim('the target is still there', shared.targets.length === 1);
    initiator.toSrq(srq.srqn).postSend(client.allocate(32, { pz }).segment(), 2);
    stage.claim('the other application has the message', (await arrival) === 1);
    stage.claim('the send has succeeded', wordOf((await evd.wait()).event) === 'SUCCESS');
  },
};
