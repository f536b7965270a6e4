/** What only a fake libibverbs can do: modes, failures, devices that come and go. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

const directory = join(import.meta.dirname, '../../../build/native');

/** The fake: a path to open as libibverbs. */
export const FAKE_LIBIBVERBS = join(directory, 'fake-ibverbs.so');

/** How posted requests are carried out: at once, when told to, or on a thread of its own. */
export const Mode = { IMMEDIATE: 0, MANUAL: 1, THREAD: 2 } as const;
export type Mode = (typeof Mode)[keyof typeof Mode];

/** Bits: what a device may be without. */
export const Feature = {
  XRC: 1,
  MW_TYPE_1: 2,
  MW_TYPE_2B: 4,
  SRQ_RESIZE: 8,
  CQ_RESIZE: 16,
  COMM_EST: 32,
  GID_TYPES: 64,
  QP_EVENTS: 128,
  ALL: 255,
} as const;

/** How an injected failure shows: drivers differ in what they make of errno. */
export const Failure = { DOCUMENTED: 0, MINUS_ONE: 1, NEGATIVE: 2, SILENT: 3 } as const;
export type Failure = (typeof Failure)[keyof typeof Failure];

export const GidType = { IB: 0, ROCE_V1: 1, ROCE_V2: 2 } as const;

/** Of all contexts of the process. Numbers returned are errno unless they say what they count. */
export interface FakeVerbs {
  /** Of those that are open, and of those that will be. */
  setMode(mode: Mode): number;
  /** Microseconds between requests in THREAD mode. */
  setPace(us: number): void;
  /** Carries out at most `limit` requests (0: all that can be); returns how many. */
  progress(limit: number): number;
  /** MANUAL mode: lets time pass for retries. */
  elapse(us: number): void;
  /** The nth call of that function from now on fails with the errno, once. */
  inject(name: string, nth: number, errno: number): number;
  /** Of all injections until the next `clearInjections`. */
  setFailure(how: Failure): void;
  /** Whether callers find it by name (1), or behind a context (0). */
  isExported(name: string): 0 | 1;
  functionName(index: number): string | undefined;
  /** Calls since injections were cleared; the first question starts the count. */
  calls(name: string): number;
  clearInjections(): void;
  /** The nth send request to be carried out from now on fails with that status. */
  failRequest(nth: number, status: number): void;
  /** Objects that exist, of a kind ("mr", "qp" …) or all. */
  objects(kind?: string): number;
  addDevice(name: string, ports: number): number;
  removeDevice(name: string, flush: 0 | 1): number;
  restoreDevice(name: string): number;
  /** Devices as they are at the start: fake0 198.51.100.1, fake1 198.51.100.2. */
  restore(): void;
  setLink(name: string, port: number, up: 0 | 1): number;
  setGid(
    name: string,
    port: number,
    index: number,
    gid: Uint8Array | undefined,
    type: number,
  ): number;
  setFeatures(name: string, features: number): number;
  /** Bytes that may be registered in all; 0: no limit. */
  setMemlock(bytes: number): void;
}

interface Control extends FakeVerbs {
  load(path: string): string | undefined;
}

let loaded: Control | undefined;

export function fakeVerbs(): FakeVerbs {
  if (loaded) return loaded;
  const control = createRequire(import.meta.url)(join(directory, 'fake-control.node')) as Control;
  const missing = control.load(FAKE_LIBIBVERBS);
  if (missing !== undefined) throw new Error(`fake libibverbs: ${missing}`);
  return (loaded = control);
}

/** Names of all functions that can be made to fail. */
export function injectable(): string[] {
  const names: string[] = [];
  for (let name = fakeVerbs().functionName(0); name !== undefined;) {
    names.push(name);
    name = fakeVerbs().functionName(names.length);
  }
  return names;
}
