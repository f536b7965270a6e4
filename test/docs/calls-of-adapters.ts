/** Rows of docs/dat-map.md, called: interface adapters, the registry, dispatchers, CNOs. */
import assert from 'node:assert/strict';
import { createRegistry, datStrError, openIa } from 'dapl';
import type { DatProviderInit } from 'dapl/spi';
import { parseDatConf } from '../../core/index.js';
import { mock } from 'dapl/providers/mock';
import type { DatScene, RowCalls } from './dat-scene.js';

const OTHER = '192.0.2.3';

/** A registry that loads a provider of the scene by a line of dat.conf. */
function registryOf({ fabric }: DatScene): ReturnType<typeof createRegistry> {
  const datProviderInit: DatProviderInit = (_info, address) => mock({ fabric, address });
  const line = 'line u2.0 nonthreadsafe default lib dapl.2.0 "192.0.2.9" ""';
  return createRegistry({
    plugins: [mock({ fabric, address: OTHER })],
    datConf: parseDatConf(line),
    load: async () => ({ datProviderInit }),
  });
}

export const ADAPTER_CALLS: RowCalls = {
  dat_ia_open: async (scene) => {
    const ia = await openIa(mock({ fabric: scene.fabric, address: OTHER }), { asyncEvdQlen: 8 });
    assert.equal(ia.asyncEvd.query().qlen, 8);
    await ia.close();
  },
  dat_ia_openv: async (scene) => {
    const registry = registryOf(scene);
    const target = { name: 'line', version: '2.0', threadSafe: false };
    await (await registry.openIa(target)).close();
    await scene.refuses(
      () => registry.openIa({ name: 'line', version: '3.0' }),
      'DAT_MAJOR_NOT_FOUND',
    );
    // The row's own call is the module's; a registry has the same.
    await (await openIa(mock({ fabric: scene.fabric, address: OTHER }))).close();
  },
  dat_ia_query: ({ ia }) => assert.equal(ia.query().ia.iaAddress, ia.address),
  dat_ia_close: async (scene) => {
    const { ia } = scene;
    const pz = ia.createPz();
    await scene.refuses(() => ia.close('graceful'), 'DAT_INVALID_STATE_IA_IN_USE');
    const closing = ia.close();
    await Promise.all([closing, ia.close('abrupt')]);
    await ia.close();
    await scene.refuses(() => pz.free(), 'DAT_INVALID_HANDLE_PZ');
  },
  dat_registry_providers_related: async (scene) =>
    assert.equal(typeof (await registryOf(scene).providersRelated('mock', 'line')), 'string'),
  dat_set_consumer_context: (scene) => {
    const { ep } = scene.apart.active;
    ep.consumerContext = scene;
    assert.equal(ep.consumerContext, scene);
  },
  dat_get_consumer_context: (scene) => {
    const cno = scene.ia.createCno();
    assert.equal(scene.apart.active.ep.consumerContext, undefined);
    cno.consumerContext = 7;
    assert.equal(cno.consumerContext, 7);
  },
  dat_get_handle_type: (scene) => {
    const { ep, evd, lmr, pz } = scene.apart.active;
    const kinds = [scene.ia, ep, evd, lmr, pz].map(({ handleType }) => handleType);
    assert.deepEqual(kinds, ['IA', 'EP', 'EVD', 'LMR', 'PZ']);
    assert.equal(ep.handleType, 'EP');
  },
  dat_registry_list_providers: (scene) => {
    const registry = registryOf(scene);
    const names = registry.listProviders().map(({ iaName }) => iaName);
    assert.deepEqual(names, ['mock', 'line']);
  },
  dat_registry_add_provider: async (scene) => {
    const registry = createRegistry();
    const plugin = mock({ fabric: scene.fabric, address: OTHER });
    registry.register(plugin, 'mine');
    await scene.refuses(() => registry.register(plugin, 'mine'), 'DAT_PROVIDER_ALREADY_REGISTERED');
  },
  dat_registry_remove_provider: async (scene) => {
    const plugin = mock({ fabric: scene.fabric, address: OTHER });
    const registry = createRegistry({ plugins: [plugin] });
    for (const target of ['mock', plugin]) {
      const ia = await registry.openIa(target);
      await scene.refuses(() => registry.unregister('mock'), 'DAT_PROVIDER_IN_USE');
      await ia.close();
    }
    registry.unregister('mock');
    await scene.refuses(() => registry.unregister('mock'), 'DAT_PROVIDER_NOT_FOUND');
  },
  dat_provider_init: async (scene) => {
    // DatProviderInit: the line's ia_params are the address.
    const ia = await registryOf(scene).openIa('line');
    assert.equal(ia.address, '192.0.2.9');
    await ia.close();
  },
  dat_strerror: async (scene) => {
    const error = await scene.refuses(() => scene.ia.createEvd({ qlen: 0 }), 'DAT_INVALID_ARG2');
    assert.match(JSON.stringify(datStrError(error.returnCode)), /INVALID_PARAMETER.*INVALID_ARG2/);
  },
  ia_ha_related: async (scene) => {
    const registry = registryOf(scene);
    assert.equal(typeof (await registry.providersRelated('mock', 'mock')), 'string');
  },
};

