/**
 * Lives of connections over the verbs provider, run in a guest by cases/verbs-life.ts:
 * `main.js <mode> <address> ...`. It ends when everything is closed, by itself.
 */
import { cycles } from './cycles.js';
import { ends } from './ends.js';
import { drive, serve } from './kill.js';
import { linkDown } from './link-down.js';
import { hear, tell } from './multicast.js';
import { say } from './side.js';
import { workers } from './workers.js';

const MODES: Readonly<
  Record<string, (address: string, words: readonly string[]) => Promise<void>>
> = {
  /** Connects and disconnects so many times. */
  cycles: (address, [times = '10']) => cycles(address, Number(times)),
  /** Transfers until the device goes. */
  removal: (address) => ends(address),
  /** Transfers, connects again when the connection has ended, and transfers on. */
  link: (address) => linkDown(address),
  serve: (address, [clients = '1']) => serve(address, Number(clients)),
  drive: (address, [requests = 'forever']) => drive(address, requests),
  workers: (address) => workers(address),
  /** Datagrams to a group. */
  hear: (address, [group = '', times = '1']) => hear(address, group, Number(times)),
  tell: (address, [group = '', times = '1']) => tell(address, group, Number(times)),
};

const [mode = '', address = '', ...words] = process.argv.slice(2);
const run = MODES[mode];
if (run === undefined) throw new Error(`mode ${mode}: ${Object.keys(MODES).join(', ')}`);
await run(address, words);
say('done');
