import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  CM,
  type CmConnection,
  type CmEvent,
  type CompletionQueue,
  DEVICE,
  MAD,
  QpState,
  QpType,
  type QueuePair,
  WcStatus,
} from '../../../core/spi/index.js';
import { Fabric, type FabricOptions } from '../../../providers/mock/index.js';
import { type Container, openMock } from './container.js';

const SERVICE = 0x0106_1234n;
const PARAMETERS = {
  responderResources: 4,
  initiatorDepth: 4,
  retryCount: 7,
  rnrRetryCount: 7,
  minRnrTimer: 12,
  accessFlags: Access.REMOTE_READ | Access.REMOTE_WRITE,
  privateData: new Uint8Array(0),
};

interface Side {
  readonly container: Container;
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
  readonly events: string[];
  readonly deviceEvents: AsyncEventType[];
  connection?: CmConnection;
}

async function openSide(fabric: Fabric, address: string): Promise<Side> {
  const container = await openMock({ fabric, address });
  const device = container.resolve(DEVICE);
  const cq = device.createCompletionQueue({
    minEntries: 64,
    onNotify: () => undefined,
    onEvent: () => undefined,
  });
  const qp = device.createQueuePair({
    type: QpType.RC,
    pd: device.createProtectionDomain(),
    sendCq: cq,
    receiveCq: cq,
    maxSendWr: 8,
    maxReceiveWr: 8,
    maxSendSge: 1,
    maxReceiveSge: 1,
    maxInlineBytes: 0,
    context: 1,
    onEvent: () => undefined,
  });
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
  const deviceEvents: AsyncEventType[] = [];
  device.setEventHandler((event) => deviceEvents.push(event));
  return { container, cq, qp, events: [], deviceEvents };
}

const note =
  (side: Side) =>
  (event: CmEvent): void =>
    void side.events.push(event.type);

async function openPair(
  options: FabricOptions = {},
): Promise<{ fabric: Fabric; a: Side; b: Side }> {
  const fabric = new Fabric(options);
  const a = await openSide(fabric, '10.0.0.1');
  const b = await openSide(fabric, '10.0.0.2');
  b.container.resolve(CM).listen({
    serviceId: SERVICE,
    backlog: 4,
    onRequest: (request) => {
      b.connection = request.accept({ ...PARAMETERS, qp: b.qp, onEvent: note(b) });
    },
  });
  return { fabric, a, b };
}

function connect(a: Side, b: Side): void {
  const remoteGid = b.container.resolve(DEVICE).gids[0];
  assert.ok(remoteGid);
  a.connection = a.container.resolve(CM).connect({
    ...PARAMETERS,
    qp: a.qp,
    remoteGid,
    serviceId: SERVICE,
    timeoutUs: Infinity,
    onEvent: note(a),
  });
}

async function closeAll(...sides: Side[]): Promise<void> {
  for (const { container } of sides) {
    await container.resolve(CM).close();
    await container.resolve(MAD).close();
    await container.resolve(DEVICE).close();
  }
}

describe('mock provider', () => {
  it('connects two devices by their CM, and disconnects', async () => {
    const { fabric, a, b } = await openPair();
    connect(a, b);
    await fabric.run({ until: () => a.events.length > 0 && b.events.length > 0 });
    assert.deepEqual([a.events, b.events], [['established'], ['established']]);
    assert.deepEqual([a.qp.state, b.qp.state], [QpState.RTS, QpState.RTS]);
    a.connection?.disconnect();
    await fabric.run({ untilIdle: true });
    assert.deepEqual(a.events, ['established', 'disconnected', 'timewait-exit']);
    assert.deepEqual(b.events, ['established', 'disconnected', 'timewait-exit']);
    const closing = closeAll(a, b);
    await fabric.run({ untilIdle: true });
    await closing;
    assert.equal(fabric.pool.inUse, 0);
    assert.equal(fabric.clock.pending, 0);
  });

  it('runs by itself when asked to', async () => {
    const { fabric, a, b } = await openPair({ autoRun: true });
    connect(a, b);
    await new Promise<void>((resolve) => {
      const look = (): void => void (b.events.length > 0 ? resolve() : setImmediate(look));
      look();
    });
    assert.deepEqual(b.events, ['established']);
    await closeAll(a, b);
    assert.ok(fabric.counters.delivered > 0);
  });

  it('answers a lost REQ by another one, at the time that the CM says', async () => {
    const { fabric, a, b } = await openPair();
    const fault = fabric.faults.add({
      match: { mad: { managementClass: 7, attributeId: 0x0010 } },
      action: { type: 'drop' },
    });
    connect(a, b);
    await fabric.run({ until: () => b.events.length > 0 });
    assert.equal(fault.hits, 1);
    assert.equal(fault.matched, 2);
    assert.ok(fabric.clock.now() > 100_000);
  });

  it('tells of a removed device and flushes its queue pairs', async () => {
    const { fabric, a, b } = await openPair();
    connect(a, b);
    await fabric.run({ until: () => b.events.length > 0 });
    const ring = a.qp.receiveRing;
    assert.ok(ring);
    ring.producer = 3;
    a.qp.ringReceiveDoorbell();
    fabric.node('10.0.0.1')?.remove();
    await fabric.run({ forUs: 10 });
    assert.deepEqual(a.deviceEvents, [AsyncEventType.DEVICE_FATAL]);
    assert.equal(a.qp.state, QpState.ERR);
    assert.equal(a.cq.poll(), 3);
    assert.equal((a.cq.ring.words[a.cq.ring.wordOf(0)] ?? 0) & 0xff, WcStatus.WR_FLUSH_ERR);
  });
});
