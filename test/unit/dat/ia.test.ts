import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { CompletionFlags, createRegistry, DatError, type Ia, openIa } from '../../../core/index.js';
import {
  AsyncEventType,
  type CmModule,
  type ConfiguredPlugin,
  definePlugin,
  SpiError,
} from '../../../core/spi/index.js';
import { connected, drain, texts, unconnected } from '../../support/fake-endpoints.js';
import { FakeProvider, openFake } from '../../support/fake-provider.js';

function has(code: string, text = /./): (error: unknown) => boolean {
  return (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.ok(error.code === code || error.subtype === code, error.message);
    assert.match(error.message, text);
    return true;
  };
}

function cmPlugin(cm: () => CmModule, requires: string[] = []): ConfiguredPlugin<'cm'> {
  const meta = { name: 'my-cm', kind: 'cm', sdkVersion: '2.0', requires, provides: [] } as const;
  return definePlugin({ ...meta, inject: {} }, cm)(undefined);
}

describe('opening', () => {
  it('opens a device once, shares it, and ends it with the last adapter', async () => {
    const fake = new FakeProvider();
    const plugin = fake.plugin();
    const [a, b] = await Promise.all([openIa(plugin), openIa(plugin)]);
    assert.equal(fake.opened, 1);
    await a.close();
    assert.equal(fake.device.closed, 0);
    assert.equal(fake.cm.closed, 0);
    await b.close();
    assert.equal(fake.device.closed, 1);
    assert.equal(fake.cm.closed, 1);
    const again = openIa(plugin);
    await again;
    assert.equal(fake.opened, 2);
    await (await again).close();
  });

  it('waits for the end of a device before it opens it again', async () => {
    const fake = new FakeProvider();
    const ia = await openIa(fake.plugin());
    const closing = ia.close();
    const next = await openIa(fake.plugin());
    assert.equal(fake.device.closed, 1);
    await closing;
    await next.close();
  });

  it('leaves nothing open when it fails, and tells every opener', async () => {
    const fake = new FakeProvider();
    const plugin = fake.plugin();
    fake.failNext = new SpiError('EADDRINUSE', 'UDP port 4791 is taken');
    const opening = [openIa(plugin), openIa(plugin)];
    for (const result of await Promise.allSettled(opening)) {
      assert.ok(result.status === 'rejected');
      assert.ok(has('DAT_PORT_IN_USE', /4791 is taken/)(result.reason));
    }
    const ia = await openIa(plugin);
    assert.equal(fake.opened, 2);
    await ia.close();
  });

  it('closes the device again when a module cannot be made', async () => {
    const fake = new FakeProvider();
    const broken = cmPlugin(() => {
      throw new SpiError('EIO', 'no CM today');
    });
    await assert.rejects(openIa(fake.plugin(), { modules: { cm: broken } }), /no CM today/);
    assert.equal(fake.device.closed, 1);
  });

  it('takes modules of the application, and refuses others while the device is open', async () => {
    const fake = new FakeProvider();
    const other = new FakeProvider();
    const mine = cmPlugin(() => other.cm, ['mad']);
    const ia = await openIa(fake.plugin(), { modules: { cm: mine } });
    ia.createPsp({ connQual: 7 });
    assert.equal(other.cm.listeners.size, 1);
    assert.equal(fake.cm.listeners.size, 0);
    const same = await openIa(fake.plugin(), { modules: { cm: mine } });
    const third = cmPlugin(() => fake.cm);
    await assert.rejects(
      openIa(fake.plugin(), { modules: { cm: third } }),
      has('DAT_INVALID_STATE', /is open with cm plugin "my-cm" for cm/),
    );
    await same.close();
    await ia.close();
    const plain = await openIa(fake.plugin());
    await assert.rejects(
      openIa(fake.plugin(), { modules: { cm: third } }),
      has('DAT_INVALID_STATE', /open with its own module for cm/),
    );
    await plain.close();
  });

  it('refuses a module that requires what the provider lacks', async () => {
    const fake = new FakeProvider();
    const needy = cmPlugin(() => fake.cm, ['acme:teleport']);
    await assert.rejects(
      openIa(fake.plugin(), { modules: { cm: needy } }),
      has(
        'DAT_MODEL_NOT_SUPPORTED',
        /"my-cm" requires "acme:teleport".*"fake" provides rc, mad, cm/,
      ),
    );
    assert.equal(fake.opened, 0);
  });

  it('opens by name, with modules by name, and counts adapters of the provider', async () => {
    const fake = new FakeProvider();
    const registry = createRegistry({ plugins: [fake.plugin(), cmPlugin(() => fake.cm)] });
    const ia = await registry.openIa('fake', { modules: { cm: 'my-cm' } });
    assert.throws(() => registry.unregister('fake'), has('DAT_PROVIDER_IN_USE'));
    await ia.close();
    registry.unregister('fake');
    await assert.rejects(registry.openIa('fake'), has('DAT_NAME_NOT_REGISTERED'));
  });

  it('is in use while an adapter is open, however and by whichever registry it was', async () => {
    const fake = new FakeProvider();
    const plugin = fake.plugin();
    const registry = createRegistry({ plugins: [plugin] });
    const ways: (() => Promise<Ia>)[] = [
      () => registry.openIa('fake'),
      () => registry.openIa(plugin),
      () => createRegistry({}).openIa(plugin),
      () => openIa(plugin),
    ];
    const ias: Ia[] = [];
    for (const way of ways) ias.push(await way());
    for (const [i, ia] of ias.entries()) {
      const left = `has ${ias.length - i} open`;
      assert.throws(() => registry.unregister('fake'), has('DAT_PROVIDER_IN_USE', RegExp(left)));
      await ia.close();
    }
    await assert.rejects(registry.openIa(plugin, { asyncEvdQlen: -1 }));
    fake.failNext = new SpiError('EIO', 'no');
    await assert.rejects(registry.openIa(plugin));
    registry.unregister('fake');
  });

  it('refuses unknown options and wrong plugins', async () => {
    const plugin = new FakeProvider().plugin();
    await assert.rejects(openIa(plugin, { moduls: {} } as never), /"moduls"; it must be one of/);
    await assert.rejects(openIa(plugin, { asyncEvdQlen: 0 }), /asyncEvdQlen is 0/);
    const cm = cmPlugin(() => new FakeProvider().cm);
    await assert.rejects(openIa(cm as never), /cm plugin "my-cm" stands where a provider/);
  });
});

