/** What endpoints post: a random mix over all operations, sizes, flags and mistakes. */
import { Access, WrFlags, WrOpcode } from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { type Endpoint, MAX_INLINE, MAX_SGE } from './endpoint.js';
import { SLOTS } from './layout.js';
import type { Effect } from './memory-model.js';
import { gather, type Plan, type Segment, type SendRequest } from './requests.js';

/** The target slot whose words only atomics touch. */
const ATOMIC_SLOT = 0;
const MISTAKE_PERCENT = 0.2;
const SHORT_RECEIVE_PERCENT = 0.3;

type Draft = Pick<SendRequest, 'length' | 'segments' | 'remoteAddress' | 'rkey' | 'payload'> &
  Partial<SendRequest>;

const NOTHING: Draft = {
  length: 0,
  segments: [],
  payload: new Uint8Array(0),
  remoteAddress: 0n,
  rkey: 0,
};

export class Workload {
  posted = 0;

  constructor(
    private readonly random: SeededRandom,
    private readonly mistakes: boolean,
  ) {}

  /** Posts a burst of receives. */
  postReceives(endpoint: Endpoint, most: number): void {
    if (endpoint.shared) {
      endpoint.shared.post(most);
      return;
    }
    const count = Math.min(most, endpoint.receiveRoom);
    for (let i = 0; i < count; i++) this.postReceive(endpoint);
    if (count > 0) endpoint.qp.ringReceiveDoorbell();
  }

  /** Posts a burst of sends with one doorbell; how many. */
  postSends(endpoint: Endpoint, most: number): number {
    const count = Math.min(most, endpoint.sendRoom);
    let posted = 0;
    for (; posted < count; posted++) {
      const request = this.draft(endpoint);
      if (!request) break;
      endpoint.postSend(request);
      if (request.plan !== 'ok') {
        posted++;
        break;
      }
    }
    if (posted > 0) endpoint.qp.ringSendDoorbell();
    this.posted += posted;
    return posted;
  }

  /** Posts a signalled request behind unsignalled ones, whose end would not be seen otherwise. */
  postMarker(endpoint: Endpoint): void {
    if (endpoint.unsignalled === 0 || endpoint.sendRoom === 0) return;
    endpoint.unsignalled = endpoint.qp.sendRing.entries;
    endpoint.postSend(this.finish(endpoint, WrOpcode.RDMA_WRITE, NOTHING));
    endpoint.qp.ringSendDoorbell();
  }

  private postReceive(endpoint: Endpoint): void {
    const { random } = this;
    const { layout } = endpoint;
    let slot = random.below(SLOTS.RECEIVE);
    while (endpoint.receiveUsed.has(slot)) slot = (slot + 1) % SLOTS.RECEIVE;
    const short = this.mistakes && random.percent(SHORT_RECEIVE_PERCENT);
    const capacity = short ? random.below(layout.slotBytes) : layout.slotBytes;
    const start = layout.receive + slot * layout.slotBytes;
    endpoint.postReceive({
      index: endpoint.nextReceive,
      cookie: endpoint.nextReceive * 2 + 1,
      slot,
      segments: this.cut(start, capacity, endpoint.receive.lkey),
      capacity,
    });
  }

  private draft(endpoint: Endpoint): SendRequest | undefined {
    const { random } = this;
    const kind = random.below(100);
    if (kind < 26) return this.send(endpoint);
    if (kind < 58) return this.write(endpoint);
    if (kind < 80) return this.read(endpoint);
    if (kind < 90) return this.atomic(endpoint);
    const windows = this.window(endpoint);
    return windows ?? this.send(endpoint);
  }

