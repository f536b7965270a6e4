/** An adapter as an end: RC over DAT's own calls, connected by the connection manager. */
import {
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type DatEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
  type Rmr,
} from 'dapl';
import { Access, WrFlags, WrOpcode } from '../../../core/spi/index.js';

import { textOf } from '../peer/exchange.js';
import { patience } from '../../support/patience.js';
import {
  type Bind,
  type Completion,
  type Completions,
  type ConnectionWishes,
  type Domain,
  type Pair,
  POLL_TIMEOUT_MS,
  type Region,
  type Request,
  type Segment,
  type VerbsEnd,
  type Window,
} from './end.js';
import { digestOf, fillPattern } from './pattern.js';

const CONNECT_TIMEOUT_MS = 20_000;

interface OwnPair {
  readonly ep: Ep;
  readonly connections: Evd;
  readonly requests: Evd;
  readonly receives: Evd;
}

/** The verbs' names of what DAT says has been done. */
const OPCODES: Readonly<Record<number, string>> = {
  [DatDto.SEND]: 'SEND',
  [DatDto.RDMA_WRITE]: 'RDMA_WRITE',
  [DatDto.RDMA_WRITE_IMMED]: 'RDMA_WRITE',
  [DatDto.RDMA_READ]: 'RDMA_READ',
  [DatDto.CMP_SWAP]: 'COMP_SWAP',
  [DatDto.FETCH_ADD]: 'FETCH_ADD',
  [DatDto.RECEIVE]: 'RECV',
  [DatDto.RECEIVE_WITH_INVALIDATE]: 'RECV',
  [DatDto.RECV_MSG_IMMED]: 'RECV',
  [DatDto.RECV_IMMED]: 'RECV_RDMA_WITH_IMM',
};

export class DatEnd implements VerbsEnd {
  readonly name = 'softroce';
  readonly dialect = 'dat';
  private readonly zones: Pz[] = [];
  private readonly regions: Lmr[] = [];
  private readonly windows: Rmr[] = [];
  private readonly pairs: OwnPair[] = [];
  private incoming: Evd | undefined;

  constructor(private readonly ia: Ia) {}

  async domain(): Promise<Domain> {
    return { id: this.zones.push(this.ia.createPz()) - 1 };
  }

  async region(domain: Domain, lengthBytes: number, access: number): Promise<Region> {
    const options = { pz: at(this.zones, domain), privileges: privilegesOf(access) };
    const lmr = this.ia.allocate(lengthBytes, options);
    const id = this.regions.push(lmr) - 1;
    return { id, address: lmr.address, rkey: lmr.rmrContext ?? 0 };
  }

  async deregister(region: Region): Promise<void> {
    at(this.regions, region).free();
  }

  async fill(segment: Segment, seed: number): Promise<void> {
    fillPattern(this.bytes(segment), seed);
  }

  async digest(segment: Segment): Promise<number> {
    return digestOf(this.bytes(segment));
  }

  async put(region: Region, offset: number, value: bigint): Promise<void> {
    viewOf(this.bytes({ region, offset, length: 8 })).setBigUint64(0, value, true);
  }

  async word(region: Region, offset: number): Promise<bigint> {
    return viewOf(this.bytes({ region, offset, length: 8 })).getBigUint64(0, true);
  }

  async window(domain: Domain): Promise<Window> {
    return { id: this.windows.push(this.ia.createRmrForEp(at(this.zones, domain))) - 1 };
  }

  async listen(port: number): Promise<void> {
    this.incoming = this.ia.createEvd({ qlen: 16 });
    this.ia.createPsp({ connQual: port, evd: this.incoming });
  }

  async accept(domain: Domain, wishes: ConnectionWishes): Promise<Pair> {
    const event = await this.next(this.incoming, patience(CONNECT_TIMEOUT_MS));
    if (event?.type !== 'connection-request') throw new Error('no connection request');
    const pair = this.endpoint(domain, wishes);
    event.cr.accept(pair.ep);
    return this.established(pair);
  }

  async dial(to: string, port: number, domain: Domain, wishes: ConnectionWishes): Promise<Pair> {
    const pair = this.endpoint(domain, wishes);
    pair.ep.connect({ address: to, connQual: port, timeoutMs: patience(CONNECT_TIMEOUT_MS) });
    return this.established(pair);
  }

  async receive(pair: Pair, wr: number, segments: readonly Segment[]): Promise<void> {
    at(this.pairs, pair).ep.postRecv(this.segments(segments), wr);
  }

  async send(pair: Pair, request: Request): Promise<void> {
    const { ep } = at(this.pairs, pair);
    const { opcode, wr, immediate = 0, compareAdd = 0n, swap = 0n, flags = 0 } = request;
    const segments = this.segments(request.segments ?? []);
    const remote = { address: request.remoteAddress ?? 0n, rmrContext: request.rkey ?? 0 };
    // The numbers of DAT's SOLICITED_WAIT and BARRIER_FENCE.
    const how =
      ((flags & WrFlags.SOLICITED) !== 0 ? 2 : 0) | ((flags & WrFlags.FENCE) !== 0 ? 8 : 0);
    const [result] = segments;
    switch (opcode) {
      case WrOpcode.SEND:
        return ep.postSend(segments, wr, how);
      case WrOpcode.SEND_WITH_IMM:
        return ep.postSendWithImmediate(segments, wr, immediate, how);
      case WrOpcode.SEND_WITH_INV:
        return ep.postSendWithInvalidate(segments, wr, immediate, how);
      case WrOpcode.RDMA_WRITE:
        return ep.postRdmaWrite(segments, wr, remote, how);
      case WrOpcode.RDMA_WRITE_WITH_IMM:
        return ep.postRdmaWriteWithImmediate(segments, wr, remote, immediate, how);
      case WrOpcode.RDMA_READ:
        return ep.postRdmaRead(segments, wr, remote, how);
      case WrOpcode.ATOMIC_CMP_AND_SWP:
        if (result) return ep.postCompareSwap(result, wr, remote, compareAdd, swap, how);
        break;
      case WrOpcode.ATOMIC_FETCH_AND_ADD:
        if (result) return ep.postFetchAdd(result, wr, remote, compareAdd, how);
        break;
      default:
    }
    throw new Error(`DAT has no ${nameOf(WrOpcode, opcode)} of ${segments.length} segments`);
  }

