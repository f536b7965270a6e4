/** The three processes: two that share the array, and one that writes it over RDMA. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ia, type Lmr, MemPrivileges, type Pz } from 'dapl';
import { connect, listen, type Remote } from 'dapl/flow';

// Layout of the memory: words that count rounds, then the numbers.

/** A page before the numbers: peers have no access to it. */
const HEADER_BYTES = 4096;
const MIB = 1 << 20;
/** Words that count completed rounds, and rounds that were added up. */
const WRITTEN = 0;
const READ = 1;

interface SharedArray {
  /** Counters WRITTEN and READ. */
  readonly rounds: Int32Array;
  readonly numbers: Float32Array;
  readonly lmr: Lmr;
}

/** Maps the memory of a name: the same for every process of the user. */
function shareArray(ia: Ia, pz: Pz, name: string, mib: number): SharedArray {
  const lmr = ia.allocate(HEADER_BYTES + mib * MIB, {
    pz,
    shared: name,
    privileges: MemPrivileges.ALL,
  });
  const { buffer, byteOffset } = lmr.bytes;
  return {
    rounds: new Int32Array(buffer, byteOffset, 2),
    numbers: new Float32Array(buffer, byteOffset + HEADER_BYTES, (mib * MIB) / 4),
    lmr,
  };
}

/**
 * The number that the writer stores at an index in a round; readers can tell rounds apart by it.
 */
function numberAt(index: number, round: number): number {
  return (index % 1024) + round;
}

/** Sum of all numbers in a round; each is an integer, so the sum is exact. */
function sumOf(count: number, round: number): number {
  return (count / 1024) * ((1023 * 1024) / 2) + count * round;
}

export interface Place {
  readonly name: string;
  readonly mib: number;
}

const LOOK_MS = 1;

/**
 * Waits for a count. Atomics.wait only wakes threads of its own process; between two processes, one
 * polls or is told.
 */
async function reached(rounds: Int32Array, word: number, count: number): Promise<void> {
  while (Atomics.load(rounds, word) < count) await sleep(LOOK_MS);
}

/** Serves the array to one writer. A round begins when the previous one has been added up. */
export async function serve(
  ia: Ia,
  { name, mib }: Place,
  port: number,
  until: number,
): Promise<void> {
  await using listener = await listen(ia, { port });
  console.log(`listening on port ${port}`);
  for await (const conn of listener) {
    const { rounds, lmr } = shareArray(ia, conn.ep.pz, name, mib);
    const grant = conn.expose(lmr.bytes.subarray(HEADER_BYTES), 'write');
    await conn.send(new TextEncoder().encode(JSON.stringify(grant)));
    for (let round = 1; round <= until; round++) {
      await conn.receive();
      // The writes came before the message: a process that sees the new count sees them, too.
      Atomics.store(rounds, WRITTEN, round);
      await reached(rounds, READ, round);
      await conn.send(Uint8Array.of(1));
    }
    await conn.close();
    return;
  }
}

/** Waits for each round and adds up all numbers; nothing is copied to this process. */
export async function watch(ia: Ia, { name, mib }: Place, until: number): Promise<void> {
  const { rounds, numbers } = shareArray(ia, ia.createPz(), name, mib);
  console.log('watching');
  for (let round = 1; round <= until; round++) {
    await reached(rounds, WRITTEN, round);
    let sum = 0;
    for (const number of numbers) sum += number;
    if (sum !== sumOf(numbers.length, round)) throw new Error(`round ${round}: the sum is ${sum}`);
    console.log(`round ${round}: ${numbers.length} numbers, sum ${sum}`);
    Atomics.store(rounds, READ, round);
  }
}

/** Writes the whole array by RDMA, a mebibyte at a time, and waits until it was read. */
export async function write(
  ia: Ia,
  { mib }: Place,
  address: string,
  port: number,
  rounds: number,
): Promise<void> {
  await using conn = await connect(ia, { address, port });
  const { bytes } = await conn.receive();
  const grant = JSON.parse(new TextDecoder().decode(bytes)) as Remote;
  const lmr = ia.allocate(MIB, { pz: conn.ep.pz });
  const piece = new Float32Array(lmr.bytes.buffer, lmr.bytes.byteOffset, MIB / 4);
  for (let round = 1; round <= rounds; round++) {
    for (let i = 0; i < piece.length; i++) piece[i] = numberAt(i, round);
    const startMs = performance.now();
    const written = Array.from({ length: mib }, (_, i) =>
      conn.write(lmr.segment(), grant, { offset: i * MIB }),
    );
    await Promise.all(written);
    const seconds = (performance.now() - startMs) / 1000;
    console.log(`round ${round}: ${((mib * MIB) / seconds / 1e9).toFixed(1)} GB/s`);
    await conn.send(Uint8Array.of(round & 0xff));
    await conn.receive();
  }
  // The serving process closes it.
  for await (const message of conn) throw new Error(`${message.bytes.length} bytes too many`);
}
