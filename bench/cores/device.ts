/** The device of an end: posts the slots that it is given, tells how many have finished. */
import {
  DatDtoStatus,
  DatEventNumber,
  EventBatch,
  type Ep,
  MemPrivileges,
  nameOf,
  openIa,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import type { Job } from './job.js';

const CONN_QUAL = 7600;
/** Longer than anything that works takes, however busy the machine. */
const CONNECT_TIMEOUT_MS = 30_000;
const { SUCCESS } = DatDtoStatus;

/** Gives so many more slots to the device, in their order. */
export type Give = (count: number) => void;

/** @returns when the connection stands (client), or when one can be made (server) */
export async function openDevice(
  job: Job,
  memory: SharedArrayBuffer,
  onFinished: (count: number) => void,
): Promise<Give> {
  const { role, mode, local, remote, messageBytes, depth, thread } = job;
  const shared = mode === 'slots';
  const ia = await openIa(softroce({ addresses: [local], shm: false, ...(shared && { shared }) }));
  const connQual = CONN_QUAL + thread;
  const pz = ia.createPz();
  const privileges = MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE;
  const lmr = ia.createLmr(new Uint8Array(memory), { pz, privileges });
  const evd = ia.createEvd({ qlen: 4 * depth, polling: 'event' });
  const attributes = { maxRecvDtos: depth, maxRequestDtos: depth };
  const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes });
  const segments = Array.from({ length: depth }, (_, i) =>
    lmr.segment(i * messageBytes, messageBytes),
  );
  let next = 0;
  const give: Give = (count) =>
    ep.burst(() => {
      for (let i = 0; i < count; i++) {
        if (role === 'client') ep.postSend(segments[next]!, next);
        else ep.postRecv(segments[next]!, next);
        next = (next + 1) % depth;
      }
    });
  const batch = new EventBatch(depth);
  evd.modifyUpcall('NOTIFY', () => {
    const count = evd.dequeueInto(batch);
    const failed = batch.statuses.subarray(0, count).find((status) => status !== SUCCESS);
    if (failed === undefined) onFinished(count);
    else if (role === 'client') throw new Error(`a SEND: ${nameOf(DatDtoStatus, failed)}`);
  });
  if (role === 'client') {
    ep.connect({ address: remote, connQual, timeoutMs: CONNECT_TIMEOUT_MS });
    await established(ep);
  } else {
    ia.createPsp({ connQual }).requests$.subscribe(({ cr }) => cr?.accept(ep));
  }
  return give;
}

function established(ep: Ep): Promise<void> {
  return new Promise((resolve, reject) => {
    ep.connection$.subscribe(({ number }) => {
      if (number === DatEventNumber.ESTABLISHED) resolve();
      else reject(new Error('no connection'));
    });
  });
}
