/**
 * dapltest in TypeScript: uDAPL's test program over the DAT API. Either end may be the C program:
 * `dapltest -T T -s 10.0.0.1 -D ofa-v2-rxe client SR 256 server SR 256` against
 * `node dist/samples/dapltest/main.js -T S -D 10.0.0.1`.
 */
import { type Ia, localAddressToward } from 'dapl';

import { runProgram } from '../program.js';
import { runPerformance, runQuit, runTransaction } from './client.js';
import { runLimits } from './limit.js';
import { parseTask, type Task } from './options.js';
import { runServer } from './server.js';

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await runProgram('dapltest', async (open) => {
  const task = parseTask(process.argv.slice(2));
  const device = task.device ?? (await localAddressToward(serverOf(task)));
  const openHere = (): Promise<Ia> => open(device, task.provider);
  switch (task.test) {
    case 'S':
      return runServer(openHere, { port: task.port, name: device }, print);
    case 'T':
      return runTransaction(await openHere(), task.server, task.command, print);
    case 'P':
      return runPerformance(await openHere(), task.server, task.command, print);
    case 'Q':
      return runQuit(await openHere(), task.server);
    case 'L':
      return runLimits(openHere, task.limits, print);
  }
});

function serverOf(task: Task): string {
  return 'server' in task ? task.server.address : '';
}