  /** Binds a window, or takes one back: by LOCAL_INV, or the peer's by a SEND. */
  private window(endpoint: Endpoint): SendRequest | undefined {
    const kept = endpoint.windows.in('kept');
    if (kept) {
      kept.state = 'busy';
      const draft = { ...NOTHING, immediate: kept.key };
      return this.finish(endpoint, WrOpcode.LOCAL_INV, draft);
    }
    const open = endpoint.peer.windows.in('open');
    if (open && this.random.percent(50)) {
      open.state = 'busy';
      // The answer of a READ that is lost comes again only while its key lives (IBTA 10.8.3.3).
      const draft = { ...this.outgoing(endpoint), immediate: open.key, flags: WrFlags.FENCE };
      return this.finish(endpoint, WrOpcode.SEND_WITH_INV, draft);
    }
    return endpoint.revoked ? undefined : this.bind(endpoint);
  }

  private bind(endpoint: Endpoint): SendRequest | undefined {
    const { random } = this;
    const free = endpoint.windows.in('free');
    if (!free) return undefined;
    const bad = this.mistakes && random.percent(MISTAKE_PERCENT * 5);
    const { target, targetBytes } = endpoint.layout;
    const bind = {
      window: free.window.handle,
      rkey: endpoint.windows.begin(free),
      lkey: bad ? endpoint.landing.lkey : endpoint.target.lkey,
      address: endpoint.base + BigInt(target),
      length: targetBytes,
      access: Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC,
      given: random.percent(75),
    };
    const plan = bad ? 'bad-bind' : 'ok';
    return this.finish(endpoint, WrOpcode.BIND_MW, { ...NOTHING, bind, plan });
  }

  /** A key for all of the peer's target: that of its memory region, or of a window. */
  private keyOf(peer: Endpoint): number {
    const open = this.random.percent(50) ? peer.windows.in('open') : undefined;
    return open?.key ?? peer.target.rkey;
  }

  private send(endpoint: Endpoint): SendRequest {
    const { random } = this;
    const opcode = random.percent(40) ? WrOpcode.SEND_WITH_IMM : WrOpcode.SEND;
    return this.finish(endpoint, opcode, { ...this.outgoing(endpoint), rkey: 0 });
  }

  private write(endpoint: Endpoint): SendRequest {
    const { random } = this;
    const { peer } = endpoint;
    // A slot may be longer or shorter at the peer, whose layout is its own.
    const slot = random.between(1, SLOTS.TARGET - 1);
    const room = peer.layout.slotBytes;
    const draft = this.outgoing(endpoint, room);
    const start = slot * room + random.below(room - draft.length + 1);
    const offset = peer.layout.target + start;
    const effects = draft.length > 0 ? [{ offset, data: draft.payload }] : [];
    return this.finish(
      endpoint,
      random.percent(25) ? WrOpcode.RDMA_WRITE_WITH_IMM : WrOpcode.RDMA_WRITE,
      {
        ...draft,
        remoteAddress: peer.base + BigInt(offset),
        rkey: this.keyOf(peer),
        remote: effects,
        // Data that a READ under way may still fetch must not change before it has.
        flags: (endpoint.reading[slot] ?? 0) > 0 ? WrFlags.FENCE : 0,
      },
    );
  }

  private read(endpoint: Endpoint): SendRequest | undefined {
    const { random } = this;
    const { peer } = endpoint;
    const landingSlot = this.landingSlot(endpoint);
    if (landingSlot < 0) return undefined;
    const slot = random.between(1, SLOTS.TARGET - 1);
    const room = Math.min(peer.layout.slotBytes, endpoint.layout.slotBytes);
    const length = this.length(endpoint, room);
    const from = slot * peer.layout.slotBytes + random.below(peer.layout.slotBytes - length + 1);
    const offset = peer.layout.target + from;
    const start = endpoint.layout.landing + landingSlot * endpoint.layout.slotBytes;
    const segments = this.cut(start, length, endpoint.landing.lkey);
    const expected = logicalBytes(peer, offset, length);
    return this.finish(endpoint, WrOpcode.RDMA_READ, {
      length,
      segments,
      payload: new Uint8Array(0),
      remoteAddress: peer.base + BigInt(offset),
      rkey: this.keyOf(peer),
      local: spread(expected, segments),
      readsSlot: slot,
      landingSlot,
    });
  }

