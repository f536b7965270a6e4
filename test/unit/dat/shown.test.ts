// Every object of the API says in one line what it is: to inspect, console.log, String() and JSON.

import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import * as dapl from 'dapl';
import {
  DatDto,
  type DatEvent,
  DatEventNumber,
  type Ep,
  EventBatch,
  EvdFlags,
  type Evd,
  type Ia,
  MadMethod,
  MemPrivileges,
  openIa,
  RemoteSegment,
} from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';

interface Scene {
  readonly objects: Map<string, object>;
  readonly events: Map<string, DatEvent>;
  readonly ias: readonly Ia[];
  close(): Promise<void>;
}

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';
/** Its name is taken over as it is, by whoever chose it. */
const NASTY = "k\n'\u001b[31m\u009b";

/** Every event that comes to an EVD, by the name of its number and what it did. */
function collect(events: Map<string, DatEvent>, evd: Evd): void {
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
    const operation = 'operation' in event ? ` ${String(event.operation)}` : '';
    events.set(`${event.type} ${String(event.number)}${operation}`, event);
  }
}

async function everything(): Promise<Scene> {
  const objects = new Map<string, object>();
  const events = new Map<string, DatEvent>();
  const add = <T extends object>(name: string, object: T): T => {
    objects.set(name, object);
    return object;
  };
  const fabric = add('Fabric', new Fabric({ seed: 3, autoRun: true }));
  const client = add('Ia', await openIa(mock({ fabric, address: CLIENT })));
  const server = await openIa(mock({ fabric, address: SERVER }));
  const pz = add('Pz', client.createPz());
  const serverPz = server.createPz();
  const cno = add('Cno', client.createCno());
  add('CnoHandle', cno.handle);
  const all = EvdFlags.DEFAULT | EvdFlags.SOFTWARE;
  const evd = add('Evd', client.createEvd({ qlen: 64, streams: all, cno }));
  const serverEvd = server.createEvd({ qlen: 64 });
  const lmr = add('Lmr', client.allocate(4096, { pz, privileges: MemPrivileges.ALL }));
  const serverLmr = server.allocate(4096, { pz: serverPz, privileges: MemPrivileges.ALL });
  add('LmrSegment', lmr.segment(8, 16));
  add('RemoteSegment', new RemoteSegment({ address: 0x1000n, rmrContext: 0xbeef }));
  const rmr = add('Rmr', client.createRmr(pz));
  add('Srq', client.createSrq({ pz, maxRecvDtos: 4 }));
  add('EventBatch', new EventBatch(4));
  add('IaMad', client.mad);
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const ep = add('Ep', client.createEndpoint({ pz, ...evds }));
  const away = { recvEvd: serverEvd, requestEvd: serverEvd, connectEvd: serverEvd };
  const serverEp: Ep = server.createEndpoint({ pz: serverPz, ...away });
  add('Psp', server.createPsp({ connQual: 7, evd: serverEvd }));
  server.createPsp({ connQual: 8, evd: serverEvd, xrc: true });
  add('Csp', client.createCsp({ address: '0.0.0.0:10', evd }));
  const reserved = client.createEndpoint({ pz, ...evds });
  add('Rsp', client.createRsp({ connQual: 9, ep: reserved, evd }));
  ep.connect({ address: SERVER, connQual: 7, privateData: Uint8Array.of(1, 2, 3) });
  const { event: request } = await serverEvd.wait({ timeoutMs: 5000 });
  assert.ok(request.type === 'connection-request');
  events.set('request', request);
  add('Cr', request.cr);
  serverEp.postRecv(serverLmr.segment(0, 64), 5);
  request.cr.accept(serverEp);
  await fabric.run({ until: () => ep.state === 'CONNECTED' && serverEp.state === 'CONNECTED' });
  ep.postSendWithImmediate(lmr.segment(0, 4), 6, 0xdead);
  rmr.bind(lmr.segment(0, 64), ep, { privileges: MemPrivileges.REMOTE_READ, cookie: 7 });
  evd.postSe({ mine: [1, { deep: { deeper: true } }] });
  await fabric.run({ forUs: 100_000 });

  const domain = add('XrcDomain', await client.openXrcDomain({ key: NASTY }));
  const there = await server.openXrcDomain();
  const srq = add('XrcSrq', there.createSrq({ pz: serverPz, maxRecvDtos: 4, recvEvd: serverEvd }));
  srq.postRecv(serverLmr.segment(64, 64), 8);
  const initiator = domain.createInitiator({ pz, requestEvd: evd, connectEvd: evd });
  add('XrcInitiator', initiator);
  initiator.connect({ address: SERVER, connQual: 8 });
  const isRequest = (event: DatEvent | undefined): boolean => event?.type === 'connection-request';
  let next: DatEvent | undefined;
  await fabric.run({
    until: () => {
      next = serverEvd.dequeue();
      if (next !== undefined && !isRequest(next)) events.set(`early ${next.type}`, next);
      return isRequest(next);
    },
  });
  assert.ok(next?.type === 'connection-request');
  there.accept(next.cr);
  await fabric.run({ until: () => initiator.state === 'CONNECTED' });
  initiator.toSrq(srq.srqn).postSend(lmr.segment(0, 4), 9);

  const udEp = add('UdEp', client.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd }));
  const udServer = server.createUdEndpoint({ pz: serverPz, recvEvd: serverEvd });
  udServer.postRecv(serverLmr.segment(128, 128), 10);
  add('UdService', udEp.serve({ connQual: 11 }));
  const to = udEp.createAddressHandle({ address: SERVER, qpn: udServer.qpn });
  add('UdAddressHandle', to);
  udEp.postSendUdWithImmediate(lmr.segment(0, 4), to, 12, 13);
  const methods = [MadMethod.GET];
  const mad = { managementClass: 0x30, oui: 0x0d0a0b, methods };
  add('ManagementAgent', client.mad.registerAgent(mad));
  await fabric.run({ forUs: 100_000 });
  collect(events, serverEvd);
  serverEp.disconnect('abrupt');
  ep.postRecv(lmr.segment(), 14);
  await fabric.run({ forUs: 1_000_000 });
  for (const each of [evd, serverEvd, server.asyncEvd, client.asyncEvd]) collect(events, each);
  const upcalled = client.createEvd({ qlen: 4, streams: EvdFlags.SOFTWARE });
  upcalled.modifyUpcall('ONE', (_event, upcall) => {
    add('Upcall', upcall);
    throw new Error('two\nlines');
  });
  upcalled.postSe(1);
  await fabric.run({ forUs: 1000 });
  collect(events, client.asyncEvd);
  add('Registry', dapl.createRegistry({}));
  const close = async (): Promise<void> => {
    await Promise.all([client.close(), server.close()]);
  };
  return { objects, events, ias: [client, server], close };
}

