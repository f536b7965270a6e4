/** Two adapters that talk while a capture listens. */
import assert from 'node:assert/strict';
import { DatDtoStatus, type DatEvent, EvdFlags, type Ia, openIa } from 'dapl';
import { capture } from 'dapl/plugins/pcap';
import { Fabric, mock } from 'dapl/providers/mock';
import { type SoftroceOptions, softroce } from 'dapl/providers/softroce';
import { loopback } from './loopback.js';

/** Several packets, and a pad. */
export const MESSAGE_BYTES = 9001;

/** Pairs of adapters; the first one's packets go to a file. */
export const PAIRS: Readonly<Record<string, (file: string) => Promise<[Ia, Ia]>>> = {
  'mock, IPv4': (file) => onMock(file, '10.0.0.1', '10.0.0.2'),
  'mock, IPv6': (file) => onMock(file, '2001:db8::1', '2001:db8::2'),
  'softroce over the native port': (file) => onSoftroce(file, { port: 'native', mtuBytes: 4096 }),
  'softroce over the dgram port': (file) => onSoftroce(file, { port: 'dgram' }),
};

async function onMock(file: string, one: string, other: string): Promise<[Ia, Ia]> {
  const fabric = new Fabric({ autoRun: true });
  const listened = capture(mock({ fabric, address: one }), { file });
  return [await openIa(listened), await openIa(mock({ fabric, address: other }))];
}

/** @param options `mtuBytes`: by default none, and two native ports agree on long packets */
export async function onSoftroce(
  file: string,
  options: Pick<SoftroceOptions, 'port' | 'mtuBytes'>,
): Promise<[Ia, Ia]> {
  const [near, far] = [[loopback(74, 1)], [loopback(74, 2)]];
  const listened = capture(softroce({ addresses: near, shm: false, ...options }), { file });
  return [
    await openIa(listened),
    await openIa(softroce({ addresses: far, shm: false, ...options })),
  ];
}

/** One message from one to the other, and the end of both. */
export async function talk(from: Ia, to: Ia): Promise<void> {
  const serverPz = to.createPz();
  const inbox = to.allocate(10_000, { pz: serverPz });
  const serverEp = to.createEndpoint({ pz: serverPz });
  serverEp.postRecv(inbox.segment(), 1);
  to.createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => cr.accept(serverEp));
  const arrival = new Promise<DatEvent>((resolve) => serverEp.completions$.subscribe(resolve));
  const pz = from.createPz();
  const outbox = from.allocate(10_000, { pz });
  outbox.bytes.fill(0x41);
  const evd = from.createEvd({ qlen: 16, streams: EvdFlags.DTO | EvdFlags.CONNECTION });
  const ep = from.createEndpoint({ pz, connectEvd: evd, requestEvd: evd, recvEvd: evd });
  ep.connect({ address: to.address, connQual: 7 });
  await evd.wait();
  ep.postSend(outbox.segment(0, MESSAGE_BYTES), 2);
  const sent = (await evd.wait()).event;
  assert.ok(sent.type === 'dto' && sent.status === DatDtoStatus.SUCCESS);
  await arrival;
  await from.close();
  await to.close();
}
