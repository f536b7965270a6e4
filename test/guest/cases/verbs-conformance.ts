// The conformance suite over the verbs provider in a guest, on its rxe0.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { partOfToday } from '../../support/part-of-today.js';
import { patience } from '../../support/patience.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';
import { transcript } from './captured.js';

/** Connections, and every kind of transfer: another part each day, for they take minutes. */
const QUICK = [
  'Connecting|Listening|Answering|Disconnecting',
  'Transferring|Atomics|Datagrams',
] as const;
const WHOLE_TIMEOUT_MS = 3_600_000;
const QUICK_TIMEOUT_MS = 600_000;
/** Fewer say that the suite, or the filter, has lost its groups. */
const LEAST = { quick: 50, whole: 300 } as const;

/** Emulated, and maybe not alone on the machine. */
const PATIENCE_MS = 30_000;

/** Within rxe0, or between two devices of the guest. */
interface Devices {
  readonly name: string;
  readonly mtuBytes: number;
  readonly env: (guest: Guest) => Readonly<Record<string, string>>;
  readonly script?: string;
}

const ONE: Devices = {
  name: 'over rxe',
  mtuBytes: 4096,
  env: ({ ipv4 }) => ({ RXE_PASSIVE: ipv4 }),
};
const TWO: Devices = {
  name: 'between two rxe devices',
  mtuBytes: 4096,
  env: () => ({ RXE_ACTIVE: 'rxea', RXE_PASSIVE: '10.90.0.2' }),
  script: join(repositoryRoot, 'test', 'guest', 'conformance', 'two-devices.sh'),
};

export function verbsConformanceCases(lab: Lab, version: string): Case[] {
  const today = QUICK[partOfToday(QUICK.length)]!;
  const runs = [
    { size: 'quick', what: 'groups of the conformance suite', filter: today, devices: ONE },
    { size: 'whole', what: 'the conformance suite', filter: '', devices: ONE },
    { size: 'whole', what: 'the conformance suite', filter: '', devices: TWO },
  ] as const;
  return runs.map(({ size, what, filter, devices }) => ({
    name: `verbs: ${what} ${devices.name}`,
    row: {
      counterpart: 'rdma_rxe (libibverbs, librdmacm)',
      version,
      role: 'our verbs provider, both ends',
      transport: `rdma_cm, RC, UD, IPv4: ${what} ${devices.name}`,
      mtuBytes: devices.mtuBytes,
    },
    full: size === 'whole',
    isLong: true,
    timeoutMs: size === 'whole' ? WHOLE_TIMEOUT_MS : QUICK_TIMEOUT_MS,
    run: () => withDevices(lab, devices, () => conformance(lab, devices, filter, LEAST[size])),
  }));
}

async function withDevices(lab: Lab, { script }: Devices, run: () => Promise<void>): Promise<void> {
  await lab.setPathMtu(4096);
  if (script === undefined) return run();
  const guest = lab.guest(0);
  const up = await guest.run(`sh '${script}' up`);
  try {
    assert.equal(up.code, 0, transcript(up));
    await run();
  } finally {
    await guest.run(`sh '${script}' down`);
  }
}

async function conformance(
  lab: Lab,
  { env }: Devices,
  filter: string,
  least: number,
): Promise<void> {
  const guest = lab.guest(0);
  const mocha = join(repositoryRoot, 'node_modules', 'mocha', 'bin', 'mocha.js');
  const suite = join(repositoryRoot, 'dist', 'test', 'guest', 'conformance', 'rxe.js');
  const patienceMs = patience(PATIENCE_MS);
  const timeout = `--timeout ${3 * patienceMs}`;
  const options = `--no-config --no-package ${timeout} --reporter dot --grep '${filter}'`;
  const result = await guest.run(`exec '${process.execPath}' '${mocha}' ${options} '${suite}'`, {
    cwd: repositoryRoot,
    env: { ...env(guest), DAPL_TEST_PATIENCE_MS: String(patienceMs) },
    timeoutMs: WHOLE_TIMEOUT_MS,
  });
  assert.equal(result.code, 0, transcript(result));
  const passing = Number(/(\d+) passing/.exec(result.stdout)?.[1]);
  assert.ok(passing >= least, `${passing} passing`);
}
