/**
 * A life of a connection on mock: bytes both ways in every mode, under loss, and cut at a step of
 * one's choice. What it finds wrong is returned, in words.
 */
import { SeededRandom } from '../../../../../providers/mock/index.js';
import type { SdpOptions, TapEvent } from '../../../../../samples/ulp/sdp/index.js';
import { StreamError } from '../../../../../samples/ulp/socket/index.js';
import { Judge } from './judge.js';
import { CLIENT, type End, NOTHING_LEFT, pattern, Scene, SERVER } from './scene.js';

/** Virtual time in which everything must have ended. */
const PATIENCE_MS = 120_000;
const KEEP_ALIVE_MS = 500;

/** What becomes of the network or a node at a step. */
export const CUTS = {
  'the server is gone': (scene: Scene) => scene.fabric.node(SERVER)?.remove(),
  'the client is gone': (scene: Scene) => scene.fabric.node(CLIENT)?.remove(),
  'a partition': (scene: Scene) => scene.fabric.partition([SERVER], [CLIENT]),
  'a partition that heals': (scene: Scene) => {
    scene.fabric.partition([SERVER], [CLIENT]);
    scene.fabric.clock.at(scene.fabric.clock.now() + 300_000, () => scene.fabric.heal());
  },
  'the client aborts': (_: Scene, near: End | undefined) => near?.stream.abort(),
} as const;

export type Cut = keyof typeof CUTS;

/** Small sizes, so that every mode has its turn within few bytes. */
export const SIZES: SdpOptions = {
  ...{ receives: 6, receiveBytes: 600, maxReceiveBytes: 1200, desiredPeerBytes: 600 },
  ...{ zeroCopyBytes: 2000, advertBytes: 4096, areaBytes: 4096, areas: 3 },
  ...{ closeTimeoutMs: 2000, advertMs: 200, cancelMs: 5000 },
};

export interface MockLifeOptions {
  readonly seed: number;
  readonly sdp?: SdpOptions;
  readonly lossPercent?: number;
  /** Happens when so many messages and operations have been posted by both sides. */
  readonly cut?: { readonly how: Cut; readonly at: number };
}

export interface MockLife {
  readonly faults: readonly string[];
  /** Messages and operations that were posted. */
  readonly steps: number;
  /** Of `steps`, those that were ModeChange. */
  readonly modeChanges: readonly number[];
}

export async function liveOnMock(options: MockLifeOptions): Promise<MockLife> {
  const { seed, lossPercent = 0, cut } = options;
  const random = new SeededRandom(seed);
  const faults: string[] = [];
  const modeChanges: number[] = [];
  const judge = new Judge();
  let steps = 0;
  let near: End | undefined;
  const tap = (phase: 'sent' | 'arrived', event: TapEvent, local: string): void => {
    judge.observe(local.startsWith(CLIENT) ? 'A' : 'B', phase, event);
    if (phase !== 'sent' || event.kind === 'receivesPosted') return;
    steps++;
    if (event.kind === 'message' && event.bytes[0] === 0x07) modeChanges.push(steps);
    if (steps !== cut?.at) return;
    // Not from within the call that posts.
    scene.fabric.clock.at(scene.fabric.clock.now(), () => void CUTS[cut.how](scene, near));
  };
  const all = { ...SIZES, ...options.sdp, tap };
  const scene = await Scene.make(all, all, { seed, link: { lossPercent } });
  const until = new Set<Promise<unknown>>();
  const follow = (what: string, promise: Promise<unknown>): void => {
    const settled = promise.catch((error: unknown) => {
      if (cut === undefined && lossPercent === 0) faults.push(`${what}: ${String(error)}`);
      else if (!(error instanceof StreamError)) faults.push(`${what}: threw ${String(error)}`);
    });
    until.add(settled);
  };
  await scene.listen();
  const dialling = new AbortController();
  const connecting = scene.connect(true, dialling.signal).then((end) => (near = end));
  const open = Promise.all([connecting, scene.accept()]);
  const opened = await within(
    scene,
    open.then(
      () => true,
      () => false,
    ),
  );
  if (opened === true) {
    const [one, far] = await open;
    const sides = [
      [one, far, pattern(30_000 + random.below(5000))],
      [far, one, pattern(20_000 + random.below(5000), 50)],
    ] as const;
    for (const [end] of sides) end.stream.setKeepAlive(KEEP_ALIVE_MS);
    for (const [end, , bytes] of sides) follow('a write', writeAll(end, bytes, random.fork()));
    const isWritten = await within(scene, Promise.all(until));
    if (isWritten === undefined) faults.push('writes do not end');
    if (cut === undefined) {
      const ended = Promise.all(sides.map(([end]) => Promise.race([end.ended(), end.closed])));
      if ((await within(scene, ended)) === undefined) faults.push('the ends do not come');
    }
    for (const [end] of sides) end.stream.close();
    const closed = Promise.all(sides.map(([end]) => end.closed));
    if ((await within(scene, closed)) === undefined) faults.push('onClose does not come');
    for (const [, reader, bytes] of sides) checkBytes(reader, bytes, cut === undefined, faults);
  } else if (cut === undefined && lossPercent === 0) faults.push('does not connect');
  dialling.abort();
  // It may be open here, and not there.
  near?.stream.abort();
  await scene.listener.close();
  await scene.pass(20_000);
  // An adapter whose device has gone is closed by its consumer.
  if (cut === undefined || !cut.how.endsWith('gone')) {
    if (scene.left !== NOTHING_LEFT) faults.push(`leaves ${scene.left}`);
  }
  await scene.close();
  const isOrderly = cut === undefined && lossPercent === 0;
  faults.push(...(isOrderly ? judge.verdict() : judge.model.violations));
  return { faults, steps, modeChanges };
}

/** In pieces, with an urgent byte and a half close. */
async function writeAll(end: End, bytes: Uint8Array, random: SeededRandom): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const length = random.below(2) === 0 ? 1 + random.below(400) : 2000 + random.below(12_000);
    // Of its own memory: it is read from where it is.
    await end.write(bytes.slice(at, at + length), bytes.slice(at + length, at + length + 10));
    at += length + 10;
    if (random.below(4) === 0) end.stream.sendUrgent(7);
  }
  await end.shutdown();
}

/** What has come is the beginning of what was written, or all of it. */
function checkBytes(end: End, bytes: Uint8Array, isWhole: boolean, faults: string[]): void {
  const { received } = end;
  if (isWhole && received.length !== bytes.length) {
    faults.push(`${received.length} of ${bytes.length} bytes came`);
  }
  const wrong = received.findIndex((byte, at) => byte !== bytes[at]);
  if (wrong >= 0) faults.push(`byte ${wrong} is not what was written`);
}

/** @returns undefined where it takes longer than anything may */
function within<T>(scene: Scene, promise: Promise<T>): Promise<T | undefined> {
  return Promise.race([promise, scene.pass(PATIENCE_MS).then(() => undefined)]);
}
