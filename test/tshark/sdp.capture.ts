/** Every field of SDP that Wireshark's dissector knows is what we meant, message by message. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { sdp, type SdpOptions, type TapEvent } from '../../samples/ulp/sdp/index.js';
import { ipBytes } from '../../samples/ulp/sdp/transport/hellos.js';
import { emitHello, emitHelloAck } from '../../samples/ulp/sdp/wire/index.js';
import { End, pattern, timeOf } from '../unit/samples/ulp/sdp/scene.js';
import { writePcap } from '../guest/pcap.js';
import { complaintOf, decode, type Decoded } from './decode.js';
import { frameOf } from './frames.js';

const PORT = 7000;
const SEND_ONLY = 4;
const CM_REP = 0x13;
const BSDH = 'infiniband_sdp.bsdh.';
const HEADERS: Readonly<Record<number, string>> = {
  0x00: 'infiniband_sdp.hh',
  0x01: 'infiniband_sdp.hah',
  0x05: 'infiniband_sdp.rwch',
  0x06: 'infiniband_sdp.rrch',
  0x07: 'infiniband_sdp.mch',
  0x0b: 'infiniband_sdp.crbh',
  0x0c: 'infiniband_sdp.crbah',
  0xfd: 'infiniband_sdp.sinkah',
  0xfe: 'infiniband_sdp.srcah',
};
const HELLO_FIELDS = {
  majv: (hello: DataView) => hello.getUint8(16) >> 4,
  minv: (hello: DataView) => hello.getUint8(16) & 15,
  ipv: (hello: DataView) => hello.getUint8(17) >> 4,
  cap: (hello: DataView) => hello.getUint8(17) & 15,
  maxadverts: (hello: DataView) => hello.getUint8(19),
  desremrcvsz: (hello: DataView) => hello.getUint32(20),
  localrcvsz: (hello: DataView) => hello.getUint32(24),
  localport: (hello: DataView) => hello.getUint16(28),
};
/**
 * The three flags are compared as one byte: what the dissector (4.0.17) shows as each of them is
 * read from somewhere else.
 */
const FIELDS = [
  'ip.src',
  ...['mid', 'flags', 'bufs', 'len', 'mseq', 'mseqack'].map((name) => BSDH + name),
  ...Object.values(HEADERS),
  ...Object.keys(HELLO_FIELDS).map((name) => `infiniband_sdp.hh.${name}`),
  'infiniband_sdp.hh.src_ip',
  'infiniband_sdp.hh.dst_ip',
];

/** Lives that between them send every message that we send. */
const LIVES: Readonly<Record<string, SdpOptions>> = {
  buffered: { zeroCopy: 'BUFFERED', desiredPeerBytes: 1024, maxReceiveBytes: 2048 },
  combined: { zeroCopy: 'COMBINED' },
  pipelined: { zeroCopy: 'PIPELINED' },
  'pipelined, with SinkAvail': { zeroCopy: 'PIPELINED', offersSink: true },
};
const SIZES: SdpOptions = {
  ...{ receives: 8, receiveBytes: 512, maxReceiveBytes: 1024, desiredPeerBytes: 512 },
  ...{ zeroCopyBytes: 2000, advertBytes: 4096, areaBytes: 4096, areas: 2, advertMs: 300 },
};

interface Meant {
  readonly address: string;
  readonly bytes: Uint8Array;
}

describe('tshark reads SDP as we meant it', function () {
  this.timeout(120_000);
  let directory = '';
  const kinds = new Set<number>();
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'dapl-tshark-sdp-'));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  for (const [name, options] of Object.entries(LIVES)) {
    it(`${name}: every field of every message`, async () => {
      const meant: Meant[] = [];
      const frames = await live({ ...SIZES, ...options }, meant);
      const file = join(directory, 'sdp.pcap');
      writePcap(file, frames);
      const packets = await decode(file, FIELDS, ['infiniband_sdp']);
      assert.deepEqual(
        packets.filter((packet) => !isEmptyData(packet)).flatMap((each) => complaintOf(each) ?? []),
        [],
      );
      const read = packets.filter(isMessage);
      for (const address of new Set(meant.map((each) => each.address))) {
        // The Hello has a test of its own: of a REQ the dissector reads no private data.
        const ours = meant.filter((each) => each.address === address && each.bytes[0] !== 0);
        const theirs = read.filter((packet) => packet['ip.src'] === address);
        assert.equal(theirs.length, ours.length, `messages of ${address}`);
        ours.forEach(({ bytes }, i) => compare(theirs[i] as Decoded, bytes));
        for (const { bytes } of ours) kinds.add(bytes[0] as number);
      }
    });
  }

  it('Hello, sent as a message', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: true, mtuBytes: 4096 });
    const frames: Buffer[] = [];
    fabric.tap = (event, packet) => void (event === 'sent' && frames.push(frameOf(packet)));
    const hello = emitHello({
      ...{ bufs: 0x0340, version: 0x22, isIpv6: false, maxAdverts: 4, localPort: 49_152 },
      ...{ desiredRemoteBytes: 32_768, localBytes: 16_384 },
      ...{ source: ipBytes('192.0.2.1'), destination: ipBytes('192.0.2.2') },
    });
    await sendRaw(fabric, hello);
    const file = join(directory, 'hello.pcap');
    writePcap(file, frames);
    const packets = await decode(file, FIELDS, ['infiniband_sdp']);
    const read = packets.filter(isMessage).filter((packet) => packet['infiniband_sdp.hh'] !== '');
    assert.equal(read.length, 1);
    compare(read[0] as Decoded, hello);
    kinds.add(0);
  });

  it('between them: every message that is sent at all', () => {
    const sent = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xfd, 0xfe, 0xff];
    assert.deepEqual(
      sent.filter((kind) => !kinds.has(kind)),
      [],
    );
  });
});

