/**
 * Cuts the tests into lanes and rooms. `npm test` runs the quick lane, `npm run test:all` both. A
 * room is the tests of one folder: they share a process, so that what one of them leaves open is
 * found there.
 */
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The folder with package.json. */
export const ROOT = join(import.meta.dirname, '../../..');

export const LANES = ['quick', 'long'] as const;
export type Lane = (typeof LANES)[number];
/**
 * The process whose children leave out the long cases of their files (support/lane.ts). What they
 * start in turn, such as another mocha, has all cases.
 */
export const LANE_VARIABLE = 'DAPL_TEST_QUICK_PID';

export interface Room {
  /** Folders, as a reader names them: `test/unit/evd`. */
  readonly name: string;
  /** Sources, relative to the root. */
  readonly files: readonly string[];
}

/**
 * Rooms whose tests take longest, by measurement: they start first, so that the processes end
 * together. One that is missing here costs time, not coverage.
 */
const SLOWEST_FIRST = ['test/compliance', 'test/samples', 'test/unit/hca', 'test/unit/evd'];
/** Rooms with fewer files share a process: it takes a second to load what all of them import. */
const SMALL_ROOM = 10;
const MOST_TOGETHER = 30;

/** Each test of the repository is in exactly one lane. */
export function laneOf(file: string): Lane {
  return file.endsWith('.long.test.ts') ? 'long' : 'quick';
}

/** Whether a run leaves out long cases: files that a path chooses have all of theirs. */
export function isQuickRun(lanes: readonly Lane[], paths: readonly string[]): boolean {
  return paths.length === 0 && !lanes.includes('long');
}

/** Files below a folder of the repository, relative to the root; links are not followed. */
export function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

/** Sources of tests in alphabetical order, relative to the root. */
export function testFiles(): string[] {
  return filesBelow('test')
    .filter((path) => path.endsWith('.test.ts'))
    .sort();
}

/** The output of tsc for a source. */
export function compiled(file: string): string {
  return join(ROOT, 'dist', file.replace(/\.ts$/, '.js'));
}

function folderOf(file: string): string {
  const parts = file.split('/').slice(0, -1);
  const depth = parts[1] !== 'unit' ? 2 : parts[2] === 'samples' ? 4 : 3;
  return parts.slice(0, depth).join('/');
}

/** Rooms in the order in which they start. Their files are those given, each once. */
export function roomsOf(files: readonly string[]): Room[] {
  const folders = new Map<string, string[]>();
  for (const file of files) {
    const name = folderOf(file);
    folders.set(name, [...(folders.get(name) ?? []), file]);
  }
  const rooms: Room[] = [];
  let shared: Room = { name: 'other rooms', files: [] };
  for (const [name, own] of folders) {
    if (own.length >= SMALL_ROOM || SLOWEST_FIRST.includes(name)) {
      rooms.push({ name, files: own });
      continue;
    }
    shared = { ...shared, files: [...shared.files, ...own] };
    if (shared.files.length < MOST_TOGETHER) continue;
    rooms.push(shared);
    shared = { ...shared, files: [] };
  }
  if (shared.files.length > 0) rooms.push(shared);
  const rank = ({ name }: Room): number => {
    const place = SLOWEST_FIRST.indexOf(name);
    return place < 0 ? SLOWEST_FIRST.length : place;
  };
  return rooms.sort((a, b) => rank(a) - rank(b) || b.files.length - a.files.length);
}
