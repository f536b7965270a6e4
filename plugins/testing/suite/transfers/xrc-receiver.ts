/** Receivers of one device behind one connection, and the initiator that reaches them. */
import assert from 'node:assert/strict';
import {
  type Cr,
  DatDtoStatus,
  type DatEvent,
  type EpAttributeOptions,
  type Evd,
  EvdFlags,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
  RemoteSegment,
  type XrcDomain,
  type XrcInitiator,
  type XrcSrq,
  type XrcTargetOptions,
} from 'dapl';
import { Access, gidFromIp } from 'dapl/spi';
import type { CompliancePair } from '../fixture.js';
import { CONN_QUAL, mtuBytes, textOf } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const SLOT_BYTES = 4096;
/** 1.28 ms (IBTA table 45), to keep waits short. Unanswered requests end soon. */
const TRANSPORT = { minRnrTimer: 14, rnrRetryCount: 7, ackTimeout: 10, retryCount: 3 };

/** Four reads each way, or as many as the adapter allows. */
function attributesOf(ia: Ia): EpAttributeOptions & { readonly maxRdmaReadIn: number } {
  const { maxRdmaReadPerEpIn, maxRdmaReadPerEpOut } = ia.query().ia;
  return {
    maxRdmaReadIn: Math.min(4, maxRdmaReadPerEpIn),
    maxRdmaReadOut: Math.min(4, maxRdmaReadPerEpOut),
    transport: TRANSPORT,
  };
}

const { ALL, REMOTE_ATOMIC } = MemPrivileges;

/** The number of memory names in use. */
let memories = 0;

/** An adapter with a domain, memory, and one event dispatcher. */
class Party {
  readonly pz: Pz;
  readonly evd: Evd;
  readonly lmr: Lmr;

  constructor(
    readonly ia: Ia,
    readonly domain: XrcDomain,
    memoryName?: string,
  ) {
    this.pz = ia.createPz();
    this.evd = ia.createEvd({
      qlen: 256,
      streams: EvdFlags.DTO | EvdFlags.CONNECTION | EvdFlags.CR,
    });
    this.lmr = ia.allocate(1 << 16, {
      pz: this.pz,
      privileges: ALL | REMOTE_ATOMIC,
      ...(memoryName !== undefined && { shared: memoryName }),
    });
  }

  async next(): Promise<DatEvent> {
    return (await this.evd.wait({ timeoutMs: PATIENCE_MS })).event;
  }
}

/** Stands for a process behind the device: it shares only the targets with others. */
export class Receiver extends Party {
  readonly srq: XrcSrq;
  private readonly asyncEvents: string[] = [];

  private constructor(ia: Ia, domain: XrcDomain, memoryName: string | undefined) {
    super(ia, domain, memoryName);
    this.srq = this.domain.createSrq({ pz: this.pz, maxRecvDtos: 16, recvEvd: this.evd });
    ia.async$.subscribe((event) => {
      this.asyncEvents.push(
        event.type === 'xrc-target' ? `${event.targetQpn} ${event.event}` : textOf(event),
      );
    });
  }

  static async of({ passive, xrcDomain }: CompliancePair, ia = passive): Promise<Receiver> {
    const { key, named } = xrcDomain ?? { key: 'receivers', named: false };
    const domain = await ia.openXrcDomain({ key });
    return new Receiver(ia, domain, named ? `${key}/${++memories}` : undefined);
  }

  /** Posts receives with these cookies, each with memory of its own. */
  post(...cookies: readonly number[]): void {
    for (const cookie of cookies) this.srq.postRecv(this.place(cookie), cookie);
  }

  place(cookie: number): ReturnType<Lmr['segment']> {
    return this.lmr.segment(cookie * SLOT_BYTES, SLOT_BYTES);
  }

  remote(offsetBytes = 0): RemoteSegment {
    const { address, rmrContext } = this.lmr;
    assert.ok(rmrContext !== undefined);
    return new RemoteSegment({ address: address + BigInt(offsetBytes), rmrContext });
  }

  /** Waits for the next receive: its cookie, bytes and target. */
  async received(): Promise<{ cookie: number; bytes: Uint8Array; targetQpn: number }> {
    const event = await this.next();
    assert.ok(event.type === 'xrc-receive', textOf(event));
    assert.equal(nameOf(DatDtoStatus, event.status), 'SUCCESS');
    assert.equal(event.srq, this.srq);
    const { cookie, targetQpn, transferredLength } = event;
    return { cookie, targetQpn, bytes: this.place(cookie).bytes.slice(0, transferredLength) };
  }