describe('closing', () => {
  it('ends everything in order', async () => {
    const { ia, device, cm, ep, lmr } = await connected();
    ia.createPsp({ connQual: 9 });
    ep.postRecv(lmr.segment());
    await ia.close();
    assert.equal(cm.connection.disconnects, 1);
    assert.deepEqual(device.ended, ['cm', 'mad', 'qp', 'cq', 'mr', 'pd', 'device']);
    assert.equal(ia.isFreed, true);
    assert.throws(() => ep.getStatus(), has('DAT_INVALID_HANDLE_EP'));
    assert.throws(() => ia.createPz(), has('DAT_INVALID_HANDLE_IA'));
    await ia.close();
  });

  it('gracefully only when nothing is left', async () => {
    const { ia, ep, lmr, pz, evd } = await unconnected();
    await assert.rejects(ia.close('graceful'), has('DAT_INVALID_STATE_IA_IN_USE', /4 objects/));
    ep.free();
    lmr.free();
    pz.free();
    await assert.rejects(ia.close('graceful'), has('DAT_INVALID_STATE_IA_IN_USE', /1 objects/));
    await evd.free();
    await ia.close('graceful');
  });

  it('rejects requests that nobody has answered', async () => {
    const { ia, cm, world } = await openFake();
    ia.createPsp({ connQual: 7 });
    cm.request(7);
    world.pump();
    await ia.close();
    assert.equal(cm.requests[0]?.rejected?.reason, 3);
  });

  it('is bounded', async () => {
    const fake = new FakeProvider();
    fake.cm.close = () => new Promise<void>(() => undefined);
    const ia = await openIa(fake.plugin(), { closeTimeoutMs: 50 });
    const failed = assert.rejects(
      ia.close(),
      has('DAT_INTERNAL_ERROR', /CM: not done within 50 ms/),
    );
    await fake.world.settle();
    fake.world.advance(50_000);
    await failed;
    assert.equal(fake.device.closed, 1);
    assert.equal(fake.world.retained, 0);
  });

  it('ends what the consumer awaits', async () => {
    const { ia, evd } = await unconnected();
    const waiting = assert.rejects(evd.wait(), has('DAT_ABORT'));
    await ia[Symbol.asyncDispose]();
    await waiting;
  });
});