/** The line, the same by every way, and what JSON has of it. */
function lineOf(object: object): string {
  const line = inspect(object);
  assert.equal(String(object as unknown), line);
  assert.equal(inspect({ object }, { breakLength: Infinity }), `{ object: ${line} }`);
  // eslint-disable-next-line no-control-regex -- what a terminal obeys
  assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f]/);
  assert.ok(line.length < 400, line);
  const json = JSON.stringify(object);
  assert.ok(json.length < 600, json);
  const { kind } = JSON.parse(json) as { kind: string };
  assert.ok(line.startsWith(`${kind} {`), line);
  return line;
}

/** Not objects that a consumer holds, or bases of those. */
const NO_OBJECTS = ['DatError', 'ServicePoint', 'DatHandle'];

describe('objects in one line', () => {
  let scene: Scene;
  before(async () => {
    scene = await everything();
  });
  after(() => scene.close());

  it('are all that the API exports, and what those make', () => {
    const classes = Object.entries(dapl).filter(
      ([, value]) => typeof value === 'function' && /^class\b/.test(String(value)),
    );
    assert.ok(classes.length > 20);
    const missing = classes.filter(
      ([name]) => !scene.objects.has(name) && !NO_OBJECTS.includes(name),
    );
    assert.deepEqual(
      missing.map(([name]) => name),
      [],
    );
  });

  it('say what they are, with their own name and number, alive and freed', async () => {
    for (const [name, object] of scene.objects) {
      const line = lineOf(object);
      assert.ok(line.startsWith(`${name} {`), line);
      if ('id' in object) assert.ok(line.includes(`id: ${String(object.id)}`), line);
    }
    const other = await everything();
    await other.close();
    for (const [name, object] of other.objects) {
      assert.ok(lineOf(object).startsWith(`${name} {`));
      if ('isFreed' in object) assert.equal(object.isFreed, true, name);
    }
    assert.match(inspect(other.objects.get('XrcDomain')), /closed/);
    assert.match(inspect(other.objects.get('ManagementAgent')), /unregistered/);
  });

  it('name others by kind and number, and show no part of them', () => {
    const { objects } = scene;
    const { id } = objects.get('Lmr') as { id: number };
    assert.equal(
      String(objects.get('LmrSegment') as unknown),
      `LmrSegment { lmr: Lmr ${id}, offsetBytes: 8, lengthBytes: 16 }`,
    );
    const remote = objects.get('RemoteSegment') as object;
    const line = 'RemoteSegment { address: 0x1000, rmrContext: 0xbeef }';
    assert.equal(String(remote as unknown), line);
    const json = { kind: 'RemoteSegment', address: '0x1000', rmrContext: '0xbeef' };
    assert.deepEqual(JSON.parse(JSON.stringify(remote)), json);
  });

  it('events print the names of their numbers', () => {
    const events = [...scene.events.values()];
    const lines = events.map((event) => {
      const line = lineOf(event);
      const name = dapl.nameOf(DatEventNumber, event.number);
      assert.ok(line.startsWith(`${name} { type: '${event.type}', number: ${event.number}`), line);
      return line;
    });
    const all = lines.join('\n');
    const types = new Set(events.map(({ type }) => type));
    const expected = ['async-error', 'connection', 'connection-request', 'datagram', 'dto'];
    assert.deepEqual([...types].sort(), [
      ...expected,
      'rmr-bind',
      'software',
      'xrc-receive',
      'xrc-target',
    ]);
    assert.match(all, /ESTABLISHED \{ type: 'connection', number: 16385, ep: \w+ \d+, /);
    assert.match(all, /, privateData: 196 bytes \}/);
    assert.match(all, /status: SUCCESS, .*operation: RECV_MSG_IMMED, immediate: 0xdead \}/);
    assert.match(all, /status: FLUSHED/);
    assert.match(all, /payload: \{ mine: \[ 1, \[Object\] \] \}/);
    assert.match(all, /cr: Cr \d+/);
    assert.match(all, /cause: 'Error: two\\nlines'/);
    const software = events.find(({ type }) => type === 'software');
    assert.deepEqual(JSON.parse(JSON.stringify(software)), {
      ...{ kind: 'SOFTWARE', type: 'software', number: DatEventNumber.SOFTWARE },
      payload: { mine: [1, { deep: { deeper: true } }] },
    });
  });

  it('events are still read field by field, and compared as such', () => {
    const [sent] = [...scene.events.values()].filter(
      (event) => event.type === 'dto' && event.operation === DatDto.SEND,
    );
    assert.ok(sent?.type === 'dto');
    const { cookie, status, operation, ...rest } = { ...sent };
    assert.deepEqual([cookie, status, operation], [9, 0, DatDto.SEND]);
    assert.deepEqual(Object.keys(rest).sort(), ['ep', 'number', 'transferredLength', 'type']);
  });

  it('errors are written as JSON with what they say, whatever their value', () => {
    const { objects } = scene;
    const wrong = [5n, objects.get('Ep'), { toJSON: () => assert.fail() }];
    for (const value of wrong) {
      const error = new dapl.DatError('DAT_ABORT', { operation: 'x', message: 'y', value });
      const { message, code } = JSON.parse(JSON.stringify(error)) as Record<string, string>;
      assert.deepEqual([message, code], [error.message, 'DAT_ABORT']);
    }
  });
});
