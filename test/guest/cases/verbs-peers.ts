// Our applications over the verbs provider in a guest against C programs in another one: ucmatose,
// udaddy, dtest, dapltest and perftest's, both roles.
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import type { Family } from '../verbs/scene.js';
import { COMPLAINT, MIX } from './dapltest.js';
import { DEVICE, daplVersion } from './dapl.js';
import { perftest, type PerftestLoad, type Role } from './perftest.js';
import {
  converse,
  listensByCm,
  listensByTcp,
  node,
  type Places,
  placesOf,
  type Program,
  sample,
  type Server,
} from './verbs-programs.js';

const MTU_BYTES = 4096;
const CASE_TIMEOUT_MS = 600_000;
const PEER = `${node('test', 'guest', 'peer', 'main.js')} --verbs`;
const DTEST_PORT = 15_828;

type Conversation = readonly [Server, Program];

interface Meeting {
  readonly counterpart: string;
  /** The rest of its name, and of its line in the table. */
  readonly what: string;
  /** Our side. */
  readonly role: Role;
  readonly family: Family;
  /** In the small run. */
  readonly quick?: boolean;
  readonly play: (places: Places) => readonly Conversation[];
}

const ROLES: readonly Role[] = ['server', 'client'];
const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];

export function verbsPeerCases(lab: Lab, version: string): Case[] {
  return MEETINGS.map(({ counterpart, what, role, family, quick = false, play }) => ({
    name: `verbs: ${counterpart}, our ${role}, ${family}, ${what}`,
    row: {
      counterpart,
      version: /^d(?:apl)?test$/.test(counterpart) ? daplVersion(version) : version,
      role,
      transport: `rdma_cm, ${family}, our verbs provider on rxe: ${what}`,
      mtuBytes: MTU_BYTES,
    },
    full: !quick,
    guests: 2,
    timeoutMs: CASE_TIMEOUT_MS,
    run: async () => {
      await lab.setPathMtu(MTU_BYTES);
      const places = await placesOf(lab, family);
      for (const [server, client] of play(places)) await converse(server, client);
    },
  }));
}

interface Load {
  readonly connections: number;
  readonly messages: number;
  readonly sizeBytes: number;
}

const textOf = ({ connections, messages, sizeBytes }: Load): string =>
  `${connections} at once, ${messages} of ${sizeBytes} B`;
const lettersOf = ({ connections, messages, sizeBytes }: Load): string =>
  `-c ${connections} -C ${messages} -S ${sizeBytes}`;

const UCMATOSE_LOADS: readonly Load[] = [
  { connections: 3, messages: 20, sizeBytes: 4097 },
  { connections: 50, messages: 5, sizeBytes: 100 },
  { connections: 2, messages: 5, sizeBytes: 300_001 },
];

function ucmatose(role: Role, load: Load): Meeting['play'] {
  const words = `${load.connections} ${load.messages} ${load.sizeBytes}`;
  const complete = /data transfers complete/;
  return ({ ours, theirs, ourAddress, theirAddress }) => [
    role === 'server'
      ? [
          {
            machine: ours,
            command: `${PEER} ucmatose-server ${ourAddress} ${words}`,
            listening: /^listening/m,
            passed: new RegExp(`^served ${load.connections}$`, 'm'),
          },
          {
            machine: theirs,
            command: `ucmatose -s ${ourAddress} ${lettersOf(load)}`,
            passed: complete,
          },
        ]
      : [
          {
            machine: theirs,
            command: `stdbuf -oL ucmatose -b ${theirAddress} ${lettersOf(load)}`,
            listening: /starting server/,
            until: listensByCm('ucmatose'),
            passed: complete,
          },
          {
            machine: ours,
            command: `${PEER} ucmatose-client ${theirAddress} ${words}`,
            passed: new RegExp(`^connected ${load.connections}$`, 'm'),
          },
        ],
  ];
}

const UDADDY_LOADS: readonly Load[] = [
  { connections: 3, messages: 20, sizeBytes: 4095 },
  { connections: 20, messages: 5, sizeBytes: 100 },
];

function udaddy(role: Role, load: Load): Meeting['play'] {
  const letters = lettersOf(load);
  const ours = `${sample('udaddy')} --provider verbs ${letters}`;
  const complete = /data transfers complete[^]*return status 0/;
  return (places) => [
    role === 'server'
      ? [
          {
            machine: places.ours,
            command: `${ours} -b ${places.ourAddress}`,
            listening: /^listening/m,
            passed: new RegExp(`^replied to ${load.connections} endpoints`, 'm'),
          },
          {
            machine: places.theirs,
            command: `udaddy -s ${places.ourAddress} ${letters}`,
            passed: complete,
          },
        ]
      : [
          {
            machine: places.theirs,
            command: `stdbuf -oL udaddy -b ${places.theirAddress} ${letters}`,
            listening: /starting server/,
            until: listensByCm('udaddy'),
            passed: complete,
          },
          {
            machine: places.ours,
            command: `${ours} -s ${places.theirAddress}`,
            passed: new RegExp(`^${load.connections * load.messages} replies came$`, 'm'),
          },
        ],
  ];
}

const DTEST_LOADS = [
  '-b 10001 -B 100',
  '-w -b 20000 -B 50',
  '-D -b 5000 -B 30',
  '-u -p -b 300001 -B 20',
] as const;