describe('interface adapter', () => {
  it('answers queries under DAT names', async () => {
    const { ia } = await openFake();
    const { ia: attributes, provider } = ia.query();
    assert.equal(attributes.iaAddress, '192.0.2.1');
    assert.equal(attributes.maxDtoPerEp, 1023);
    assert.equal(provider.providerName, 'fake');
    assert.equal(provider.maxPrivateDataSize, 56);
    assert.equal(provider.providerSpecific['DAT_IB_RDMA_READ'], 'TRUE');
  });

  it('reports events of the device to every adapter on it', async () => {
    const fake = new FakeProvider();
    const a = await openIa(fake.plugin());
    const b = await openIa(fake.plugin());
    fake.device.deviceEventHandler(AsyncEventType.PORT_ERR);
    fake.device.deviceEventHandler(AsyncEventType.PORT_ACTIVE);
    assert.deepEqual(texts(drain(a.asyncEvd)), ['ASYNC_IA_CATASTROPHIC']);
    assert.deepEqual(texts(drain(b.asyncEvd)), ['ASYNC_IA_CATASTROPHIC']);
    await a.close();
    fake.device.deviceEventHandler(AsyncEventType.DEVICE_FATAL);
    assert.equal(drain(b.asyncEvd).length, 1);
    await b.close();
  });

  it('traces calls with names and symbolic values', async () => {
    const lines: string[] = [];
    const nothing = (): void => undefined;
    const logger = {
      debug: (message: string) => void lines.push(message),
      info: nothing,
      warn: nothing,
      error: nothing,
      isDebugEnabled: () => true,
      child: () => logger,
    };
    const { ia, cm, world } = await openFake({ logger });
    const pz = ia.createPz();
    const ep = ia.createEndpoint({ pz });
    const lmr = ia.allocate(64, { pz });
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
    world.pump();
    ep.postSend(lmr.segment(), 7, CompletionFlags.SUPPRESS);
    ep.postRdmaWrite([], 8, { address: 0x1000n, rmrContext: 1 });
    const traced = lines.filter((line) => line.startsWith('ep.'));
    assert.deepEqual(traced, [
      `ep.connect(ep=${ep.id}, address="192.0.2.2", connQual=7)`,
      `ep.postSend(ep=${ep.id}, segments=1, cookie=7, flags=SUPPRESS)`,
      `ep.postRdmaWrite(ep=${ep.id}, segments=0, cookie=8, remote=0x1000, flags=DEFAULT)`,
    ]);
    assert.ok(lines.includes(`ia.createPz(ia=${ia.id})`));
  });

  it('shows its objects usefully', async () => {
    const { ia, ep, lmr, pz } = await connected();
    ep.postRecv(lmr.segment());
    assert.match(inspect(ep), /^Ep \{ id: \d+, state: 'CONNECTED', qpn: 0x10, requests: 0\/128/);
    assert.match(
      inspect(ia),
      /provider: 'fake', address: '192\.0\.2\.1', eps: 1, psps: 0, lmrs: 1/,
    );
    assert.match(inspect(lmr), /lengthBytes: 4096.*REMOTE_WRITE.*inFlight: 1/);
    assert.match(inspect(pz), /users: 2/);
    assert.match(inspect(ia.createPsp({ connQual: 7 })), /connQual: 7/);
  });

  it('offers streams for what was made without an EVD', async () => {
    const { ia, cm, world, device } = await openFake();
    const pz = ia.createPz();
    const lmr = ia.allocate(64, { pz });
    const psp = ia.createPsp({ connQual: 7 });
    const seen: string[] = [];
    const completed: string[] = [];
    psp.requests$.subscribe((event) => {
      const ep = ia.createEndpoint({ pz });
      ep.state$.subscribe({
        next: (state) => seen.push(state),
        complete: () => seen.push('freed'),
      });
      ep.connection$.subscribe((change) => seen.push(...texts([change])));
      ep.completions$.subscribe((completion) => {
        completed.push(...texts([completion]), ep.state);
        if (completion.type === 'dto' && completion.cookie === 2) ep.free();
      });
      ep.postRecv(lmr.segment(), 1);
      event.cr.accept(ep);
      ep.postSend(lmr.segment(), 2);
    });
    cm.request(7);
    await world.settle();
    const { qp } = device;
    qp.completeReceive(5);
    await world.settle();
    qp.completeSend();
    await world.settle();
    assert.deepEqual(seen, [
      'UNCONNECTED',
      'COMPLETION_PENDING',
      'CONNECTED',
      'ESTABLISHED',
      'DISCONNECTED',
      'freed',
    ]);
    assert.deepEqual(completed, ['dto 1 SUCCESS', 'CONNECTED', 'dto 2 SUCCESS', 'CONNECTED']);
    await ia.close();
  });

  it('says where the events of a given EVD are', async () => {
    const { ep, ia, evd } = await unconnected();
    assert.throws(() => ep.connection$, has('DAT_INVALID_STATE_EVD_IN_USE', /subscribe to its ev/));
    assert.throws(() => ep.completions$, has('DAT_INVALID_STATE_EVD_IN_USE'));
    const psp = ia.createPsp({ connQual: 7, evd });
    assert.throws(() => psp.requests$, has('DAT_INVALID_STATE_EVD_IN_USE'));
    await assert.rejects(evd.free(), has('DAT_INVALID_STATE_EVD_IN_USE'));
  });
});
