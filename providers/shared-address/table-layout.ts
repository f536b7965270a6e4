/**
 * The memory that all processes of a shared device have mapped, in 32-bit words of the machine:
 * the state of each slot, which of them listens where, and the connections, so that others can act
 * when a process is killed.
 *
 *     header       magic, version, node GUID (low, high), listener entries ever used
 *     slots        256 of 4 words    state, 0, end of its rest in microseconds (f64)
 *     listeners    4,096 of 8 words  owner, 0, service id (low, high), mask (low, high), 0, 0
 *     classes      256 of 2 words    owner, key
 *     blocks       1,024 of 1 word   owner of 64 connections
 *     connections  65,536 of 12      live, local QPN, remote QPN, local and remote communication
 *                  words             id, local GID index, 0, 0, peer's GID (4)
 *
 * An owner is a slot plus 1; 0 means none. An entry is there or not by its first word alone, which
 * is written last when it comes and first when it goes: a process that is killed in mid-write
 * leaves nothing half-way.
 */
import { MAX_SLOTS } from './messages.js';

const VERSION = 1;
const MAGIC = 0x42544c53;
const HEADER_WORDS = 16;
const SLOT_WORDS = 4;

export const LISTENERS = { COUNT: 4096, WORDS: 8, AT: HEADER_WORDS + 256 * SLOT_WORDS } as const;
export const CLASSES = { COUNT: 256, WORDS: 2, AT: LISTENERS.AT + 4096 * 8 } as const;
export const BLOCKS = { COUNT: 1024, AT: CLASSES.AT + 256 * 2 } as const;
/** Connections of a block, which has one owner. */
export const BLOCK_CONNECTIONS = 64;
export const CONNECTIONS = {
  COUNT: BLOCKS.COUNT * BLOCK_CONNECTIONS,
  WORDS: 12,
  AT: BLOCKS.AT + BLOCKS.COUNT,
} as const;

export const TABLE_BYTES = 4 * (CONNECTIONS.AT + CONNECTIONS.COUNT * CONNECTIONS.WORDS);

/** USED: by a process that lives, or may. */
export const SLOT_STATES = ['FREE', 'USED', 'RESTING'] as const;
export type SlotState = (typeof SLOT_STATES)[number];

const LISTENER_ENTRIES = 4;

/** Header and slots, which the broker writes; what else is in it: claims.ts, connections.ts. */
export class TableMemory {
  readonly words: Uint32Array;
  private readonly doubles: Float64Array;

  private constructor(
    memory: ArrayBuffer,
    /** As it was when this process came: what a member scribbles later changes nothing of it. */
    readonly nodeGuid: bigint,
  ) {
    this.words = new Uint32Array(memory);
    this.doubles = new Float64Array(memory);
  }

  /** @param memory zeros, of TABLE_BYTES */
  static create(memory: ArrayBuffer, nodeGuid: bigint): TableMemory {
    const table = new TableMemory(memory, nodeGuid);
    table.words[1] = VERSION;
    table.words[2] = Number(nodeGuid & 0xffffffffn);
    table.words[3] = Number(nodeGuid >> 32n);
    table.words[0] = MAGIC;
    return table;
  }

  /** @returns undefined for what is no such table */
  static open(memory: ArrayBuffer): TableMemory | undefined {
    if (memory.byteLength !== TABLE_BYTES) return undefined;
    const [magic, version, low = 0, high = 0] = new Uint32Array(memory, 0, 4);
    if (magic !== MAGIC || version !== VERSION) return undefined;
    return new TableMemory(memory, BigInt(low) | (BigInt(high) << 32n));
  }

  stateOf(slot: number): SlotState {
    return SLOT_STATES[this.words[slotAt(slot)] ?? 0] ?? 'USED';
  }

  setState(slot: number, state: SlotState): void {
    Atomics.store(this.words, slotAt(slot), SLOT_STATES.indexOf(state));
  }

  /** On the clock that all processes of the machine have. */
  restEndUs(slot: number): number {
    return this.doubles[(slotAt(slot) + 2) / 2] ?? 0;
  }

  setRestEndUs(slot: number, endUs: number): void {
    this.doubles[(slotAt(slot) + 2) / 2] = endUs;
  }

  /** Entries of listeners that may be taken: all behind them never were. */
  get listenerEntries(): number {
    return Math.min(Atomics.load(this.words, LISTENER_ENTRIES), LISTENERS.COUNT);
  }

  set listenerEntries(entries: number) {
    Atomics.store(this.words, LISTENER_ENTRIES, entries);
  }

  /** @returns undefined where there is none */
  ownerAt(word: number): number | undefined {
    const owner = Atomics.load(this.words, word);
    return owner >= 1 && owner <= MAX_SLOTS ? owner - 1 : undefined;
  }

  setOwner(word: number, slot: number | undefined): void {
    Atomics.store(this.words, word, slot === undefined ? 0 : slot + 1);
  }

  u64At(word: number): bigint {
    return BigInt(this.words[word] ?? 0) | (BigInt(this.words[word + 1] ?? 0) << 32n);
  }

  setU64(word: number, value: bigint): void {
    this.words[word] = Number(value & 0xffffffffn);
    this.words[word + 1] = Number(value >> 32n);
  }
}

function slotAt(slot: number): number {
  return HEADER_WORDS + SLOT_WORDS * slot;
}