export const DISPATCHER_CALLS: RowCalls = {
  dat_evd_create: async (scene) => {
    const cno = scene.ia.createCno();
    const evd = scene.ia.createEvd({ qlen: 3, cno });
    assert.equal(evd.query().cno, cno);
    await scene.refuses(() => scene.ia.createEvd({ qlen: 1e9 }), 'DAT_RESOURCE_TEVD');
  },
  dat_evd_query: (scene) => {
    const { taker, pending, dropped, policy } = scene.software().query();
    assert.deepEqual([taker, pending, dropped, policy], ['none', 0, 0, 'DISABLE']);
  },
  dat_evd_modify_cno: async (scene) => {
    const evd = scene.software();
    evd.postSe(1);
    const cno = scene.ia.createCno();
    evd.modifyCno(cno);
    assert.equal(await cno.wait(), evd);
  },
  dat_evd_enable: async (scene) => {
    const [evd, cno] = [scene.software(), scene.ia.createCno()];
    evd.modifyCno(cno);
    evd.disable();
    evd.postSe(1);
    await scene.refuses(() => cno.wait({ timeoutMs: 0 }), 'DAT_QUEUE_EMPTY');
    evd.enable();
    assert.equal(await cno.wait(), evd);
  },
  dat_evd_disable: async (scene) => {
    const told: unknown[] = [];
    const evd = scene.software();
    evd.disable();
    evd.modifyUpcall('ONE', (event) => void told.push(event));
    evd.postSe(1);
    await scene.pair.settle?.();
    assert.equal(told.length, 0);
  },
  dat_evd_wait: async (scene) => {
    const evd = scene.software();
    evd.postSe(1);
    assert.equal((await evd.wait({ threshold: 1 })).nmore, 0);
    await scene.refuses(() => evd.wait({ timeoutMs: 0 }), 'DAT_TIMEOUT_EXPIRED');
    const signal = AbortSignal.abort();
    await scene.refuses(() => evd.wait({ signal }), 'DAT_INTERRUPTED_CALL');
  },
  dat_evd_dequeue: (scene) => {
    const evd = scene.software();
    const waiting = evd.wait();
    assert.equal(evd.dequeue(), undefined);
    evd.postSe(1);
    return waiting;
  },
  dat_evd_post_se: async (scene) => {
    const evd = scene.software(scene.ia, 1);
    const payload = {};
    evd.postSe(payload);
    await scene.refuses(() => evd.postSe(payload), 'DAT_QUEUE_FULL');
    const event = evd.dequeue();
    assert.ok(event?.type === 'software' && event.payload === payload);
  },
  dat_evd_resize: async (scene) => {
    const evd = scene.software();
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    await scene.refuses(() => evd.resize(2), 'DAT_INVALID_STATE');
    evd.resize(3);
    assert.equal(evd.query().pending, 3);
  },
  dat_evd_set_unwaitable: async (scene) => {
    const evd = scene.software();
    const waiting = scene.refuses(() => evd.wait(), 'DAT_INVALID_STATE_EVD_UNWAITABLE');
    evd.setUnwaitable();
    await waiting;
  },
  dat_evd_clear_unwaitable: async (scene) => {
    const evd = scene.software();
    evd.setUnwaitable();
    evd.clearUnwaitable();
    evd.postSe(1);
    await evd.wait();
  },
  dat_evd_free: async (scene) => {
    const evd = scene.software();
    const waiting = scene.refuses(() => evd.wait(), 'DAT_ABORT');
    const done = new Promise<void>((resolve) => void resolve());
    await evd.free();
    await Promise.all([waiting, done]);
    await scene.refuses(() => scene.apart.active.evd.free(), 'DAT_INVALID_STATE_EVD_IN_USE');
  },
  dat_cno_create: async (scene) => {
    let told: unknown;
    const cno = scene.ia.createCno({ agent: (evd) => (told = evd) });
    const evd = scene.ia.createEvd({ qlen: 4, streams: 1, cno });
    evd.postSe(1);
    evd.postSe(2);
    await scene.pair.settle?.();
    assert.equal(told, evd);
    assert.equal(cno.query().agent, null);
  },
  dat_cno_fd_create: async (scene) => {
    const cno = scene.ia.createCno();
    const readable = new Promise((resolve) => cno.handle.once('readable', () => resolve(1)));
    cno.trigger();
    await readable;
  },
  dat_cno_modify_agent: async (scene) => {
    const cno = scene.ia.createCno();
    const told = new Promise((resolve) => cno.modifyAgent((evd) => resolve({ evd })));
    cno.trigger();
    await told;
    cno.modifyAgent(null);
  },
  dat_cno_query: (scene) => {
    const agent = (): void => undefined;
    assert.equal(scene.ia.createCno({ agent }).query().agent, agent);
    assert.equal(scene.ia.createCno().query().agent, null);
  },
  dat_cno_wait: async (scene) => {
    const cno = scene.ia.createCno();
    const evd = scene.ia.createEvd({ qlen: 4, streams: 1, cno });
    evd.postSe(1);
    assert.equal(await cno.wait(), evd);
    await scene.refuses(() => cno.wait({ timeoutMs: 0 }), 'DAT_QUEUE_EMPTY');
    const waiting = cno.wait();
    await evd.free();
    assert.equal(await waiting, undefined);
  },
  dat_cno_trigger: async (scene) => {
    const cno = scene.ia.createCno();
    cno.trigger();
    assert.equal(await cno.wait(), undefined);
  },
  dat_cno_free: async (scene) => {
    const cno = scene.ia.createCno();
    const evd = scene.ia.createEvd({ qlen: 4, streams: 1, cno });
    await scene.refuses(() => cno.free(), 'DAT_INVALID_STATE_CNO_IN_USE');
    await evd.free();
    cno.free();
    assert.ok(cno.isFreed);
  },
};
