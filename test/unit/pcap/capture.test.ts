import assert from 'node:assert/strict';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ia, openIa } from 'dapl';
import { capture, mergeCaptures } from 'dapl/plugins/pcap';
import { Fabric, mock } from 'dapl/providers/mock';
import { type ConfiguredPlugin, definePlugin, SpiError } from 'dapl/spi';
import { icrcFault } from '../../guest/icrc.js';
import { FakeProvider } from '../../support/fake-provider.js';
import { MESSAGE_BYTES, PAIRS, talk } from '../../support/captured-pairs.js';

interface Packet {
  readonly interfaceId: number;
  readonly timeUs: number;
  readonly outbound: boolean;
  /** From the IP header on. */
  readonly bytes: Buffer;
}

/** Blocks of a pcapng file, with their lengths checked at both ends. */
function readPcapng(file: string): { readonly interfaces: number; readonly packets: Packet[] } {
  const bytes = readFileSync(file);
  const packets: Packet[] = [];
  let interfaces = 0;
  assert.equal(bytes.readUInt32LE(0), 0x0a0d0d0a);
  for (let at = 0; at < bytes.length;) {
    const type = bytes.readUInt32LE(at);
    const length = bytes.readUInt32LE(at + 4);
    assert.equal(length % 4, 0);
    assert.equal(bytes.readUInt32LE(at + length - 4), length);
    if (type === 1) interfaces++;
    if (type === 6) {
      const captured = bytes.readUInt32LE(at + 20);
      packets.push({
        interfaceId: bytes.readUInt32LE(at + 8),
        timeUs: bytes.readUInt32LE(at + 12) * 2 ** 32 + bytes.readUInt32LE(at + 16),
        outbound: bytes.readUInt32LE(at + length - 12) === 2,
        bytes: bytes.subarray(at + 28, at + 28 + captured),
      });
    }
    at += length;
  }
  return { interfaces, packets };
}

/** With the link header that the ICRC's checker wants. */
function asEthernet(ip: Buffer): Buffer {
  const header = Buffer.alloc(14);
  header.writeUInt16BE((ip[0] ?? 0) >> 4 === 4 ? 0x0800 : 0x86dd, 12);
  return Buffer.concat([header, ip]);
}

function bthOf({ bytes }: Packet): number {
  const ipv4 = (bytes[0] ?? 0) >> 4 === 4;
  return (ipv4 ? 20 : 40) + 8;
}

/** Bytes that a send carries; 0 for other packets. */
function payloadBytes(packet: Packet): number {
  const { bytes } = packet;
  const bth = bthOf(packet);
  const isSend = (bytes[bth] ?? 0xff) <= 4;
  const pad = ((bytes[bth + 1] ?? 0) >> 4) & 3;
  return isSend ? bytes.length - bth - 12 - pad - 4 : 0;
}

const mockAlone = (): ConfiguredPlugin<'provider'> =>
  mock({ fabric: new Fabric(), address: '10.0.0.1' });