  async bind(pair: Pair, { wr, window, segment, access }: Bind): Promise<number> {
    const [part] = this.segments([segment]);
    if (part === undefined) throw new Error('no segment');
    const options = { privileges: privilegesOf(access), cookie: wr };
    const rmr = at(this.windows, window);
    return rmr.bind(part, at(this.pairs, pair).ep, options) ?? 0;
  }

  /** What DAT posts starts by itself. */
  async post(): Promise<void> {}

  async poll(
    pair: Pair,
    sends: number,
    receives: number,
    timeoutMs = POLL_TIMEOUT_MS,
  ): Promise<Completions> {
    const own = at(this.pairs, pair);
    const deadlineMs = performance.now() + patience(timeoutMs);
    const collect = async (evd: Evd, count: number): Promise<Completion[]> => {
      const completions: Completion[] = [];
      while (completions.length < count) {
        const event = await this.next(evd, Math.max(0, deadlineMs - performance.now()));
        if (event === undefined) break;
        completions.push(completionOf(event));
      }
      return completions;
    };
    return {
      sends: await collect(own.requests, sends),
      receives: await collect(own.receives, receives),
    };
  }

  /** How the connection ended: the name of its last event. */
  async ended(pair: Pair): Promise<string> {
    const event = await this.next(at(this.pairs, pair).connections, patience(CONNECT_TIMEOUT_MS));
    return event === undefined ? 'no event' : nameOf(DatEventNumber, event.number);
  }

  async close(): Promise<void> {
    await this.ia.close();
  }

  private endpoint(domain: Domain, wishes: ConnectionWishes): OwnPair {
    const { depth, segments } = wishes.sizes;
    const { rnrRetryCount, minRnrTimer, mtuBytes, reads } = wishes;
    const [connections, requests, receives] = [8, depth, depth].map((qlen) =>
      this.ia.createEvd({ qlen }),
    ) as [Evd, Evd, Evd];
    const ep = this.ia.createEndpoint({
      pz: at(this.zones, domain),
      connectEvd: connections,
      requestEvd: requests,
      recvEvd: receives,
      attributes: {
        maxRecvDtos: depth,
        maxRequestDtos: depth,
        maxRecvIov: segments,
        maxRequestIov: segments,
        maxRdmaReadIov: segments,
        maxRdmaWriteIov: segments,
        maxRdmaReadIn: reads,
        maxRdmaReadOut: reads,
        transport: { rnrRetryCount, minRnrTimer, pathMtuBytes: mtuBytes },
      },
    });
    return { ep, connections, requests, receives };
  }

  private async established(pair: OwnPair): Promise<Pair> {
    const event = await this.next(pair.connections, patience(CONNECT_TIMEOUT_MS));
    if (event?.type !== 'connection' || event.number !== DatEventNumber.ESTABLISHED) {
      throw new Error(event?.type === 'connection' ? textOf(event) : 'no connection event');
    }
    return { id: this.pairs.push(pair) - 1, qpn: 0 };
  }

  /** The next event, or undefined when none comes in time. */
  private async next(evd: Evd | undefined, timeoutMs: number): Promise<DatEvent | undefined> {
    const waiting = evd?.dequeue();
    if (waiting !== undefined || timeoutMs <= 0) return waiting;
    try {
      return (await evd?.wait({ timeoutMs }))?.event;
    } catch {
      return undefined;
    }
  }

  private bytes({ region, offset, length }: Segment): Uint8Array {
    return at(this.regions, region).bytes.subarray(offset, offset + length);
  }

  private segments(segments: readonly Segment[]) {
    return segments.map(({ region, offset, length }) =>
      at(this.regions, region).segment(offset, length),
    );
  }
}

function at<T>(table: readonly T[], { id }: { readonly id: number }): T {
  const found = table[id];
  if (found === undefined) throw new Error(`no object ${id} of ${table.length}`);
  return found;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function privilegesOf(access: number): number {
  const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC } = MemPrivileges;
  const pairs: readonly (readonly [number, number])[] = [
    [Access.LOCAL_WRITE, LOCAL_WRITE],
    [Access.REMOTE_READ, REMOTE_READ],
    [Access.REMOTE_WRITE, REMOTE_WRITE],
    [Access.REMOTE_ATOMIC, REMOTE_ATOMIC],
  ];
  let privileges: number = LOCAL_READ;
  for (const [bit, privilege] of pairs) if ((access & bit) !== 0) privileges |= privilege;
  return privileges;
}

function completionOf(event: DatEvent): Completion {
  if (event.type !== 'dto' && event.type !== 'rmr-bind') {
    throw new Error(`a ${event.type} event among completions`);
  }
  const status = nameOf(DatDtoStatus, event.status);
  const succeeded = event.status === DatDtoStatus.SUCCESS;
  const isDto = event.type === 'dto';
  return {
    wr: event.cookie,
    status,
    opcode: !succeeded ? undefined : isDto ? OPCODES[event.operation] : 'BIND_MW',
    bytes: isDto ? event.transferredLength : 0,
    immediate: isDto ? (event.immediate ?? event.invalidatedRmrContext) : undefined,
    sourceQpn: undefined,
  };
}
