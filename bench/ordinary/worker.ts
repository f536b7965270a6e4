/** A process of the ordinary bench: a side of a program, or a relay. */
import { access } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveCalls } from '../compare/serve.js';
import { settle } from '../compare/settle.js';
import type { Job, Program } from './link.js';
import type { Relay } from './relays.js';
import { together, type Usage, usage } from './usage.js';
import { Client, type Plant, serve } from './work.js';

export type OrdinaryCall =
  | { readonly call: 'listen'; readonly job: Job }
  | { readonly call: 'connect'; readonly job: Job; readonly port: number }
  | { readonly call: 'warm'; readonly limitSeconds: number }
  | { readonly call: 'run'; readonly seconds: number; readonly messages: number }
  | { readonly call: 'relay'; readonly relay: Relay }
  | { readonly call: 'look' | 'opening' | 'close' };

const [kind = '', local = '', remote = ''] = process.argv.slice(2);
/** A window of the warm-up. */
const WINDOW_SECONDS = 0.2;
const PLANTED_MS = 2;

/** For tests of the bench: delays of a server over TCP, by the name behind the program's. */
const PLANTS: Readonly<Record<string, Plant>> = {
  sleep: () => sleep(PLANTED_MS),
  spin: () => {
    for (const end = performance.now() + PLANTED_MS; performance.now() < end;);
  },
  // The answer of another thread wakes the event loop once more.
  'wake-up': () => access('/'),
};

type Open = (flags: readonly string[]) => Promise<Program>;

/** Modules are loaded when they are wanted: the cost of that is a row. */
const OPENERS: Readonly<Record<string, Open>> = {
  tcp: async () => new (await import('./sockets.js')).NodeProgram('tcp', local, remote),
  unix: async () => new (await import('./sockets.js')).NodeProgram('unix', local, remote),
  ws: async () => {
    const { MessengerProgram } = await import('./messages.js');
    const { WebSockets } = await import('../front/web-socket.js');
    return new MessengerProgram(new WebSockets(), local, remote);
  },
  ipc: async () => new (await import('./messages.js')).IpcProgram(),
  easy: openEasy,
  channel: openEasy,
  rsocket: async (flags) =>
    new (await import('./rsockets.js')).RsocketProgram(!flags.includes('udp'), local, remote),
  dat: async (flags) =>
    new (await import('./dat.js')).DatProgram(!flags.includes('udp'), local, remote),
};

async function openEasy(flags: readonly string[]): Promise<Program> {
  const { EasyProgram } = await import('./promises.js');
  const polling = (['event', 'adaptive'] as const).find((each) => flags.includes(each));
  const way = kind.startsWith('channel') ? (await import('./channels.js')).CHANNEL : undefined;
  return new EasyProgram({ way, isShared: !flags.includes('udp'), polling }, local, remote);
}

/** The child of a client over IPC. */
async function serveParent(): Promise<void> {
  const { ipcLink } = await import('./messages.js');
  process.on('message', (message) => message === 'usage' && process.send!(usage()));
  await serve(ipcLink(process), JSON.parse(local) as Job);
}

async function open(): Promise<(request: OrdinaryCall) => Promise<unknown>> {
  const before = usage();
  const [name = '', ...flags] = kind.split('-');
  const program = await OPENERS[name]?.(flags);
  const opening = [before, usage()] as const;
  const plant = PLANTS[flags.join('-')];
  let client: Client | undefined;
  return async (request) => {
    switch (request.call) {
      case 'opening':
        return opening;
      case 'listen':
        return program!.listen(request.job, (link) => void serve(link, request.job, plant));
      case 'connect':
        client = new Client(program!, request.job, request.port);
        return client.connect();
      case 'warm':
        return settle(() => client!.window(WINDOW_SECONDS), request.limitSeconds);
      case 'run':
        return client!.run(request.seconds, request.messages);
      case 'relay':
        return (await import('./relays.js'))[kind === 'relay' ? 'nodeRelay' : 'forwardRelay'](
          request.relay,
        );
      case 'look':
        return look(program);
      case 'close':
        await program?.close();
        process.disconnect();
        return undefined;
    }
  };
}

async function look(program: Program | undefined): Promise<Usage> {
  const own = usage(program?.counters?.());
  return program?.others === undefined ? own : together([own, await program.others()]);
}

if (kind === 'ipc-server') await serveParent();
else await serveCalls(open);