/** Of what it takes for SDP besides, that are answers to RDMA Reads and empty CM messages. */
function isMessage(packet: Decoded): boolean {
  if (packet[`${BSDH}mid`] === '') return false;
  const isReply = Number(packet['infiniband.mad.attributeid']) === CM_REP;
  return Number(packet['infiniband.bth.opcode']) === SEND_ONLY || isReply;
}

/** A message to a service id of SDP, from endpoints that know nothing of it. */
async function sendRaw(fabric: Fabric, bytes: Uint8Array): Promise<void> {
  const [here, there] = [
    await openIa(mock({ fabric, address: '192.0.2.1' })),
    await openIa(mock({ fabric, address: '192.0.2.2' })),
  ];
  const [pz, farPz] = [here.createPz(), there.createPz()];
  const [ep, far] = [here.createEndpoint({ pz }), there.createEndpoint({ pz: farPz })];
  far.postRecv(there.allocate(256, { pz: farPz }).segment());
  const ack = emitHelloAck({
    ...{ bufs: 1, version: 0x22, isIpv6: false, maxAdverts: 1, actualBytes: 256 },
  });
  const serviceId = 0x1_0000n + BigInt(PORT);
  there
    .createPsp({ serviceId })
    .requests$.subscribe(({ cr }) => cr.accept(far, { privateData: ack }));
  const open = new Promise((resolve) => ep.connection$.subscribe(resolve));
  ep.connect({ address: '192.0.2.2', serviceId, privateData: bytes });
  await open;
  const came = new Promise((resolve) => far.completions$.subscribe(resolve));
  const lmr = here.allocate(256, { pz });
  lmr.bytes.set(bytes);
  ep.postSend(lmr.segment(0, bytes.length));
  await came;
  await Promise.all([here.close(), there.close()]);
}

/**
 * The dissector wants a byte behind the header of Data, and calls a mere credit update malformed.
 */
function isEmptyData(packet: Decoded): boolean {
  return Number(packet[`${BSDH}mid`]) === 0xff && Number(packet[`${BSDH}len`]) === 16;
}

function compare(packet: Decoded, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const mid = view.getUint8(0);
  const at = `frame ${packet['frame.number']}`;
  const field = (name: string): number => Number(packet[BSDH + name]);
  assert.deepEqual(
    ['mid', 'flags', 'bufs', 'len', 'mseq', 'mseqack'].map(field),
    [
      mid,
      view.getUint8(1),
      view.getUint16(2),
      view.getUint32(4),
      view.getUint32(8),
      view.getUint32(12),
    ],
    at,
  );
  for (const [kind, header] of Object.entries(HEADERS)) {
    assert.equal(packet[header] !== '', Number(kind) === mid, `${at}: ${header}`);
  }
  if (mid !== 0) return;
  for (const [name, valueOf] of Object.entries(HELLO_FIELDS)) {
    assert.equal(Number(packet[`infiniband_sdp.hh.${name}`]), valueOf(view), `${at}: ${name}`);
  }
  assert.equal(packet['infiniband_sdp.hh.src_ip'], '::192.0.2.1', at);
  assert.equal(packet['infiniband_sdp.hh.dst_ip'], '::192.0.2.2', at);
}

/** @returns the packets of a life: both ways, slow readers, urgent bytes, a close and an abort */
async function live(options: SdpOptions, meant: Meant[]): Promise<Buffer[]> {
  const fabric = new Fabric({ seed: 1, autoRun: true, mtuBytes: 4096 });
  const frames: Buffer[] = [];
  fabric.tap = (event, packet) => void (event === 'sent' && frames.push(frameOf(packet)));
  const tap = (phase: string, event: TapEvent, local: string): void => {
    if (phase !== 'sent' || event.kind !== 'message') return;
    meant.push({ address: local.slice(0, local.lastIndexOf(':')), bytes: event.bytes });
  };
  const [here, there] = [
    await openIa(mock({ fabric, address: '192.0.2.1' })),
    await openIa(mock({ fabric, address: '192.0.2.2' })),
  ];
  const [client, server] = [here, there].map((ia) =>
    sdp(ia, { ...options, tap, time: timeOf(fabric) }),
  );
  const ends: End[] = [];
  const listener = await server?.listen({
    ...{ port: PORT, backlog: 4, admit: () => true, onError: () => undefined },
    onStream: (stream) => ends.push(new End(stream, ends.length > 0)),
  });
  const pass = (ms: number): Promise<void> => fabric.run({ forUs: ms * 1000 });
  for (const isAborted of [false, true]) {
    const stream = await client?.connect({ address: '192.0.2.2', port: PORT });
    if (stream === undefined) break;
    const near = new End(stream);
    await pass(5);
    const far = ends.at(-1);
    if (far === undefined) break;
    const writing = Promise.all([near.write(pattern(20_000)), far.write(pattern(20_000))]);
    await pass(2000);
    far.isReading = true;
    far.read();
    await writing;
    near.stream.sendUrgent(1);
    for (let i = 0; i < 3; i++) await near.write(pattern(20_000));
    await pass(100);
    if (isAborted) far.stream.abort();
    else await Promise.all([near.shutdown(), far.shutdown(), near.ended(), far.ended()]);
    await pass(100);
    near.stream.close();
    far.stream.close();
    await Promise.all([near.closed, far.closed]);
  }
  await listener?.close();
  await pass(100);
  await Promise.all([here, there].map((ia) => ia?.close()));
  return frames;
}
