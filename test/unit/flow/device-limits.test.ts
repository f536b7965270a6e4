// What is longer than the device takes is refused with the limit, or split; nothing is cut.
import assert from 'node:assert/strict';
import { acceptChannel, channel, offerChannel } from '../../../core/flow/channel/index.js';
import { connect, type Connection, listen } from '../../../core/flow/index.js';
import { type Ia, openIa } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { rsocket } from '../../../samples/ulp/rsocket/index.js';
import { sdp } from '../../../samples/ulp/sdp/index.js';
import type { ByteStream, ByteStreamProtocol } from '../../../samples/ulp/socket/index.js';
import { CLIENT, failureOf, PORT, SERVER } from '../../support/flow-scene.js';
import { withLimits } from '../../support/small-device.js';

const MOST = 65_536;
const MOST_REGION = 1 << 23;

function counted(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, at) => at % 251);
}

describe('A device of short messages and small regions', () => {
  let client: Ia;
  let server: Ia;

  beforeEach(async () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const limits = { maxMessageBytes: MOST, maxMemoryRegionBytes: MOST_REGION };
    client = await openIa(withLimits(mock({ fabric, address: CLIENT }), limits));
    server = await openIa(withLimits(mock({ fabric, address: SERVER }), limits));
  });

  afterEach(async () => {
    await Promise.all([client.close('abrupt'), server.close('abrupt')]);
  });

  it('registers no more than its limit, which is named', () => {
    const pz = client.createPz();
    const text = /8388609 bytes; .* at most 8388608/;
    const memory = new ArrayBuffer(MOST_REGION + 1);
    assert.throws(() => client.createLmr(memory, { pz }), {
      code: 'DAT_LENGTH_ERROR',
      message: text,
    });
    assert.throws(() => client.allocate(MOST_REGION + 1, { pz }), { message: /8388609.*8388608/ });
    assert.equal(client.createLmr(memory.slice(1), { pz }).lengthBytes, MOST_REGION);
  });

  it('sends, writes and reads no more than its limit, which is named, and goes on', async () => {
    const receives = { buffers: 4, bufferBytes: 4 * MOST };
    const listener = await listen(server, { port: PORT, receives });
    const [near, far] = await Promise.all([
      connect(client, { address: SERVER, port: PORT, receives }),
      listener.accept(),
    ]);
    assert.equal(near.maxMessageBytes, MOST);
    const grant = far.expose(4 * MOST, 'read-write');
    const much = counted(MOST + 1);
    for (const call of [near.send(much), near.write(much, grant), near.read(much, grant)]) {
      const { code, message } = await failureOf(call);
      assert.equal(code, 'DAT_LENGTH_ERROR');
      assert.match(message, /65537 bytes.* 65536/);
    }
    const sent = near.send(much.subarray(1));
    const message = await far.receive();
    assert.deepEqual(new Uint8Array(message.bytes), much.slice(1));
    await sent;
  });

  it('splits the messages of a channel', async () => {
    const limits = { buffers: 4, bufferBytes: 4 * MOST };
    const listener = await listen(server, { port: PORT, ...acceptChannel(limits) });
    const [near, far] = await Promise.all([
      connect(client, { address: SERVER, port: PORT, ...offerChannel(limits) }),
      listener.accept(),
    ]);
    const [one, other] = [near, far].map((conn: Connection) => channel(conn));
    const sent = one!.send(counted(500_000));
    assert.deepEqual(await other!.receive(), counted(500_000));
    await sent;
  });

  const protocols: Readonly<Record<string, (ia: Ia) => ByteStreamProtocol>> = {
    rsocket: (ia) => rsocket(ia, { messageBytes: 4 * MOST }),
    'SDP, by reads': (ia) => sdp(ia, { zeroCopyBytes: MOST }),
    'SDP, by writes': (ia) => sdp(ia, { zeroCopyBytes: MOST, offersSink: true }),
  };
  for (const [name, over] of Object.entries(protocols)) {
    it(`splits a stream: ${name}`, async () => {
      const bytes = counted(500_000);
      assert.deepEqual(await carried(over(client), over(server), bytes), bytes);
    });
  }
});

/** What comes of bytes that are written to a stream. */
async function carried(
  here: ByteStreamProtocol,
  there: ByteStreamProtocol,
  bytes: Uint8Array,
): Promise<Uint8Array> {
  const received: number[] = [];
  return new Promise((resolve, reject) => {
    const take = (stream: ByteStream): void => {
      for (let view = stream.peek(); view !== undefined; view = stream.peek()) {
        for (const byte of view) received.push(byte);
        stream.consume(view.length);
      }
      if (received.length === bytes.length) resolve(Uint8Array.from(received));
    };
    const start = (stream: ByteStream): void => {
      stream.start({ onReadable: () => take(stream), onClose: reject });
    };
    const listens = there.listen({
      ...{ port: PORT, backlog: 1, admit: () => true },
      onStream: start,
      onError: reject,
    });
    void listens
      .then(() => here.connect({ address: SERVER, port: PORT }))
      .then((stream) => {
        start(stream);
        stream.write([bytes], (error) => error && reject(error));
      })
      .catch(reject);
  });
}
