// perftest's programs between two guests, and what they print.
import assert from 'node:assert/strict';

import { isLatency, type Result, type Work } from '../../../bench/verbs/workload.js';
import type { Guest } from '../guest.js';
import type { PathMtu } from '../lab.js';

const START_TIMEOUT_MS = 30_000;
const RUN_TIMEOUT_MS = 120_000;
/** It says that it waits before it listens. */
const LISTEN_DELAY_MS = 300;

/** The parameters of a cell, as perftest's letters: see docs/verbs.md. */
export function lettersOf(work: Work, mtuBytes: PathMtu): string {
  const { test, bytes, iterations, depth, moderation, reads } = work;
  const common = `-d rxe0 -F -m ${mtuBytes} -s ${bytes} -n ${iterations}`;
  switch (test) {
    case 'ib_send_lat':
      return `${common} -e -I 0`;
    case 'ib_write_lat':
      return `${common} -I 0`;
    case 'ib_write_bw':
      return `${common} -I 0 -t ${depth} -Q ${moderation}`;
    case 'ib_read_bw':
      return `${common} -t ${depth} -Q ${moderation} -o ${reads}`;
  }
}

export async function runPerftest(
  [client, server]: readonly [Guest, Guest],
  work: Work,
  mtuBytes: PathMtu,
): Promise<Result> {
  const command = `stdbuf -oL ${work.test} ${lettersOf(work, mtuBytes)}`;
  const serving = server.spawn(command);
  try {
    await serving.waitForOutput(/Waiting for client/, START_TIMEOUT_MS);
    await new Promise((resolve) => setTimeout(resolve, LISTEN_DELAY_MS));
    const ran = await client.run(`${command} ${server.ipv4}`, { timeoutMs: RUN_TIMEOUT_MS });
    assert.equal(ran.code, 0, `${command}: ${ran.stdout}${ran.stderr}`);
    return resultOf(work, ran.stdout);
  } finally {
    await serving.stop();
  }
}

/** Of a latency line: bytes, iterations, least, most, median, mean, deviation, p99, p99.9. */
const [MEDIAN, P99] = [4, 7];
/** Of a bandwidth line: bytes, iterations, peak, mean, rate. */
const MEAN = 3;

export function resultOf({ test, bytes }: Work, output: string): Result {
  const lines = output.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const line = lines.find((columns) => columns[0] === bytes && columns.length >= 5);
  if (line === undefined) throw new Error(`${test} printed no result: ${output}`);
  return isLatency(test)
    ? { p50: line[MEDIAN] ?? NaN, p99: line[P99] ?? NaN }
    : { mibps: line[MEAN] ?? NaN };
}
