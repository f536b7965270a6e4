/** The fake libibverbs of test/native/fake-ibverbs: what only a fake can do. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { loadVerbsAddon, type VerbsAddon } from '../../providers/verbs/native-addon.js';

/** How the fake carries out what is posted: at once, when told to, or on a thread of its own. */
export const Mode = { IMMEDIATE: 0, MANUAL: 1, THREAD: 2 } as const;

/** Contexts are addresses, as `VerbsAddon.contextAddress` has them. */
export interface FakeControl {
  load(path: string): string | undefined;
  setMode(context: bigint, mode: number): number;
  /** Microseconds between requests in THREAD mode. */
  setPace(context: bigint, us: number): void;
  progress(context: bigint, limit: number): number;
  /** The nth call from now on of that function fails, once. */
  inject(name: string, nth: number, errno: number): number;
  clearInjections(): void;
}

const directory = join(import.meta.dirname, '../../../build/native');
export const FAKE_LIBRARY = join(directory, 'fake-ibverbs.so');

function orThrow(missing: string | undefined): void {
  if (missing !== undefined) throw new Error(missing);
}

/** The provider's addon over the fake. */
export function loadOverFake(): VerbsAddon {
  const addon = loadVerbsAddon();
  orThrow(addon.load('verbs', FAKE_LIBRARY));
  return addon;
}

export function loadFakeControl(): FakeControl {
  const control = createRequire(import.meta.url)(
    join(directory, 'fake-control.node'),
  ) as FakeControl;
  orThrow(control.load(FAKE_LIBRARY));
  return control;
}
