/**
 * One side of a connection in a behaviour: its objects, and its events as short texts.
 */
import assert from 'node:assert/strict';
import {
  type Cr,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type DupConnectOptions,
  type EndpointOptions,
  type EpAttributeOptions,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
  RemoteSegment,
} from 'dapl';
import type { CompliancePair } from './fixture.js';
import { PATIENCE_MS, settle, timed } from './pace.js';

export { settle };

export interface PeerOptions {
  /** Size of its memory region; default 64 KiB. */
  readonly lengthBytes?: number;
  readonly attributes?: EpAttributeOptions;
  readonly privileges?: number;
  /** Length of its event queue; default 1024. */
  readonly qlen?: number;
}

export const CONN_QUAL = 7471;

/** An adapter with one object of each kind. One event dispatcher takes all events. */
export class Peer {
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;

  constructor(
    readonly ia: Ia,
    private readonly options: PeerOptions = {},
  ) {
    const { qlen = 1024, lengthBytes = 1 << 16, privileges = MemPrivileges.ALL } = options;
    this.pz = ia.createPz();
    this.evd = ia.createEvd({ qlen });
    this.ep = this.endpoint();
    this.lmr = ia.allocate(lengthBytes, { pz: this.pz, privileges });
  }

  /** Creates another endpoint on the same event dispatcher. */
  endpoint(evd: Evd = this.evd, more: Partial<EndpointOptions> = {}): Ep {
    const { attributes = {} } = this.options;
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    return this.ia.createEndpoint({ pz: this.pz, ...evds, attributes, ...more });
  }

  /** Its region, or another, as a remote segment for the peer. */
  remote(offsetBytes = 0, lmr: Lmr = this.lmr): RemoteSegment {
    const { address, rmrContext } = lmr;
    assert.ok(rmrContext !== undefined, 'the region has a remote privilege');
    return new RemoteSegment({ address: address + BigInt(offsetBytes), rmrContext });
  }

  async next(): Promise<DatEvent> {
    return (await this.evd.wait({ timeoutMs: PATIENCE_MS })).event;
  }

  /** Waits for events with these texts, in this order. */
  async expect(...texts: readonly string[]): Promise<DatEvent[]> {
    const events: DatEvent[] = [];
    for (const text of texts) {
      const event = await this.next();
      events.push(event);
      assert.equal(textOf(event), text, `after ${JSON.stringify(events.map(textOf))}`);
    }
    return events;
  }

  /** Takes events up to and including the first one with this text. */
  async until(text: string): Promise<string[]> {
    const seen: string[] = [];
    while (seen.at(-1) !== text) seen.push(textOf(await this.next()));
    return seen;
  }

  /** Takes all pending events, as texts. */
  drain(): string[] {
    const seen: string[] = [];
    for (let event = this.evd.dequeue(); event !== undefined; event = this.evd.dequeue()) {
      seen.push(textOf(event));
    }
    return seen;
  }

  /** Waits for a connection request. */
  async request(): Promise<Cr> {
    const event = await this.next();
    assert.equal(event.type, 'connection-request', textOf(event));
    return event.cr;
  }
}

/** An event as text: `dto 7 FLUSHED`, `BROKEN`. */
export function textOf(event: DatEvent): string {
  return event.type === 'dto'
    ? `dto ${event.cookie} ${nameOf(DatDtoStatus, event.status)}`
    : nameOf(DatEventNumber, event.number);
}

export interface Peers {
  readonly pair: CompliancePair;
  readonly active: Peer;
  readonly passive: Peer;
}

/** Options of both sides, or of each. */
export interface PeersOptions extends PeerOptions {
  readonly active?: PeerOptions;
  readonly passive?: PeerOptions;
}

/** Creates both sides, not yet connected. */
export function meet(pair: CompliancePair, options: PeersOptions = {}): Peers {
  const { active, passive, ...both } = options;
  return {
    pair,
    active: new Peer(pair.active, { ...both, ...active }),
    passive: new Peer(pair.passive, { ...both, ...passive }),
  };
}

/** Sends a connection request, and waits until the passive side gets it. */
export async function ask(peers: Peers, options: DupConnectOptions = {}): Promise<Cr> {
  const { pair, active, passive } = peers;
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
  active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL, ...options });
  const cr = await passive.request();
  psp.free();
  return cr;
}

/** Creates and connects both sides; ESTABLISHED is dequeued. */
export async function connected(pair: CompliancePair, options?: PeersOptions): Promise<Peers> {
  const peers = meet(pair, options);
  await connect(peers);
  return peers;
}

/** Connects an endpoint of the active side to one of the passive side. */
export async function join(peers: Peers, from: Ep, to: Ep): Promise<void> {
  const { pair, active, passive } = peers;
  const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
  await timed(async () => {
    from.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    const cr = await passive.request();
    psp.free();
    cr.accept(to);
    await active.expect('ESTABLISHED');
    await passive.expect('ESTABLISHED');
  });
}

export async function connect(peers: Peers): Promise<void> {
  await timed(async () => {
    const cr = await ask(peers);
    cr.accept(peers.passive.ep);
    await peers.active.expect('ESTABLISHED');
    await peers.passive.expect('ESTABLISHED');
  });
}

/** Waits until the condition holds, for as long as a busy machine may take. */
export async function until(
  pair: CompliancePair,
  condition: () => boolean,
  what: () => string,
): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !condition(); await settle(pair)) {
    assert.ok(Date.now() < end, what());
  }
}

/** Waits until the peer's event dispatcher holds this number of events. */
export function waiting(pair: CompliancePair, { evd }: Peer, count: number): Promise<void> {
  const pending = (): number => evd.query().pending;
  return until(
    pair,
    () => pending() >= count,
    () => `${pending()} events wait, ${count} are to`,
  );
}

/** Asserts that no further event arrives. */
export async function expectQuiet(peers: Peers): Promise<void> {
  await settle(peers.pair);
  assert.deepEqual(peers.active.drain(), [], 'on the active side');
  assert.deepEqual(peers.passive.drain(), [], 'on the passive side');
}

/** Fills memory with bytes that depend on the offset and the seed. */
export function fillPattern(bytes: Uint8Array, seed: number): void {
  let x = seed | 1;
  for (let i = 0; i < bytes.length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    bytes[i] = x >>> 24;
  }
}

/** Like `assert.deepEqual`, without printing megabytes. */
export function assertSameBytes(actual: Uint8Array, expected: Uint8Array): void {
  assert.equal(actual.length, expected.length);
  const at = actual.findIndex((byte, i) => byte !== expected[i]);
  assert.equal(at, -1, `byte ${at} is ${actual[at]}, expected ${expected[at]}`);
}

/** Asserts that all bytes have this value. */
export function assertAll(bytes: Uint8Array, value: number): void {
  const at = bytes.findIndex((byte) => byte !== value);
  assert.equal(at, -1, `byte ${at} is ${bytes[at]}, expected ${value}`);
}

/** Asserts that the call throws a DatError with this type or subtype. */
export function refuses(call: () => unknown, code: string): void {
  assert.throws(call, (error: unknown) => {
    const { code: type, subtype } = error as { code?: unknown; subtype?: unknown };
    assert.ok(type === code || subtype === code, String(error));
    return true;
  });
}

/** The largest payload of a packet, as the provider reports it. */
export function mtuBytes(ia: Ia): number {
  return Number(ia.query().provider.providerSpecific['DAT_IB_TRANSPORT_MTU'] ?? 1024);
}
