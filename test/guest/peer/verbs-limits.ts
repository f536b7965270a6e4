// One byte more than the device's longest message (rdma_rxe: 8 MiB), over the verbs provider and a
// real device, both ends in one process: by DAT and flow it is refused with the limit, and what is
// as long as the limit arrives; rsockets split it. Nothing is cut.
//   node verbs-limits.js ADDRESS [device]
// Says "all checks passed"; exit code 1 when something is wrong.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatDtoStatus, type Ia, MemPrivileges, openIa } from 'dapl';
import { connect, listen } from 'dapl/flow';
import { verbs } from 'dapl/providers/verbs';

import { rsocket } from '../../../samples/ulp/rsocket/index.js';
import {
  createConnection,
  createServer,
  type RdmaSocket,
} from '../../../samples/ulp/socket/index.js';
import { join, PORT, Side } from '../life/side.js';
import { patternOf } from '../rsocket/pattern.js';
import { readBytes, writeAll } from '../rsocket/reader.js';

const [address = '', device = 'rxe0'] = process.argv.slice(2);
const LIMIT_BYTES = 8 << 20;
const much = patternOf(LIMIT_BYTES + 1);
const most = much.subarray(0, LIMIT_BYTES);
const TOO_LONG = {
  code: 'DAT_LENGTH_ERROR',
  message: new RegExp(`${LIMIT_BYTES + 1} bytes.* ${LIMIT_BYTES}\\b`),
};
/** Room of rsockets for all of it in one message, if the device took it. */
const STREAM = { messageBytes: 16 << 20, receiveBytes: 64 << 20, sendBytes: 32 << 20 };

function assertWhole(received: Uint8Array, sent: Uint8Array): void {
  assert.equal(received.length, sent.length);
  assert.equal(Buffer.compare(received, sent), 0, 'other bytes');
}

async function byDat(): Promise<void> {
  const [caller, listener] = [await Side.open({ device }), await Side.open({ address })];
  assert.equal(caller.ia.query().ia.maxMessageSize, LIMIT_BYTES);
  const memoryOf = ({ ia, lmr: { pz } }: Side) =>
    ia.allocate(LIMIT_BYTES + 1, { pz, privileges: MemPrivileges.ALL });
  const [source, target] = [memoryOf(caller), memoryOf(listener)];
  source.bytes.set(much);
  const [from, to] = [caller.endpoint(), listener.endpoint()];
  to.postRecv(target.segment(), 1);
  await join(caller, listener, from, to);
  assert.throws(() => from.postSend(source.segment(), 2), TOO_LONG);
  from.postSend(source.segment(0, LIMIT_BYTES), 3);
  const received = await listener.next();
  assert.equal(received.type === 'dto' && received.status, DatDtoStatus.SUCCESS);
  assertWhole(target.bytes.subarray(0, LIMIT_BYTES), most);
  await Promise.all([caller.ia.close('abrupt'), listener.ia.close('abrupt')]);
}

async function byFlow(active: Ia, passive: Ia): Promise<void> {
  const receives = { buffers: 2, bufferBytes: LIMIT_BYTES + 1 };
  const listener = await listen(passive, { port: PORT, receives });
  const [near, far] = await Promise.all([
    connect(active, { address, port: PORT, receives }),
    listener.accept(),
  ]);
  const grant = far.expose(LIMIT_BYTES + 1, 'read-write');
  for (const call of [near.send(much), near.write(much, grant), near.read(much, grant)]) {
    await assert.rejects(call, TOO_LONG);
  }
  const sent = near.send(most);
  const message = await far.receive();
  assertWhole(message.bytes, most);
  await sent;
  await near.write(most, grant);
  assertWhole(grant.bytes.subarray(0, LIMIT_BYTES), most);
  await near.close();
  await listener.close();
}

async function byRsocket(active: Ia, passive: Ia): Promise<void> {
  const server = createServer({ protocol: rsocket(passive, STREAM) }).listen(PORT);
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = createConnection({
    protocol: rsocket(active, STREAM),
    ...{ host: address, port: PORT },
  });
  await once(client, 'connect');
  const [socket] = (await accepted) as [RdmaSocket];
  const [received] = await Promise.all([readBytes(socket, much.length), writeAll(client, much)]);
  assertWhole(received, much);
  client.destroy();
  socket.destroy();
  server.close();
}

await byDat();
const [active, passive] = [await openIa(verbs({ device })), await openIa(verbs({ address }))];
await byFlow(active, passive);
await byRsocket(active, passive);
await Promise.all([active.close('abrupt'), passive.close('abrupt')]);
console.log('all checks passed');
