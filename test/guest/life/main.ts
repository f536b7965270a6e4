/**
 * Lives of connections over the verbs provider, run in a guest by cases/verbs-life.ts:
 * `main.js <mode> <address> ...`. It ends when everything is closed, by itself. Each mode loads
 * what it needs: in an emulated guest that is what a short one takes.
 */
import { say } from './say.js';

type Mode = (address: string, words: readonly string[]) => Promise<void>;

const MODES: Readonly<Record<string, Mode>> = {
  /** Connects and disconnects so many times. */
  async cycles(address, [times = '10']) {
    const { cycles } = await import('./cycles.js');
    await cycles(address, Number(times));
  },
  /** Transfers until the device goes. */
  async removal(address) {
    const { ends } = await import('./ends.js');
    await ends(address);
  },
  /** Transfers, connects again when the connection has ended, and transfers on. */
  async link(address) {
    const { linkDown } = await import('./link-down.js');
    await linkDown(address);
  },
  async serve(address, [clients = '1']) {
    const { serve } = await import('./kill.js');
    await serve(address, Number(clients));
  },
  async drive(address, [requests = 'forever']) {
    const { drive } = await import('./kill.js');
    await drive(address, requests);
  },
  async workers(address) {
    const { workers } = await import('./workers.js');
    await workers(address);
  },
  /** Datagrams to a group. */
  async hear(address, [group = '', times = '1']) {
    const { hear } = await import('./multicast.js');
    await hear(address, group, Number(times));
  },
  async tell(address, [group = '', times = '1']) {
    const { tell } = await import('./multicast.js');
    await tell(address, group, Number(times));
  },
};

const [mode = '', address = '', ...words] = process.argv.slice(2);
const run = MODES[mode];
if (run === undefined) throw new Error(`mode ${mode}: ${Object.keys(MODES).join(', ')}`);
await run(address, words);
say('done');
