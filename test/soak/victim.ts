/**
 * A process that is going to be killed, stopped, or to end by itself, with connections open. Its
 * plan is the first argument, in JSON. It says 'ready' when its connections are up (or come and
 * go), answers 'ping', and ends as it is told.
 */
import { openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { keepConnecting, Side, Talker, type TalkerOptions } from './talker.js';

export interface VictimPlan extends TalkerOptions {
  readonly role: 'connect' | 'accept';
  readonly own: string;
  readonly peer: string;
  readonly connQual: number;
  readonly connections: number;
  readonly port: 'native' | 'dgram';
}

/** How it ends when told to. */
export type VictimEnd = 'exit' | 'throw' | 'end' | 'exit in an upcall';
/** How it takes signals from then on. */
export type VictimMood = 'ignores signals' | 'stands still';
export type VictimMessage = 'listening' | 'ready' | 'pong';

const plan = JSON.parse(process.argv[2] ?? '') as VictimPlan;
const say = (message: VictimMessage): void => void process.send?.(message);
const talkers: Talker[] = [];
let stopListening = (): void => undefined;

const ia = await openIa(softroce({ addresses: [plan.own], port: plan.port, shm: false }));
const side = new Side(ia);
process.on('message', (message: 'ping' | VictimMood | VictimEnd) => {
  if (message === 'ping') say('pong');
  else if (message === 'ignores signals') {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
    say('pong');
  } else if (message === 'stands still') {
    process.send?.('pong', () => {
      for (;;);
    });
  } else end(message);
});
if (plan.role === 'accept') listen();
else {
  for (let i = 0; i < plan.connections; i++) {
    const to = { address: plan.peer, connQual: plan.connQual };
    void keepConnecting(side, plan, to, () => true, watch);
  }
}

function listen(): void {
  const evd = ia.createEvd({
    qlen: 64,
    policy: 'ONE',
    handler: (event) => {
      if (event.type !== 'connection-request') return;
      const talker = new Talker(side, plan);
      watch(talker);
      void talker.accept(event.cr);
    },
  });
  const psp = ia.createPsp({ connQual: plan.connQual, evd });
  stopListening = () => {
    psp.free();
    void evd.free();
  };
  say('listening');
}

function watch(talker: Talker): void {
  talkers.push(talker);
}

let ready = false;
const poll = setInterval(() => {
  if (ready || talkers.filter(({ established }) => established).length < plan.connections) return;
  ready = true;
  clearInterval(poll);
  say('ready');
}, 2);

function end(how: VictimEnd): void {
  if (how === 'exit') process.exit(0);
  else if (how === 'throw') throw new Error('as the test wants it');
  else if (how === 'exit in an upcall') {
    const handler = (): void => process.exit(0);
    const connectEvd = ia.createEvd({ qlen: 8, policy: 'ONE', handler });
    const ep = ia.createEndpoint({ pz: side.pz, connectEvd });
    ep.connect({ address: plan.peer, connQual: plan.connQual + 1 });
  } else {
    // Nothing holds the process any more: what waited for events has been told to stop.
    process.disconnect();
    for (const talker of talkers) talker.leave();
    stopListening();
  }
}
