/** Endpoints for unreliable datagrams: resolving, sending, the source of a datagram. */
import assert from 'node:assert/strict';
import { CompletionFlags, DatDto, type DatagramEvent, DatDtoStatus, DatError, UdEp } from 'dapl';
import { group } from '../behaviour.js';
import { type Side, side } from './datagram-scene.js';
import type { CompliancePair } from '../fixture.js';
import { mtuBytes } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const CONN_QUAL = 7472;
const { GRH_BYTES } = UdEp;
const { SUCCESS } = DatDtoStatus;

async function next({ evd }: Side): Promise<DatagramEvent> {
  const { event } = await evd.wait({ timeoutMs: PATIENCE_MS });
  assert.equal(event.type, 'datagram');
  return event;
}

/** The DatError with which a call rejects. */
async function rejection(call: Promise<unknown>): Promise<DatError> {
  const error: unknown = await call.then(
    () => assert.fail('it did not reject'),
    (reason: unknown) => reason,
  );
  assert.ok(DatError.isDatError(error), String(error));
  return error;
}

const resolving = (pair: CompliancePair) => ({
  address: pair.passiveAddress,
  connQual: CONN_QUAL,
  timeoutMs: PATIENCE_MS,
});

export const datagrams = group('Datagrams', (claim) => {
  const needs = ['ud'] as const;

  claim(
    'a service is resolved, a datagram comes with its source, and is answered',
    async (pair) => {
      const [client, server] = [side(pair.active), side(pair.passive)];
      const seen: string[] = [];
      const service = server.ep.serve({
        connQual: CONN_QUAL,
        answer: ({ privateData }) => {
          seen.push(Buffer.from(privateData.subarray(0, 5)).toString());
          return { privateData: Buffer.from('hello') };
        },
      });
      const to = await client.ep.resolve({
        ...resolving(pair),
        privateData: Buffer.from('reader'),
      });
      assert.deepEqual(seen, ['reade']);
      assert.equal(Buffer.from(to.privateData.subarray(0, 5)).toString(), 'hello');
      assert.deepEqual([to.qpn, to.qkey], [server.ep.qpn, server.ep.attributes.qkey]);

      server.ep.postRecv(server.lmr.segment(0, 100), 1);
      client.ep.postRecv(client.lmr.segment(0, 100), 2);
      client.lmr.bytes.set(Buffer.from('question'), 1000);
      client.ep.postSendUd(client.lmr.segment(1000, 8), to, 3);
      const sent = await next(client);
      assert.deepEqual([sent.cookie, sent.status, sent.operation], [3, SUCCESS, DatDto.SEND_UD]);
      const question = await next(server);
      assert.equal(question.operation, DatDto.RECV_UD);
      assert.equal(question.transferredLength, GRH_BYTES + 8);
      const text = server.lmr.bytes.subarray(GRH_BYTES, GRH_BYTES + 8);
      assert.equal(Buffer.from(text).toString(), 'question');
      assert.ok(question.source);
      assert.equal(question.source.qpn, client.ep.qpn);

      const back = server.ep.createAddressHandle(question.source);
      server.lmr.bytes.set(Buffer.from('answer'), 1000);
      server.ep.postSendUdWithImmediate(server.lmr.segment(1000, 6), back, 4, 0xdeadbeef);
      await next(server);
      const answer = await next(client);
      assert.equal(answer.operation, DatDto.RECV_UD_IMMED);
      assert.deepEqual([answer.cookie, answer.immediate], [2, 0xdeadbeef]);
      assert.equal(answer.source?.qpn, server.ep.qpn);
      for (const handle of [to, back]) handle.free();
      service.free();
    },
    needs,
  );

  claim(
    'a datagram has any size from 0 to the MTU, and no more',
    async (pair) => {
      const [client, server] = [side(pair.active), side(pair.passive)];
      server.ep.serve({ connQual: CONN_QUAL });
      const to = await client.ep.resolve(resolving(pair));
      const most = client.ep.maxDatagramBytes;
      assert.equal(most, mtuBytes(pair.active));
      for (const size of [0, 1, 3, most]) {
        client.lmr.bytes.fill(size, 0, size);
        server.lmr.bytes.fill(0xee);
        server.ep.postRecv(server.lmr.segment(0, GRH_BYTES + most + 1), size);
        client.ep.postSendUd(client.lmr.segment(0, size), to, 0, CompletionFlags.SUPPRESS);
        const { cookie, transferredLength } = await next(server);
        assert.deepEqual([cookie, transferredLength], [size, GRH_BYTES + size]);
        const end = GRH_BYTES + size;
        assert.ok(server.lmr.bytes.subarray(GRH_BYTES, end).every((byte) => byte === (size & 255)));
        assert.ok(server.lmr.bytes.subarray(end, end + 100).every((byte) => byte === 0xee));
      }
      const long = client.lmr.segment(0, most + 1);
      assert.throws(
        () => client.ep.postSendUd(long, to),
        (error: DatError) => error.code === 'DAT_LENGTH_ERROR',
      );
    },
    needs,
  );

  claim(
    'one endpoint has many peers, and tells them apart',
    async (pair) => {
      const server = side(pair.passive);
      server.ep.serve({ connQual: CONN_QUAL });
      const clients = Array.from({ length: 4 }, () => side(pair.active));
      const expected = new Map<number, number>();
      for (const [i, client] of clients.entries()) {
        server.ep.postRecv(server.lmr.segment(i * 100, 100), i);
        const to = await client.ep.resolve(resolving(pair));
        client.lmr.bytes[0] = i;
        client.ep.postSendUd(client.lmr.segment(0, 1), to, i);
        expected.set(client.ep.qpn, i);
        const { source, cookie } = await next(server);
        assert.equal(server.lmr.bytes[cookie * 100 + GRH_BYTES], expected.get(source?.qpn ?? 0));
      }
      assert.equal(expected.size, 4);
    },
    needs,
  );

  claim(
    'a receive may be scattered behind the GRH area, a send gathered, as far as lists go',
    async (pair) => {
      const [client, server] = [side(pair.active), side(pair.passive)];
      server.ep.serve({ connQual: CONN_QUAL });
      const to = await client.ep.resolve(resolving(pair));
      const { lmr } = server;
      const { maxRecvIov } = server.ep.attributes;
      const { maxRequestIov } = client.ep.attributes;
      const rest =
        maxRecvIov < 3 ? [lmr.segment(500, 12)] : [lmr.segment(500, 3), lmr.segment(600, 9)];
      const receive =
        maxRecvIov < 2 ? [lmr.segment(460, GRH_BYTES + 12)] : [lmr.segment(0, GRH_BYTES), ...rest];
      server.ep.postRecv(receive, 1);
      client.lmr.bytes.set(Buffer.from('gather'), 0);
      const { lmr: own } = client;
      if (maxRequestIov < 2) client.ep.postSendUd(own.segment(0, 6), to);
      else client.ep.postSendUd([own.segment(3, 3), own.segment(0, 3)], to);
      const { source } = await next(server);
      assert.ok(source);
      const filled = Buffer.concat(receive.map(({ bytes }) => bytes));
      const sent = maxRequestIov < 2 ? 'gather' : 'hergat';
      assert.equal(filled.subarray(GRH_BYTES, GRH_BYTES + 6).toString(), sent);
    },
    needs,
  );

  claim(
    'a refusal tells why, with private data',
    async (pair) => {
      const [client, server] = [side(pair.active), side(pair.passive)];
      const nobody = await rejection(client.ep.resolve(resolving(pair)));
      assert.equal(nobody.code, 'DAT_CONN_QUAL_UNAVAILABLE');
      assert.equal((nobody.value as { status: number }).status, 1);
      const privateData = Buffer.from('not you');
      server.ep.serve({ connQual: CONN_QUAL, answer: () => ({ accept: false, privateData }) });
      const refused = await rejection(client.ep.resolve(resolving(pair)));
      assert.equal(refused.code, 'DAT_CONN_QUAL_UNAVAILABLE');
      const value = refused.value as { status: number; privateData: Uint8Array };
      assert.equal(value.status, 2);
      assert.deepEqual([...value.privateData.subarray(0, 7)], [...privateData]);
    },
    needs,
  );

  claim(
    'datagrams with another Q_Key do not come in',
    async (pair) => {
      const [client, server] = [side(pair.active), side(pair.passive, { qkey: 0x1111 })];
      server.ep.postRecv(server.lmr.segment(0, 100), 1);
      const to = (qkey: number) =>
        client.ep.createAddressHandle({ address: pair.passiveAddress, qpn: server.ep.qpn, qkey });
      client.lmr.bytes.set([1, 2]);
      client.ep.postSendUd(client.lmr.segment(0, 1), to(0x2222), 1);
      client.ep.postSendUd(client.lmr.segment(1, 1), to(0x1111), 2);
      assert.deepEqual([(await next(client)).status, (await next(client)).status], [0, 0]);
      await next(server);
      assert.equal(server.lmr.bytes[GRH_BYTES], 2);
    },
    needs,
  );

  claim(
    'closing the adapter ends a resolution that is under way, and services',
    async (pair) => {
      const client = side(pair.active);
      const served = side(pair.passive).ep.serve({ connQual: CONN_QUAL });
      const outcome = rejection(client.ep.resolve(resolving(pair)));
      await pair.active.close();
      assert.equal((await outcome).code, 'DAT_ABORT');
      await pair.passive.close();
      assert.ok(served.isFreed);
    },
    needs,
  );
});
