/** Registrations with an XRC target are counted; the last one to go ends it. */
import { EvdFlags } from '../../../core/index.js';
import type { Scenario } from '../run/scenario.js';
import { ADDRESSES, wordOf } from '../run/stage.js';

const CONN_QUAL = 7001;

export const xrcCounted: Scenario = {
  name: 'xrc-counted',
  title: 'Register, unregister, destroy',
  text: [
    'The application that accepts is registered with the receiving queue pair. A second ' +
      'one registers, twice; that counts once.',
    'Unregistering is destroying: when the creator unregisters, the queue pair stays, ' +
      'because the other is registered.',
    'When the last one unregisters, the queue pair ends, and the sender is disconnected. ' +
      'A further unregister is refused.',
  ],
  discussion: {
    title: 'Register, unregister, destroy, April 2010: 5.1 to 5.3',
    anchor: 'register-unregister-destroy-linux-rdma-april-2010',
  },
  async play(stage) {
    const [creator, other] = [await stage.open('server'), await stage.open('server')];
    const client = await stage.open('client');
    const domain = await creator.openXrcDomain({ key: 'lab' });
    const shared = await other.openXrcDomain({ key: 'lab' });
    creator.createPsp({ connQual: CONN_QUAL, xrc: true }).requests$.subscribe(({ cr }) => {
      domain.accept(cr);
    });
    const evd = client.createEvd({ qlen: 16, streams: EvdFlags.CONNECTION | EvdFlags.DTO });
    const initiator = (await client.openXrcDomain()).createInitiator({
      pz: client.createPz(),
      requestEvd: evd,
      connectEvd: evd,
    });
    initiator.connect({ address: ADDRESSES.server, connQual: CONN_QUAL });
    stage.claim('the sender is connected', wordOf((await evd.wait()).event) === 'ESTABLISHED');
    await stage.pause(200);
    const [target = 0] = domain.targets;
    for (let i = 0; i < 2; i++) shared.registerTarget(target);
    domain.unregisterTarget(target);
    stage.claim('the target outlives its creator', shared.targets.length === 1);
    shared.unregisterTarget(target);
    stage.claim('the last unregister ends it', shared.targets.length === 0);
    let isRefused = false;
    try {
      shared.unregisterTarget(target);
    } catch {
      isRefused = true;
    }
    stage.claim('a further one is refused', isRefused);
    const end = wordOf((await evd.wait()).event);
    stage.claim(`the sender is told: ${end}`, end === 'DISCONNECTED');
  },
};
