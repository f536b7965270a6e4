/** Datagram services: how a resolution can end, and what a service may answer. */
import assert from 'node:assert/strict';
import { DatError, type ServiceRequest } from '../../../core/index.js';
import {
  CLIENT,
  CONN_QUAL,
  hcaOf,
  SERVER,
  settled,
  udPair,
  type UdPair,
} from '../../support/ud-pair.js';

/** With what to do, which is for the peer. */
const NOT_SERVED = new RegExp(
  `port ${CONN_QUAL} of ${SERVER}: nobody serves datagrams there ` +
    `\\(the peer serves it by ep\\.serve\\({ connQual: ${CONN_QUAL} }\\)\\)`,
);

const code = (name: string, message?: RegExp) => (error: unknown) =>
  DatError.isDatError(error) && error.code === name && (message?.test(error.message) ?? true);

type Resolve = Parameters<UdPair['client']['ep']['resolve']>[0];

const resolve = ({ client }: UdPair, options: Partial<Resolve> = {}) =>
  client.ep.resolve({ address: SERVER, connQual: CONN_QUAL, ...options });

/** Rejects with that code. */
async function assertRejects(
  { fabric }: UdPair,
  call: Promise<unknown>,
  name: string,
  message?: RegExp,
): Promise<void> {
  await settled(fabric, assert.rejects(call, code(name, message)));
}

describe('Datagram service: resolving', () => {
  it('survives the loss of question and answer; the consumer is asked once', async () => {
    const pair = await udPair();
    let asked = 0;
    pair.server.ep.serve({ connQual: CONN_QUAL, answer: () => (asked++, undefined) });
    for (const attributeId of [0x17, 0x18]) {
      pair.fabric.faults.add({ match: { mad: { attributeId } }, action: { type: 'drop' } });
    }
    const handle = resolve(pair);
    await settled(pair.fabric, handle);
    assert.equal((await handle).qpn, pair.server.ep.qpn);
    assert.equal(asked, 1);
    await pair.close();
  });

  it('ends in time, by a signal, by the endpoint’s end, or by silence: once', async () => {
    const pair = await udPair();
    const { fabric, client } = pair;
    const silent = { type: 'drop' } as const;
    fabric.faults.add({ match: { to: SERVER, count: Infinity }, action: silent });
    const timed = resolve(pair, { timeoutMs: 1500 });
    await assertRejects(pair, timed, 'DAT_TIMEOUT_EXPIRED', /after 1500 ms/);
    const controller = new AbortController();
    const aborted = resolve(pair, { signal: controller.signal });
    controller.abort(new Error('no more'));
    await assertRejects(pair, aborted, 'DAT_INTERRUPTED_CALL');
    const { signal } = controller;
    await assertRejects(pair, resolve(pair, { signal }), 'DAT_INTERRUPTED_CALL');
    await assertRejects(pair, resolve(pair), 'DAT_INVALID_ADDRESS', /no answer/);
    const freed = resolve(pair);
    client.ep.free();
    await assertRejects(pair, freed, 'DAT_ABORT', /ended by ep.free/);
    await pair.close();
  });

  it('hears from the network that nobody is there', async () => {
    const pair = await udPair();
    const begin = pair.fabric.clock.now();
    const nobody = resolve(pair, { address: '192.0.2.99' });
    await assertRejects(pair, nobody, 'DAT_INVALID_ADDRESS', /ICMP .* reported for 3 messages/);
    const waitedUs = pair.fabric.clock.now() - begin;
    assert.ok(waitedUs >= 1_000_000 && waitedUs < 5_000_000, `${waitedUs} us`);
    await pair.close();
  });

  it('refuses bad input as a rejection', async () => {
    const pair = await udPair();
    const cases: [Partial<Record<keyof Resolve, unknown>>, string, RegExp?][] = [
      [{ address: 'x' }, 'DAT_INVALID_ADDRESS'],
      [{ address: 5 }, 'DAT_INVALID_PARAMETER', /address/],
      [{ address: 'fd00::1' }, 'DAT_INVALID_ADDRESS', /IPv6/],
      [{ connQual: 65536 }, 'DAT_INVALID_PARAMETER', /connQual/],
      [{ timeoutMs: 0 }, 'DAT_INVALID_PARAMETER', /timeoutMs/],
      [{ privateData: new Uint8Array(181) }, 'DAT_INVALID_PARAMETER', /181 bytes; at most 180/],
      [{ signal: {} }, 'DAT_INVALID_PARAMETER', /signal/],
    ];
    for (const [options, name, message] of cases) {
      await assertRejects(pair, resolve(pair, options as never), name, message);
    }
    await assertRejects(pair, pair.client.ep.resolve(undefined as never), 'DAT_INVALID_PARAMETER');
    await pair.close();
  });
});

describe('Datagram service: serving', () => {
  it('tells who asks', async () => {
    const pair = await udPair();
    const seen: ServiceRequest[] = [];
    pair.server.ep.serve({
      connQual: CONN_QUAL,
      answer: (request) => {
        seen.push(request);
        return {};
      },
    });
    await settled(pair.fabric, resolve(pair, { privateData: Uint8Array.of(1, 2) }));
    const [request] = seen;
    assert.deepEqual([request?.address, request?.localAddress], [CLIENT, SERVER]);
    assert.deepEqual([...(request?.privateData.subarray(0, 3) ?? [])], [1, 2, 0]);
    assert.ok((request?.port ?? 0) >= 32_768);
    await pair.close();
  });

  it('is refused when its answer throws or cannot be sent; the program goes on', async () => {
    const pair = await udPair();
    const answers = [
      () => {
        throw new Error('oh');
      },
      () => ({ privateData: new Uint8Array(137) }),
      () => ({ privateData: 'text' as never }),
    ];
    for (const answer of answers) {
      const service = pair.server.ep.serve({ connQual: CONN_QUAL, answer });
      await assertRejects(pair, resolve(pair), 'DAT_CONN_QUAL_UNAVAILABLE', /service refused/);
      service.free();
    }
    await pair.close();
  });

  it('is one at a time on a connection qualifier, beside a service point on the same', async () => {
    const pair = await udPair();
    const { server } = pair;
    server.ia.createPsp({ connQual: CONN_QUAL });
    const service = server.ep.serve({ connQual: CONN_QUAL });
    const again = () => server.ep.serve({ connQual: CONN_QUAL });
    assert.throws(again, code('DAT_CONN_QUAL_IN_USE'));
    service.free();
    service.free();
    await assertRejects(pair, resolve(pair), 'DAT_CONN_QUAL_UNAVAILABLE', NOT_SERVED);
    again();
    await settled(pair.fabric, resolve(pair));
    await pair.close();
  });

  it('tells the queue pair of the endpoint’s present life', async () => {
    const pair = await udPair();
    const { server, fabric } = pair;
    server.ep.serve({ connQual: CONN_QUAL });
    const hca = hcaOf(fabric, SERVER);
    const { qpn } = server.ep;
    [...hca.queuePairs].find((qp) => qp.qpn === qpn)?.eventHandler(1);
    server.ep.reset();
    const handle = resolve(pair);
    await settled(fabric, handle);
    assert.equal((await handle).qpn, server.ep.qpn);
    assert.notEqual(server.ep.qpn, qpn);
    await pair.close();
  });
});