function dtest(role: Role, letters: string): Meeting['play'] {
  const passed = /DAPL Test Complete. PASSED/;
  const complaint = /ERR|Error|unexpected/;
  const ours = `${sample('dtest')} --provider verbs`;
  const listening = /waiting for client connection/;
  const until = listensByTcp(DTEST_PORT);
  return (at) => [
    role === 'server'
      ? [
          {
            machine: at.ours,
            command: `${ours} -I ${at.ourAddress} -P ${DEVICE} ${letters}`,
            ...{ listening, until, passed, complaint },
          },
          {
            machine: at.theirs,
            command: `${at.udapl} dtest -h ${at.ourAddress} ${letters}`,
            ...{ passed, complaint },
          },
        ]
      : [
          {
            machine: at.theirs,
            command: `${at.udapl} dtest -P ${DEVICE} ${letters}`,
            ...{ listening, until, passed, complaint },
          },
          {
            machine: at.ours,
            command: `${ours} -h ${at.theirAddress} -I ${at.ourAddress} ${letters}`,
            ...{ passed, complaint },
          },
        ],
  ];
}

/** A test, and a quit that ends the server. */
const DAPLTEST_LOADS = [
  { what: 'transactions, validated', words: `-T T -i 8 -V ${MIX}` },
  { what: 'transactions of 3 threads of 2 endpoints', words: `-T T -i 4 -t 3 -w 2 -V ${MIX}` },
  { what: 'performance, RW of 8 KiB, waiting', words: '-T P -i 50 -p 16 -m b RW 8192' },
  { what: 'performance, RR of 2 segments, polling', words: '-T P -i 30 -m p RR 20000 2' },
] as const;

function dapltest(role: Role, words: string): Meeting['play'] {
  const ours = sample('dapltest');
  const listening = /Dapltest: Service Point Ready/;
  const passed = /Total WQE|Test completed successfully|Bandwidth/;
  return (at) => {
    const [program, own, server] =
      role === 'server'
        ? [`${at.udapl} dapltest`, DEVICE, at.ourAddress]
        : [ours, at.ourAddress, at.theirAddress];
    const [flag = '', test = '', ...rest] = words.split(' ');
    // Options stand before the operations.
    const where = ['-s', server, '-D', own, ...(role === 'client' ? ['--provider verbs'] : [])];
    const ask = [program, flag, test, ...where, ...rest].join(' ');
    const quit = [program.replace(/^exec /, ''), '-T Q', ...where].join(' ');
    const client: Program = {
      machine: role === 'server' ? at.theirs : at.ours,
      command: `${ask.replace(/^exec /, '')} && ${quit}`,
      passed,
    };
    return [
      role === 'server'
        ? [
            {
              machine: at.ours,
              command: `${ours} -T S -D ${at.ourAddress} --provider verbs`,
              ...{ listening, passed: /Finished/, complaint: /failed|mismatch/ },
            },
            client,
          ]
        : [
            {
              machine: at.theirs,
              command: `${at.udapl} dapltest -T S -D ${DEVICE}`,
              ...{ listening, passed: /Finished/, complaint: COMPLAINT },
            },
            client,
          ],
    ];
  };
}

const PERFTEST_LOADS: readonly PerftestLoad[] = [
  { program: 'ib_write_bw', bytes: 65_536, iterations: 200 },
  { program: 'ib_read_bw', bytes: 65_536, iterations: 200 },
  { program: 'ib_send_lat', bytes: 5000, iterations: 300, sleeps: true },
];

/** One of each program, the roles and families in turn, is in the small run. */
const MEETINGS: readonly Meeting[] = ROLES.flatMap((role): Meeting[] => [
  ...FAMILIES.flatMap((family) => [
    ...UCMATOSE_LOADS.map((load, index) => ({
      ...{ counterpart: 'ucmatose', what: `RC, ${textOf(load)}`, role, family },
      ...{ quick: index === 0 && role === 'server' && family === 'IPv6' },
      play: ucmatose(role, load),
    })),
    ...UDADDY_LOADS.map((load, index) => ({
      ...{ counterpart: 'udaddy', what: `SIDR, UD, ${textOf(load)}`, role, family },
      ...{ quick: index === 0 && role === 'client' && family === 'IPv6' },
      play: udaddy(role, load),
    })),
  ]),
  // uDAPL's provider and perftest's -R know IPv4 alone.
  ...DTEST_LOADS.map((letters, index) => ({
    ...{ counterpart: 'dtest', what: `RC, ${letters}`, role, family: 'IPv4' as const },
    ...{ quick: index === 0 && role === 'client' },
    play: dtest(role, letters),
  })),
  ...DAPLTEST_LOADS.map(({ what, words }, index) => ({
    ...{ counterpart: 'dapltest', what: `RC, ${what}`, role, family: 'IPv4' as const },
    ...{ quick: index === 0 && role === 'server' },
    play: dapltest(role, words),
  })),
  ...PERFTEST_LOADS.map((load) => ({
    counterpart: load.program,
    what: `RC, ${load.iterations} of ${load.bytes} B`,
    ...{ role, family: 'IPv4' as const },
    ...{ quick: load.program === 'ib_write_bw' && role === 'server' },
    play: (at: Places) => [perftest(role, load, 'verbs', at)],
  })),
]);