describe('capture', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-pcap-'));
    file = join(folder, 'out.pcapng');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  for (const [name, open] of Object.entries(PAIRS)) {
    it(`shows both directions of ${name}, with right ICRCs`, async () => {
      await talk(...(await open(file)));
      const { interfaces, packets } = readPcapng(file);
      assert.equal(interfaces, 1);
      assert.ok(packets.some(({ outbound }) => outbound));
      assert.ok(packets.some(({ outbound }) => !outbound));
      for (const { bytes } of packets) assert.equal(icrcFault(asEthernet(bytes)), undefined);
      const times = packets.map(({ timeUs }) => timeUs);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
      // A requester that hears nothing for a while, as on a busy machine, repeats a packet.
      const sends = new Map<number, number>();
      for (const packet of packets) {
        const bytes = payloadBytes(packet);
        if (bytes > 0) sends.set(packet.bytes.readUIntBE(bthOf(packet) + 9, 3), bytes);
      }
      assert.equal(
        [...sends.values()].reduce((sum, bytes) => sum + bytes, 0),
        MESSAGE_BYTES,
      );
    });
  }

  it('has an interface for each device that shares the file', async () => {
    const fabric = new Fabric({ autoRun: true });
    const open = (address: string): Promise<Ia> =>
      openIa(capture(mock({ fabric, address }), { file }));
    await talk(await open('10.0.0.1'), await open('10.0.0.2'));
    const { interfaces, packets } = readPcapng(file);
    assert.equal(interfaces, 2);
    const side = (id: number, outbound: boolean): number =>
      packets.filter((packet) => packet.interfaceId === id && packet.outbound === outbound).length;
    assert.ok(side(0, true) > 0 && side(1, true) > 0);
    assert.ok(side(1, false) >= side(0, true) - 1);
  });

  it('is asked for by DAPL_PCAP', async () => {
    process.env['DAPL_PCAP'] = file;
    try {
      const fabric = new Fabric({ autoRun: true });
      const open = (address: string): Promise<Ia> => openIa(mock({ fabric, address }));
      await talk(await open('10.0.0.1'), await open('10.0.0.2'));
    } finally {
      delete process.env['DAPL_PCAP'];
    }
    assert.equal(readPcapng(file).interfaces, 2);
  });

  it('has no file of a provider that has no packets of its own', async () => {
    const ia = await openIa(capture(new FakeProvider().plugin(), { file }));
    await ia.close();
    assert.equal(existsSync(file), false);
  });

  it('is for its owner alone, whatever the umask', async () => {
    const before = process.umask(0);
    try {
      await (await openIa(capture(mockAlone(), { file }))).close();
      mergeCaptures([file], join(folder, 'merged'));
    } finally {
      process.umask(before);
    }
    for (const path of [file, join(folder, 'merged')]) {
      assert.equal((statSync(path).mode & 0o777).toString(8), '600', path);
    }
  });

  it('is written to no file that a link in its place leads to', async () => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'stays');
    symlinkSync(victim, file);
    const opening = openIa(capture(mockAlone(), { file }));
    await assert.rejects(
      opening,
      /capture: .*out\.pcapng is a symbolic link, which is not followed/,
    );
    assert.throws(() => mergeCaptures([], file), /is a symbolic link, which is not followed/);
    assert.equal(readFileSync(victim, 'utf8'), 'stays');
    const nowhere = join(folder, 'nowhere');
    rmSync(file);
    symlinkSync(nowhere, file);
    await assert.rejects(openIa(capture(mockAlone(), { file })), /is a symbolic link/);
    assert.equal(existsSync(nowhere), false);
  });

  it('leaves a device as it is that is open already', async () => {
    const fabric = new Fabric({ autoRun: true });
    const provider = mock({ fabric, address: '10.0.0.1' });
    const first = await openIa(provider);
    const other = await openIa(mock({ fabric, address: '10.0.0.2' }));
    await talk(await openIa(capture(provider, { file })), other);
    await first.close();
    assert.equal(existsSync(file), false);
  });

  it('says why it cannot begin, and leaves nothing open', async () => {
    const provider = mock({ fabric: new Fabric(), address: '10.0.0.1' });
    assert.throws(() => capture(provider, { file: '' }), /^DatError: capture: file is "";/);
    const none = {} as never;
    assert.throws(() => capture(none, { file: 'x' }), /^DatError: capture: the provider is an obj/);
    const nowhere = capture(provider, { file: join(folder, 'no', 'such', 'folder') });
    await assert.rejects(openIa(nowhere), /capture: ENOENT/);
    const failing = definePlugin(
      { name: 'failing', kind: 'provider', sdkVersion: '2.0', requires: [], provides: [] },
      () => ({
        deviceKey: 'failing',
        open: async () => {
          throw new SpiError('EADDRINUSE', 'taken');
        },
      }),
    );
    await assert.rejects(openIa(capture(failing(undefined), { file })), /taken/);
    assert.equal(existsSync(file), false);
    await (await openIa(capture(provider, { file }))).close();
    assert.equal(readPcapng(file).interfaces, 1);
  });
});
