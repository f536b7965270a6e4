/** A process of the benchmark: it floods as it is told, or is the innocent client. */
import { flood, type FloodOptions } from './flooder.js';
import { Innocent } from './innocent.js';

export type FloodCall =
  | { readonly call: 'flood'; readonly options: FloodOptions }
  | {
      readonly call: 'open';
      readonly local: string;
      readonly remote: string;
      readonly udpPort: number;
    }
  | { readonly call: 'notice'; readonly seconds: number };

export type FloodAnswer = { readonly value: unknown } | { readonly error: string };

let innocent: Innocent | undefined;

async function perform(call: FloodCall): Promise<unknown> {
  switch (call.call) {
    case 'flood':
      return flood(call.options);
    case 'open':
      innocent = await Innocent.open(call.local, call.remote, call.udpPort);
      return undefined;
    case 'notice':
      return innocent?.notice(call.seconds);
  }
}

function answer(message: FloodAnswer): void {
  if (process.connected) process.send?.(message);
}

process.on('message', (call: FloodCall) => {
  perform(call).then(
    (value) => answer({ value }),
    (error: unknown) => answer({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
