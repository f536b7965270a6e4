// `npm run bench:storage:guest`: our target beside Linux's (LIO, ib_isert), both in one guest over
// its rxe0, with disks of one kind (files in its memory); our initiator on the host, over softroce.
import { join } from 'node:path';

import type { Kernel } from '../kernel.js';
import { Lab } from '../lab.js';
import { LIO_DISK_MIB, LIO_NAME, startLio, stopLio } from '../lio.js';
import { repositoryRoot } from '../paths.js';

const OUR_NAME = 'iqn.2026-01.io.dapl:bench';
/** The guest's 3260 is LIO's. */
const OUR_PORT = 3261;
const START_TIMEOUT_MS = 120_000;
const BENCH_TIMEOUT_MS = 900_000;

/** @param args options of bench:storage, but for those that say what is measured */
export async function benchStorage(kernel: Kernel, args: readonly string[]): Promise<number> {
  const lab = await Lab.start({ kernel, guestCount: 1 });
  const guest = lab.guest(0);
  await startLio(guest);
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  const ours = guest.spawn(
    `exec ${process.execPath} ${program} iser-target --name ${OUR_NAME} --provider verbs ` +
      `--lun /tmp/ours.img --size ${LIO_DISK_MIB}M --listen ${guest.ipv4}:${OUR_PORT}`,
  );
  await ours.waitForOutput(/^serving/m, START_TIMEOUT_MS);
  const peers = [
    `ours=iser://${guest.ipv4}:${OUR_PORT}/${OUR_NAME}`,
    `LIO=iser://${guest.ipv4}/${LIO_NAME}`,
  ];
  const bench = join(repositoryRoot, 'dist/bench/storage/main.js');
  const words = [...peers.map((peer) => `--peer ${peer}`), '--local', lab.host.ipv4, ...args];
  const { code, stdout, stderr } = await lab.host.run(
    `exec ${process.execPath} ${bench} --no-own ${words.join(' ')}`,
    { timeoutMs: BENCH_TIMEOUT_MS },
  );
  process.stdout.write(stdout);
  process.stderr.write(code === 0 ? stderr : `${stderr}${ours.stderr}`);
  ours.kill('SIGTERM');
  await ours.finish(START_TIMEOUT_MS);
  await stopLio(guest);
  await lab.powerOff();
  return code ?? 1;
}