  private atomic(endpoint: Endpoint): SendRequest | undefined {
    const { random } = this;
    const { peer } = endpoint;
    const landingSlot = this.landingSlot(endpoint);
    if (landingSlot < 0) return undefined;
    const slotStart = peer.layout.target + ATOMIC_SLOT * peer.layout.slotBytes;
    // IBTA 9.4.5: the address is a multiple of 8.
    const aligned = Number(-(peer.base + BigInt(slotStart)) & 7n);
    const offset = slotStart + aligned + 8 * random.below(8);
    const before = logicalBytes(peer, offset, 8);
    const value = new DataView(before.buffer).getBigUint64(0, true);
    const add = random.percent(50);
    const compareAdd = add || random.percent(30) ? this.u64() : value;
    const swap = add ? 0n : this.u64();
    const after = add ? value + compareAdd : compareAdd === value ? swap : value;
    const data = new Uint8Array(8);
    new DataView(data.buffer).setBigUint64(0, BigInt.asUintN(64, after), true);
    const start = endpoint.layout.landing + landingSlot * endpoint.layout.slotBytes;
    const segments = [{ offset: start + random.below(9), length: 8, lkey: endpoint.landing.lkey }];
    return this.finish(
      endpoint,
      add ? WrOpcode.ATOMIC_FETCH_AND_ADD : WrOpcode.ATOMIC_CMP_AND_SWP,
      {
        length: 8,
        segments,
        payload: new Uint8Array(0),
        remoteAddress: peer.base + BigInt(offset),
        rkey: this.keyOf(peer),
        compareAdd,
        swap,
        remote: [{ offset, data }],
        local: spread(before, segments),
        landingSlot,
      },
    );
  }

  /** Segments of source memory and what they carry. */
  private outgoing(endpoint: Endpoint, room = Infinity): Draft {
    const { random } = this;
    const { layout } = endpoint;
    const most = Math.min(room, layout.slotBytes, endpoint.peer.layout.slotBytes);
    const length = this.length(endpoint, most);
    const start = layout.source + random.below(layout.sourceBytes - length + 1);
    const segments = this.cut(start, length, endpoint.source.lkey);
    const payload = gather(endpoint.model.bytes, segments);
    return { length, segments, payload, remoteAddress: 0n, rkey: 0 };
  }

  private length(endpoint: Endpoint, most: number): number {
    const { random } = this;
    const { mtuBytes } = endpoint.parameters;
    const kind = random.below(10);
    if (kind === 0) return 0;
    if (kind < 4) return Math.min(most, random.between(1, 64));
    if (kind < 7) return Math.min(most, mtuBytes * random.between(1, 3) + random.between(-2, 2));
    return random.between(1, most);
  }

  /** Cuts a range into one to four segments, empty ones among them. */
  private cut(offset: number, length: number, lkey: number): Segment[] {
    const { random } = this;
    const segments: Segment[] = [];
    let done = 0;
    for (let left = random.percent(50) ? 1 : random.between(2, MAX_SGE); left > 0; left--) {
      const step = left === 1 ? length - done : random.below(length - done + 1);
      segments.push({ offset: offset + done, length: step, lkey });
      done += step;
    }
    return segments;
  }

  private landingSlot(endpoint: Endpoint): number {
    if (endpoint.landingUsed.size === SLOTS.LANDING) return -1;
    let slot = this.random.below(SLOTS.LANDING);
    while (endpoint.landingUsed.has(slot)) slot = (slot + 1) % SLOTS.LANDING;
    return slot;
  }

  /** Adds flags, and now and then a mistake. */
  private finish(endpoint: Endpoint, opcode: WrOpcode, draft: Draft): SendRequest {
    const { random } = this;
    const request: SendRequest = {
      immediate: random.u32(),
      compareAdd: 0n,
      swap: 0n,
      remote: [],
      local: [],
      readsSlot: -1,
      landingSlot: -1,
      plan: 'ok',
      ...draft,
      opcode,
      index: endpoint.nextSend,
      cookie: endpoint.nextSend * 2 + 2,
      flags: (draft.flags ?? 0) | this.flags(endpoint, opcode, draft.length),
    };
    const mistake = this.mistakes && draft.length > 0 && random.percent(MISTAKE_PERCENT);
    return mistake ? this.spoil(endpoint, request) : request;
  }

