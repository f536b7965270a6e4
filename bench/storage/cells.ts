/** What is measured, and with what: commands of one kind and size, so many at a time. */
import type { Disk, TransportName } from '../../samples/ulp/iser/index.js';

export interface Cell {
  readonly operation: 'read' | 'write';
  readonly bytes: number;
  readonly depth: number;
}

const KIB = 1024;
const SIZES = [4 * KIB, 1024 * KIB];
const DEPTHS = [1, 32];

export const CELLS: readonly Cell[] = SIZES.flatMap((bytes) =>
  DEPTHS.flatMap((depth) =>
    (['read', 'write'] as const).map((operation) => ({ operation, bytes, depth })),
  ),
);

/** A target that is measured: where it is, and by what it is reached. */
export interface Contender {
  readonly name: string;
  readonly transport: TransportName;
  readonly address: string;
  readonly port: number;
  readonly target: string;
}

/** What a time of one cell gave. */
export interface Sample {
  readonly commands: number;
  readonly seconds: number;
  /** CPU time of this process, in microseconds for each command. */
  readonly cpuUs: number;
}

/** Buffers of the disk's own memory, one for each command at a time. */
export function buffersOf(disk: Disk, { bytes, depth }: Cell): Uint8Array[] {
  return Array.from({ length: depth }, () => disk.allocate(bytes).fill(0x5a));
}

/** Commands, `depth` at a time, at places that a seed says, for so long. */
export async function run(
  disk: Disk,
  { operation, bytes }: Cell,
  buffers: readonly Uint8Array[],
  seconds: number,
): Promise<Sample> {
  const places = Number(disk.capacity / BigInt(bytes));
  const blocks = bytes / disk.blockBytes;
  let seed = 1;
  const place = (): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * places) * blocks;
  };
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let commands = 0;
  const lane = async (buffer: Uint8Array): Promise<void> => {
    while (performance.now() < end) {
      await (operation === 'read' ? disk.read(place(), buffer) : disk.write(place(), buffer));
      commands++;
    }
  };
  await Promise.all(buffers.map(lane));
  const taken = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { commands, seconds: taken, cpuUs: (user + system) / commands };
}
