/** What a program that shares an address holds, and what the table of its group says. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MAX_SLOTS } from '../../providers/shared-address/messages.js';
import {
  BLOCKS,
  CLASSES,
  LISTENERS,
  type SlotState,
  TableMemory,
} from '../../providers/shared-address/table-layout.js';

export interface Usage {
  readonly descriptors: number;
  /** Of them, shared tables. */
  readonly tables: number;
  /** Shared tables that are mapped. */
  readonly mapped: number;
  readonly rssBytes: number;
  /** After all that is not used has been collected. */
  readonly heapBytes: number;
}

export interface TableUse extends Readonly<Record<SlotState, number>> {
  /**
   * Listeners and classes of slots that no process has, and blocks of connections of those that do
   * not rest either.
   */
  readonly stale: number;
}

export async function usageOf(): Promise<Usage> {
  // What has been mapped is given back a turn after it has been collected.
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await nextTurn();
  }
  const links = readdirSync('/proc/self/fd').map(linkOf);
  const maps = readFileSync('/proc/self/maps', 'utf8').split('\n');
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    descriptors: links.length,
    tables: links.filter((link) => link.includes('memfd:dapl-shared')).length,
    mapped: maps.filter((line) => line.includes('memfd:dapl-shared')).length,
    rssBytes: rss,
    heapBytes: heapUsed + external,
  };
}

export function tableOf(memory: ArrayBuffer): TableUse {
  const table = TableMemory.open(memory);
  assert.ok(table, 'a table');
  const use = { FREE: 0, USED: 0, RESTING: 0, stale: 0 };
  for (let slot = 0; slot < MAX_SLOTS; slot++) use[table.stateOf(slot)]++;
  for (const [at, words, count, states] of [
    [LISTENERS.AT, LISTENERS.WORDS, LISTENERS.COUNT, ['USED']],
    [CLASSES.AT, CLASSES.WORDS, CLASSES.COUNT, ['USED']],
    [BLOCKS.AT, 1, BLOCKS.COUNT, ['USED', 'RESTING']],
  ] as const) {
    for (let i = 0; i < count; i++) {
      const owner = table.ownerAt(at + i * words);
      const state = owner === undefined ? undefined : table.stateOf(owner);
      if (state !== undefined && !states.some((each) => each === state)) use.stale++;
    }
  }
  return use;
}

function linkOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
