/** Parts of a life that make calls which a plain connection does not. */
import { setImmediate as turn } from 'node:timers/promises';
import { DatEventNumber, type Ep, type UdEp } from 'dapl';
import { type SharedReceiveQueue, WrOpcode } from '../../core/spi/index.js';
import { CmSwitch, loadCmFake } from './cm-host.js';
import type { LifeScene } from './life.js';
import { CONN_QUAL, PASSIVE } from './life-addresses.js';
import { Process } from './xrc-process.js';

const GROUP = '239.1.2.3';
const UNALIGNED = 7;

/** The passive side is asleep when the message comes: the completion channel wakes it. */
export async function sleepingConsumer({ here, there, next }: LifeScene): Promise<void> {
  const woken = next(there.evd, 'dto');
  await turn();
  here.ep.postSend(here.lmr.segment(0, 64), 4);
  await Promise.all([woken, next(here.evd, 'dto')]);
}

/** At a random address where that agrees with the memory, at the memory's own where it does not. */
export function regions({ here: { ia, pz } }: LifeScene): void {
  ia.createLmr(new Uint8Array(8192).subarray(UNALIGNED), { pz }).free();
}

export function groups(endpoint: UdEp): void {
  endpoint.joinMulticast(GROUP);
  endpoint.leaveMulticast(GROUP);
}

export async function rejection({ here, there, next }: LifeScene): Promise<void> {
  const psp = there.ia.createPsp({ connQual: CONN_QUAL + 1, evd: there.evd });
  const ep = endpoint(here);
  ep.connect({ address: PASSIVE, connQual: CONN_QUAL + 1 });
  const request = await next(there.evd, 'connection-request');
  if (request.type === 'connection-request') request.cr.reject();
  await next(here.evd, 'connection', DatEventNumber.PEER_REJECTED);
  psp.free();
  ep.free();
}

/** The RTU is lost: the first message establishes the connection, and the CM is told. */
export async function earlyData({ here, there, next }: LifeScene): Promise<void> {
  const psp = there.ia.createPsp({ connQual: CONN_QUAL + 2, evd: there.evd });
  const [from, to] = [endpoint(here), endpoint(there)];
  to.postRecv(there.lmr.segment(0, 64), 5);
  loadCmFake().set(CmSwitch.DROP_RTU, 1);
  try {
    from.connect({ address: PASSIVE, connQual: CONN_QUAL + 2 });
    const request = await next(there.evd, 'connection-request');
    if (request.type === 'connection-request') request.cr.accept(to);
    await next(here.evd, 'connection');
    from.postSend(here.lmr.segment(0, 64), 6);
    await next(here.evd, 'dto');
    await next(there.evd, 'connection');
    await next(there.evd, 'dto');
  } finally {
    loadCmFake().set(CmSwitch.DROP_RTU, 0);
  }
  psp.free();
  from.disconnect();
  await next(here.evd, 'connection');
  await next(there.evd, 'connection');
}

function endpoint({ ia, pz, evd }: LifeScene['here']): Ep {
  return ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
}

/**
 * XRC between three processes: one sends, one makes the target, one registers with it; receives in
 * both. Closes all; returns what it meets.
 */
export async function xrcLife(key: string): Promise<unknown[]> {
  const open: Process[] = [];
  const started = (): Process => {
    const process = new Process();
    open.push(process);
    return process;
  };
  const problems: unknown[] = [];
  try {
    const [sender, one, two] = [started(), started(), started()];
    sender.open();
    one.open(key);
    two.open(key);
    const queues: [Process, SharedReceiveQueue][] = [one, two].map((each) => [each, each.srq()]);
    const initiator = sender.initiator();
    const target = one.target(initiator);
    two.domain.register(target, () => undefined);
    sender.attach(initiator, target);
    for (const [receiver, queue] of queues) {
      receiver.receive(queue, 0);
      const inline = new Uint8Array(8);
      sender.send(initiator, queue.srqn, WrOpcode.SEND, { inline });
      for (const { status } of [...sender.poll(), ...receiver.poll()]) {
        if (status !== 0) throw new Error(`completion status ${status}`);
      }
      queue.destroy();
    }
    two.domain.unregister(target);
    one.domain.unregister(target);
    initiator.destroy();
    for (const { domain } of open) domain.close();
  } catch (error) {
    problems.push(error);
  }
  for (const { device } of open) await device.close().catch((error) => problems.push(error));
  return problems;
}