  /** Async events about a target so far, in order, without those of its establishment. */
  told(qpn: number): string[] {
    const told = this.asyncEvents.filter((text) => text.startsWith(`${qpn} `));
    const names = told.map((text) => text.slice(`${qpn} `.length));
    return names.filter((name) => name !== 'COMM_EST' && name !== 'ESTABLISHED');
  }
}

/** One initiator of the active side, with an event dispatcher for all its events. */
export class Initiator extends Party {
  readonly ep: XrcInitiator;

  private constructor(ia: Ia, domain: XrcDomain) {
    super(ia, domain);
    const evds = { requestEvd: this.evd, connectEvd: this.evd };
    const attributes = attributesOf(ia);
    this.ep = this.domain.createInitiator({ pz: this.pz, ...evds, attributes });
  }

  static async of(ia: Ia): Promise<Initiator> {
    return new Initiator(ia, await ia.openXrcDomain());
  }

  /** Writes the text, and sends it to a receiver. */
  send(to: Receiver, text: string, cookie = 0): void {
    const bytes = new TextEncoder().encode(text);
    this.lmr.bytes.set(bytes, cookie * 64);
    this.ep.toSrq(to.srq.srqn).postSend(this.lmr.segment(cookie * 64, bytes.length), cookie);
  }

  async expect(...texts: readonly string[]): Promise<void> {
    for (const text of texts) assert.equal(textOf(await this.next()), text);
  }
}

export interface Reach {
  readonly pair: CompliancePair;
  readonly initiator: Initiator;
  readonly receivers: readonly Receiver[];
  /** Number of the target with which the first receiver accepted. */
  readonly target: number;
}

/** Sends a connection request, and waits until the first receiver gets it. */
export async function askReceiver(
  pair: CompliancePair,
  initiator: Initiator,
  receiver: Receiver,
): Promise<Cr> {
  const psp = receiver.ia.createPsp({ connQual: CONN_QUAL, evd: receiver.evd, xrc: true });
  initiator.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
  const event = await receiver.next();
  assert.ok(event.type === 'connection-request', textOf(event));
  psp.free();
  return event.cr;
}

/** Connects to `count` receivers, each an adapter of its own on the passive device. */
export async function reach(
  pair: CompliancePair,
  count = 2,
  options: XrcTargetOptions = {},
): Promise<Reach> {
  const receivers = [await Receiver.of(pair)];
  while (receivers.length < count) {
    const ia = await pair.openPassiveAgain?.();
    assert.ok(ia !== undefined);
    receivers.push(await Receiver.of(pair, ia));
  }
  const initiator = await Initiator.of(pair.active);
  const [first] = receivers as [Receiver];
  const join = pair.xrcByNumbers === true ? joinByNumbers : joinByRequest;
  const target = await join(pair, initiator, first, options);
  await initiator.expect('ESTABLISHED');
  return { pair, initiator, receivers, target };
}

async function joinByRequest(
  pair: CompliancePair,
  initiator: Initiator,
  receiver: Receiver,
  options: XrcTargetOptions,
): Promise<number> {
  const cr = await askReceiver(pair, initiator, receiver);
  return receiver.domain.accept(cr, { attributes: attributesOf(receiver.ia), ...options });
}

/** A path MTU that both ports support. */
export function pathMtuOf({ active, passive }: CompliancePair): number {
  return Math.min(1024, mtuBytes(active), mtuBytes(passive));
}

/** Connects without a connection manager, by queue pair numbers. */
async function joinByNumbers(
  pair: CompliancePair,
  { ep }: Initiator,
  { domain, ia }: Receiver,
  options: XrcTargetOptions,
): Promise<number> {
  const sendPsn = 0x123456;
  const target = domain.createTarget(
    {
      accessFlags: Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC,
      pkeyIndex: 0,
      portNumber: 1,
      addressVector: { gid: gidFromIp(pair.active.address), localGidIndex: 0 },
      pathMtuBytes: pathMtuOf(pair),
      destinationQpn: ep.qpn,
      receivePsn: sendPsn,
      minRnrTimer: 14,
      maxDestRdAtomic: attributesOf(ia).maxRdmaReadIn,
    },
    options,
  );
  const pathMtuBytes = pathMtuOf(pair);
  ep.attach({ address: pair.passiveAddress, targetQpn: target, sendPsn, pathMtuBytes });
  return target;
}

export async function leave({ receivers }: Reach): Promise<void> {
  for (const { ia } of receivers.slice(1)) await ia.close();
}

export function textOfBytes(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