  private flags(endpoint: Endpoint, opcode: WrOpcode, length: number): number {
    const { random } = this;
    const due = endpoint.unsignalled + 1 >= endpoint.qp.sendRing.entries / 2;
    const signalled = due || random.percent(60);
    endpoint.unsignalled = signalled ? 0 : endpoint.unsignalled + 1;
    const outgoing = opcode <= WrOpcode.SEND_WITH_IMM || opcode === WrOpcode.SEND_WITH_INV;
    const inline = outgoing && length <= MAX_INLINE && random.percent(30);
    const takesReceive = outgoing && opcode !== WrOpcode.RDMA_WRITE;
    return (
      (signalled ? WrFlags.SIGNALED : 0) |
      (inline ? WrFlags.INLINE : 0) |
      (takesReceive && random.percent(30) ? WrFlags.SOLICITED : 0) |
      (random.percent(5) ? WrFlags.FENCE : 0)
    );
  }

  /** A request that must fail without any effect. */
  private spoil(endpoint: Endpoint, request: SendRequest): SendRequest {
    const { random } = this;
    const { peer } = endpoint;
    const clean = { remote: [], local: [], readsSlot: -1 };
    const plan: Plan =
      request.rkey === 0 || random.percent(30)
        ? 'bad-lkey'
        : random.pick(['bad-rkey', 'out-of-bounds'] as const);
    if (plan === 'bad-lkey') {
      const flags = request.flags & ~WrFlags.INLINE;
      const segments = request.segments.map((segment) => ({ ...segment, lkey: random.u32() }));
      // Local memory is checked when the answer comes: the peer has executed an atomic by then.
      const executed = request.remote.length > 0 && request.opcode >= WrOpcode.RDMA_READ;
      const remote = executed ? request.remote : [];
      return { ...request, ...clean, remote, plan, flags, segments };
    }
    if (plan === 'bad-rkey') {
      const wrong = [random.u32(), peer.receive.rkey, endpoint.target.rkey];
      const rkey = random.pick([...wrong, ...peer.windows.stale]);
      return { ...request, ...clean, plan, rkey };
    }
    const { target, targetBytes } = peer.layout;
    const atomic = request.opcode >= WrOpcode.ATOMIC_CMP_AND_SWP;
    const end = target + targetBytes;
    const away = atomic ? 8 * random.between(1, 4) : random.between(1, 64);
    const offset = random.percent(50) ? end - request.length + away : target - away;
    const skew = atomic ? Number(-(peer.base + BigInt(offset)) & 7n) : 0;
    const low = offset < target ? offset - 8 : offset;
    const remoteAddress = peer.base + BigInt((skew > 0 ? low : offset) + skew);
    // A long READ goes out in parts, and those that lie within the target may be answered.
    const within = request.opcode === WrOpcode.RDMA_READ && offset >= target ? end - offset : 0;
    const local = spread(logicalBytes(peer, offset, Math.max(0, within)), request.segments);
    return { ...request, ...clean, local, plan, remoteAddress };
  }

  private u64(): bigint {
    return (BigInt(this.random.u32()) << 32n) | BigInt(this.random.u32());
  }
}

/** What will be there when everything that has been posted is done. */
function logicalBytes(peer: Endpoint, offset: number, length: number): Uint8Array {
  const bytes = peer.model.shadow.slice(offset, offset + length);
  for (const { offset: at, data } of peer.model.pending) {
    const from = Math.max(at, offset);
    const to = Math.min(at + data.length, offset + length);
    if (from < to) bytes.set(data.subarray(from - at, to - at), from - offset);
  }
  return bytes;
}

function spread(bytes: Uint8Array, segments: readonly Segment[]): Effect[] {
  const effects: Effect[] = [];
  let done = 0;
  for (const { offset, length } of segments) {
    const data = bytes.subarray(done, done + length);
    if (data.length > 0) effects.push({ offset, data });
    done += length;
  }
  return effects;
}
