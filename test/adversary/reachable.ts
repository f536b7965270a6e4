/**
 * What can be reached with which packet: this keeps the adversary's hands off the connections that
 * are spared. A packet touches a connection when it names its queue pair and comes from its peer's
 * address (a datagram: when it has the right Q_Key); whatever else comes to it must do nothing.
 */
import { GSI_QKEY, ipFromGid } from '../../core/spi/index.js';
import type { Draft } from './edits.js';
import type { Key, Overheard } from './fields.js';
import type { VerbsLane } from './verbs-lane.js';
import type { VerbsSide } from './verbs-side.js';

/** No port has this address. */
export const STRANGER = '10.0.0.66';
/** All connections that the CM makes with this one are spared. */
const SPARED_ADDRESS = '10.0.0.3';
const DEAD_KEYS = 16;

interface Entry {
  readonly lane: VerbsLane;
  readonly side: VerbsSide;
  readonly peer: string;
  readonly keys: readonly Key[];
}

interface Known extends Omit<Overheard, 'random' | 'ownKeys'> {
  /** Keys of what is gone, among the others. */
  readonly dead: readonly Key[];
}

export class Reachable {
  private readonly entries = new Map<string, Map<number, Entry>>();
  private readonly known = new Map<string, Known>();

  add(lane: VerbsLane): void {
    for (const [i, side] of lane.sides.entries()) {
      const other = lane.sides[1 - i];
      if (!other) continue;
      const entry = { lane, side, peer: addressOf(other), keys: side.keys };
      this.at(addressOf(side)).set(side.qp.qpn, entry);
    }
    for (const side of lane.sides) this.learn(addressOf(side));
  }

  remove(lane: VerbsLane): void {
    for (const side of lane.sides) {
      const address = addressOf(side);
      this.at(address).delete(side.qp.qpn);
      this.learn(address, side.keys.slice(0, DEAD_KEYS / 2));
    }
  }

  /** What is known of a node until its lanes change. */
  private learn(address: string, died: readonly Key[] = []): void {
    const entries = [...this.at(address).values()];
    const dead = [...died, ...(this.known.get(address)?.dead ?? [])].slice(0, DEAD_KEYS);
    this.known.set(address, {
      keys: [...entries.flatMap(({ keys }) => keys), ...dead],
      dead,
      queuePairs: [1, ...entries.map(({ side }) => side.qp.qpn)],
      sharedQueues: entries.flatMap(({ side }) => (side.srq ? [side.srq.srqn] : [])),
      qkeys: [GSI_QKEY, ...entries.flatMap(({ lane }) => (lane.qkey ? [lane.qkey] : []))],
    });
  }

  overheard(address: string, draft: Draft): Omit<Overheard, 'random'> {
    const known = this.known.get(address);
    const ownKeys = this.entry(address, draft)?.keys ?? [];
    if (!known) return { keys: [], ownKeys, queuePairs: [1], sharedQueues: [], qkeys: [GSI_QKEY] };
    return { ...known, ownKeys };
  }

  mayTake(from: string, to: string, draft: Draft): boolean {
    const entry = this.entry(to, draft);
    return entry ? !entry.lane.spared : !isSparedPair(from, to);
  }

  maySend(from: string, to: string, draft: Draft): boolean {
    const entry = this.entry(to, draft);
    if (!entry) return from === STRANGER || from === to || !isSparedPair(from, to);
    if (!entry.lane.spared) return true;
    if (entry.lane.type !== 'UD') return from !== entry.peer;
    return draft.length < 24 || draft.view.getUint32(12) !== entry.lane.qkey;
  }

  private entry(to: string, { view, length }: Draft): Entry | undefined {
    if (length < 12) return undefined;
    return this.entries.get(to)?.get(view.getUint32(4) & 0xffffff);
  }

  private at(address: string): Map<number, Entry> {
    let entries = this.entries.get(address);
    if (!entries) this.entries.set(address, (entries = new Map<number, Entry>()));
    return entries;
  }
}

function isSparedPair(from: string, to: string): boolean {
  return from === SPARED_ADDRESS || to === SPARED_ADDRESS;
}

function addressOf({ node }: VerbsSide): string {
  return ipFromGid(node.port.gids[0]!);
}
